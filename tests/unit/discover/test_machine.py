"""What a machine says about itself, and what control's files say about cards."""

from __future__ import annotations

import json
import pathlib
import socket
import subprocess
import sys
import time

import pytest

from ansible.module_utils.slurmstead.discover import login, machine, probe, sources
from tests import power_devices as devices

DMI = "sys/class/dmi/id"


def write(root: pathlib.Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


@pytest.mark.parametrize(
    "text", ["To Be Filled By O.E.M.", "Default string", "0000000", "None", "System Serial Number", "123456789", "\n"]
)
def test_the_text_of_a_careless_maker_is_no_serial(tmp_path: pathlib.Path, text: str) -> None:
    write(tmp_path, f"{DMI}/product_serial", text)
    assert machine.serial(tmp_path) == ""
    write(tmp_path, f"{DMI}/board_serial", "MB-77\n")
    assert machine.serial(tmp_path) == "MB-77"


def test_a_board_has_the_serial_of_its_device_tree(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "proc/device-tree/serial-number", "10000000abcdef\0")
    write(tmp_path, "proc/device-tree/model", "Turing Machines RK1\0")

    assert (machine.serial(tmp_path), machine.product(tmp_path)) == ("10000000abcdef", "Turing Machines RK1")


def test_a_machine_is_measured(tmp_path: pathlib.Path) -> None:
    write(tmp_path, f"{DMI}/sys_vendor", "HP\n")
    write(tmp_path, f"{DMI}/product_name", "ProLiant\n")
    write(tmp_path, f"{DMI}/product_serial", "CZJ1\n")
    write(tmp_path, "sys/devices/system/cpu/online", "0-1\n")
    write(tmp_path, "proc/meminfo", "MemTotal:       2097152 kB\n")
    write(tmp_path, "sys/block/sda/size", "2048\n")
    write(tmp_path, "sys/block/sdb/size", "2048\n")
    (tmp_path / "dev/disk/by-id").mkdir(parents=True)
    (tmp_path / "dev/disk/by-id/ata-not-on-this-computer").symlink_to("../../sdb")
    found = machine.measure(str(tmp_path))

    disks = found.pop("disks")
    assert found == {"serial": "CZJ1", "product": "HP ProLiant", "cores": 2, "memory": 2048}
    assert disks[0]["content"] == ["it has no stable name in /dev/disk/by-id"]
    assert "expected a disk" in disks[1]["content"][0]


def test_the_maker_of_a_card_is_that_of_the_longest_prefix(tmp_path: pathlib.Path) -> None:
    head = "Registry,Assignment,Organization Name,Organization Address\n"
    write(tmp_path, "oui.csv", f'{head}MA-L,8C1F64,IEEE Registration Authority,x\nMA-L,D89D67,"Hewlett, Packard",y\n')
    write(tmp_path, "oui36.csv", f"{head}MA-S,8C1F64ABC,Small Boards,z\n")
    macs = ["8c:1f:64:ab:c0:01", "d8:9d:67:00:00:01", "52:54:00:00:00:01", "00:00:00:00:00:01"]

    assert sources.makers(macs, tmp_path) == {
        macs[0]: "Small Boards",
        macs[1]: "Hewlett, Packard",
        macs[2]: "no maker: chosen by software",
    }


def test_without_the_files_no_maker_is_known(tmp_path: pathlib.Path) -> None:
    assert sources.makers(["d8:9d:67:00:00:01"], tmp_path) == {}


class Root(devices.RedfishHandler):
    """Its root needs no login (DSP0266, 9.2)."""

    def respond(self, body: object) -> None:
        if self.path == "/redfish/v1/":
            self.say({"RedfishVersion": "1.6.0", "Vendor": "HPE", "Product": "ProLiant DL360e"})
        else:
            super().respond(body)


class Bmcd(devices.BmcdHandler):
    """Refuses a request without credentials with the words of authentication_errors.rs."""

    def respond(self, body: object) -> None:
        if "Authorization" in self.headers:
            super().respond(body)
        elif self.path.startswith("/api/bmc"):
            text = b"no authorization header provided"
            self.send_response(401)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        else:
            self.say(None, 404)


@pytest.mark.parametrize(
    ("handler", "kind"), [(Root, "redfish HPE ProLiant DL360e"), (Bmcd, "turing_pi"), (devices.Shelly2Handler, "")]
)
def test_a_bmc_is_recognized_without_a_login(tmp_path: pathlib.Path, handler: type[devices.Handler], kind: str) -> None:
    with devices.served(handler, devices.certificate(tmp_path)) as device:
        assert probe.web_bmc(device.address) == kind
        assert device.logins == 0


def test_a_bmc_that_speaks_only_ipmi_is_recognized(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    monkeypatch.setattr(probe, "IPMI", port)
    assert probe.ipmi(["127.0.0.1"]) == set()
    with devices.ipmi_simulator(tmp_path, port):
        end = time.monotonic() + 20
        while probe.ipmi(["127.0.0.1"]) != {"127.0.0.1"}:
            assert time.monotonic() < end, (tmp_path / "log").read_text()


def test_the_login_accepts_only_the_key_that_control_saw_and_goes_through_control() -> None:
    control = {"ansible_host": "192.0.2.1", "ansible_user": "ann", "ansible_ssh_common_args": "-o Port=%p"}
    words = login.command(control, "10.77.0.203", "root", "/tmp/known")

    assert {"StrictHostKeyChecking=yes", "UserKnownHostsFile=/tmp/known", "ForwardAgent=no"} <= set(words)
    proxy = next(word for word in words if word.startswith("ProxyCommand="))
    assert "-o Port=%%p" in proxy
    assert proxy.endswith("-W '[%h]:%p' ann@192.0.2.1 --")
    assert "root@10.77.0.203" in words


def test_only_the_keys_of_the_way_to_control_count_for_a_new_machine() -> None:
    control = {
        "ansible_host": "192.0.2.1",
        "ansible_ssh_common_args": "-A -J ann@192.0.2.9 -i /key -o 'IdentityFile /other' -o ForwardX11=yes",
        "ansible_ssh_extra_args": "-oidentitiesonly=yes -o CertificateFile=/cert -L 8080:localhost:80",
    }
    words = login.command(control, "10.77.0.203", "root", "/tmp/known")
    done = subprocess.run(["ssh", "-F", "none", "-G", *words[1:]], capture_output=True, text=True, check=False)
    found = set(done.stdout.splitlines())

    assert done.returncode == 0, done.stderr
    assert {"forwardagent no", "forwardx11 no", "hostname 10.77.0.203", "identitiesonly yes"} <= found
    assert {"identityfile /other", "certificatefile /cert"} <= found
    assert words[words.index("-i") + 1] == "/key"
    assert "-F config" in login.keys({"ansible_ssh_common_args": "-F config -J jump"})
    assert not [line for line in found if line.startswith("localforward")]
    assert "-J ann@192.0.2.9" in next(word for word in words if word.startswith("ProxyCommand="))


def test_control_that_is_this_computer_needs_no_proxy() -> None:
    assert "ProxyCommand=none" in login.command({"ansible_connection": "local"}, "10.77.0.203", "root", "/tmp/known")


GOOD = {"serial": "S-1", "product": "HP", "cores": 4, "memory": 8000, "disks": []}
DISK = {"id": None, "name": "sda", "size": 1, "content": ["a partition table"]}


@pytest.mark.parametrize(
    ("said", "serial", "problem"),
    [
        ({**GOOD, "disks": [DISK]}, "S-1", ""),
        ({**GOOD, "serial": "{{ lookup('pipe', 'id') }}"}, "", ""),
        ({**GOOD, "serial": 7}, None, "ann: the answer is not a measurement"),
        ({**GOOD, "disks": [{"id": 1}]}, None, "ann: the answer is not a measurement"),
        ({**GOOD, "product": "\x1b]0;mine\x07"}, None, "ann: the answer is not a measurement"),
        ({**GOOD, "product": "a\nb"}, None, "ann: the answer is not a measurement"),
        ({"serial": "S-1"}, None, "ann: the answer is not a measurement"),
        ([], None, "ann: the answer is not a measurement"),
    ],
    ids=["good", "a template", "a number", "no disk", "an escape", "two lines", "a part", "a list"],
)
def test_a_machine_cannot_write_a_template_into_the_inventory(
    monkeypatch: pytest.MonkeyPatch, said: object, serial: str | None, problem: str
) -> None:
    """What answers may be a stranger that accepts any key."""
    program = f"print({json.dumps(said)!r})"
    monkeypatch.setattr(login, "command", lambda *_: [sys.executable, "-c", program])
    found = login.measure({}, {"address": "192.0.2.9", "host_keys": []}, ["ann"])

    assert (found["machine"] and found["machine"]["serial"], found["login"]) == (serial, problem)
