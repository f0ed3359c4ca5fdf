"""What control serves while a machine is installed: to one address, under one token, until it is installed."""

from __future__ import annotations

import dataclasses
import http.server
import json
import pathlib
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.install import plan, reports, serve
from ansible.module_utils.slurmstead.install.files import files

KEY = "SHA256:" + "k" * 43
NODE = plan.Plan(
    node="node5",
    mac="52:54:00:AB:00:05",
    address="127.0.0.1",
    network="127.0.0.0/8",
    router="127.0.0.1",
    domain="cluster",
    user="ansible",
    keys=("ssh-ed25519 AAAA me",),
    disk="A1",
)


@pytest.fixture
def url(tmp_path: pathlib.Path) -> Iterator[str]:
    """Where this installation is served."""
    image = tmp_path / "image"
    image.mkdir()
    for name in ("kernel", "initrd", "root.tar.zst"):
        (image / name).write_text(f"the {name}")
    serve.Handler.served = plan.served(NODE, "70ce", str(image), "5a")
    serve.Handler.reports = tmp_path / "reports"
    serve.Handler.reports.write_text("")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve.Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/70ce/"
        server.shutdown()


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def test_the_machine_gets_its_image_and_its_plan(url: str) -> None:
    assert [get(url + name) for name in ("kernel", "initrd", "root")] == [
        "the kernel",
        "the initrd",
        "the root.tar.zst",
    ]
    told = json.loads(get(f"{url}plan"))
    assert (plan.plan(told["options"]).disk, told["checksum"]) == ("A1", "5a")


def test_no_user_of_control_can_take_the_port() -> None:
    unit = pathlib.Path(__file__).resolve().parents[3] / "roles/install/files/slurmstead-install.service"

    assert plan.PORT < 1024
    assert "\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n" in unit.read_text()


@pytest.mark.parametrize("path", ["../x/kernel", "../70c/kernel", "served"])
def test_other_paths_are_refused(url: str, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="40[34]"):
        get(url.replace("70ce/", "") + path if path.startswith("..") else url + path)


def test_another_machine_is_refused(url: str) -> None:
    serve.Handler.served = {**serve.Handler.served, "node": "127.0.0.2"}
    with pytest.raises(urllib.error.HTTPError, match="403"):
        get(f"{url}boot")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{url}report", b"{}", timeout=10)

    assert serve.Handler.reports.read_text() == ""


def test_a_machine_boots_into_the_installer_until_it_is_installed(url: str) -> None:
    before = get(f"{url}boot")
    for report in ({"stage": "started", "serial": "S"}, {"stage": "installed", "host_key": KEY}):
        urllib.request.urlopen(f"{url}report", json.dumps(report).encode(), timeout=10).close()

    assert "boot=stead" in before
    assert "stead.mac=52:54:00:ab:00:05 stead.address=127.0.0.1/8" in before
    assert get(f"{url}boot") == plan.FROM_DISK == "#!ipxe\nexit 1\n"
    found = reports.reached(serve.Handler.reports.read_text(), "installed")
    assert found == {"stage": "installed", "serial": "S", "host_key": KEY}


def test_what_is_no_json_is_no_report(url: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(f"{url}report", b"installed", timeout=10)

    assert serve.Handler.reports.read_text() == ""


def test_a_refusal_is_what_every_stage_waits_for() -> None:
    text = '{"stage": "started"}\n{"stage": "refused", "text": "not blank"}\n'

    assert reports.reached(text, "installed") == {"stage": "refused", "text": "not blank"}


def test_boot_files_are_for_one_card_and_for_bios_and_uefi() -> None:
    lines = plan.dnsmasq(NODE, "70ce").splitlines()

    assert lines[0] == "conf-file=/etc/slurmstead/dnsmasq.conf"
    assert "dhcp-mac=set:install,52:54:00:ab:00:05" in lines
    assert all("tag:install" in line for line in lines if line.startswith("dhcp-boot="))


def test_a_mac_with_hyphens_is_the_same_card() -> None:
    other = dataclasses.replace(NODE, mac="52-54-00-AB-00-05")

    assert plan.dnsmasq(other, "70ce") == plan.dnsmasq(NODE, "70ce")
    assert plan.boot_script(other, "70ce") == plan.boot_script(NODE, "70ce")
    assert files(other, "uuid", "1A2B-3C4D") == files(NODE, "uuid", "1A2B-3C4D")


def test_only_the_account_of_the_inventory_can_log_in() -> None:
    made = files(NODE, "uuid", "1A2B-3C4D")

    assert made["home/ansible/.ssh/authorized_keys"] == ("ssh-ed25519 AAAA me\n", 0o600)
    assert made["etc/sudoers.d/ansible"][1] == 0o440
    assert made["etc/hostname"][0] == "node5\n"
    assert made["etc/fstab"][0].startswith("UUID=uuid / ext4 ")
