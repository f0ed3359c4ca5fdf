"""`stead discover` prints what the playbook found, and adds what the operator confirms."""

import json
from typing import Any

import pytest

from slurmstead.cluster import discover
from slurmstead.errors import ExitCode, InventoryError, UsageError

SITE = """\
all:
  vars: {ansible_connection: local}
  hosts:
    head:
      os_address: 10.77.0.1
      router_interface: in0
      router_network: 10.77.0.0/24
      router_pool: [10.77.0.200, 10.77.0.250]
    rack01: {os_address: 10.77.0.11}
control:
  hosts:
    head:
nfs_server:
  hosts:
    head:
workers:
  hosts:
    rack01:
"""
MAC = "d8:9d:67:00:00:01"


def machine(address: str, **more: Any) -> dict[str, Any]:
    disks = [
        {"id": "wwn-1", "name": "sda", "size": 500e9, "content": []},
        {"id": "wwn-2", "name": "sdb", "size": 240e9, "content": ["mounted at /"]},
    ]
    measured = {"serial": "CZJ1", "product": "HP ProLiant", "cores": 12, "memory": 32085, "disks": disks}
    return {
        "address": address,
        "addresses": [address],
        "mac": MAC,
        "maker": "Hewlett Packard",
        "name": "debian",
        "banner": "SSH-2.0-OpenSSH_9.2p1",
        "host_key": f"SHA256:{'k' * 43}",
        "bmc": "",
        "user": "root",
        "machine": measured,
        "login": "",
        "refused": "",
        **more,
    }


BARE = machine("10.77.0.204", machine=None, login="root: Permission denied", mac="d8:9d:67:00:00:02")
BMC = machine("10.78.0.4", machine=None, host_key="", banner="", bmc="ipmi", mac="d8:9d:67:00:00:03")


@pytest.fixture
def found(project, stead, monkeypatch):
    """Return a function that runs the verb where these machines are new."""
    project.write("hosts.yml", SITE)
    new = [machine("10.77.0.203"), BARE, BMC]
    seen = discover.Found(new, ["10.77.0.9 is rack01, at another address"], ["10.77.0.12", "10.77.0.203"])
    monkeypatch.setattr(discover, "run", lambda *_, **__: seen)
    return lambda *words: stead("discover", *words, "-i", project.path / "hosts.yml")


def test_a_machine_that_accepts_a_login_is_added_with_its_identity(found, project, capsys):
    assert found("--yes") == ExitCode.OK
    text, said = (project.path / "hosts.yml").read_text(), capsys.readouterr().out

    assert (
        f"""\
    rack02:
      os_address: 10.77.0.13
      router_mac: "{MAC}"
      os_serial: "CZJ1"
      os_host_key: SHA256:{"k" * 43}
      scratch_disks: []
      # HP ProLiant, 12 cores, 32085 MiB
      # blank: /dev/disk/by-id/wwn-1
control:"""
        in text
    )
    assert text.endswith("    rack01:\n    rack02:\n")
    assert "/dev/disk/by-id/wwn-2, 240 GB, not free: mounted at /" in said
    assert "BMC: ipmi" in said
    assert "note  10.77.0.9 is rack01" in said
    assert "1. scripts/stead up --limit head --tags router, then reboot rack02" in said
    assert "3. scripts/stead add-node rack02" in said


def test_without_a_terminal_nothing_is_written_unless_told(found, project, capsys):
    assert found() == ExitCode.USAGE
    assert "+    rack02:" in capsys.readouterr().out
    assert (project.path / "hosts.yml").read_text() == SITE


def test_a_named_machine_without_a_login_is_added_under_its_name(found, project):
    assert found("10.77.0.204=gpu1", "--yes") == ExitCode.OK
    text = (project.path / "hosts.yml").read_text()

    assert "    gpu1:\n      os_address: 10.77.0.13\n" in text
    assert "rack02" not in text


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("10.77.0.99", "10.77.0.99 is not a new machine"),
        ("10.78.0.4", "does not answer ssh"),
        ("10.77.0.203=rack01", "rack01 is in the inventory"),
        ("10.77.0.203=Rack", "Rack is not a host name"),
        ("10.77.0.203=workers", "workers is in the inventory"),
    ],
)
def test_what_cannot_be_added_is_refused(found, project, capsys, word, why):
    assert found(word, "--yes") == ExitCode.USAGE
    assert why in capsys.readouterr().err
    assert (project.path / "hosts.yml").read_text() == SITE


def test_a_machine_is_not_added_twice(found, project, capsys):
    assert found("10.77.0.203", f"{MAC}=gpu1", "--yes") == ExitCode.USAGE
    assert f"{MAC} is a machine that was named before" in capsys.readouterr().err
    assert (project.path / "hosts.yml").read_text() == SITE


def test_a_machine_that_is_to_be_installed_is_added_by_its_mac(found, project, monkeypatch, capsys):
    blank = machine("10.77.0.205", machine=None, host_key="", banner="", mac="d8:9d:67:00:00:04")
    monkeypatch.setattr(discover, "run", lambda *_, **__: discover.Found([blank], [], ["10.77.0.205"]))

    assert found("10.77.0.205", "--yes") == ExitCode.USAGE
    assert found("D8:9D:67:00:00:04=gpu1", "--yes") == ExitCode.OK
    text, said = (project.path / "hosts.yml").read_text(), capsys.readouterr().out
    assert (
        '    gpu1:\n      os_address: 10.77.0.12\n      router_mac: "d8:9d:67:00:00:04"\n      install_disk: ""\n'
        in text
    )
    assert "then scripts/stead install gpu1" in said
    assert "add-node" not in said


def test_a_copied_disk_cannot_be_added_by_name():
    copy = machine("10.77.0.203", refused="its disk is a copy")
    seen = discover.Found([copy], [], [])

    assert discover.chosen(seen, []) == []
    with pytest.raises(UsageError, match="cannot be added: its disk is a copy"):
        discover.chosen(seen, ["10.77.0.203"])


def test_json_is_complete_and_writes_nothing(found, project, capsys):
    assert found("--json", "--yes") == ExitCode.OK
    assert [one["address"] for one in json.loads(capsys.readouterr().out)["new"]] == [
        *("10.77.0.203", "10.77.0.204", "10.78.0.4")
    ]
    assert (project.path / "hosts.yml").read_text() == SITE


def test_without_a_router_a_machine_keeps_its_address():
    addresses = discover.Addresses({"a": {"os_address": "192.0.2.1"}}, discover.Found([], [], []))

    assert addresses.of({"address": "192.0.2.77"}) == "192.0.2.77"


@pytest.mark.parametrize("network", ["10.77.0.1/24", "{{ inside }}"])
def test_an_address_that_cannot_be_used_is_named(network: str) -> None:
    hosts = {"a": {"router_interface": "eth0", "router_network": network}}
    with pytest.raises(InventoryError, match="an address in the inventory cannot be used"):
        discover.Addresses(hosts, discover.Found([], [], []))
