"""`stead install` checks the inventory, installs a machine, and makes it a worker with the reported host key."""

import pytest

from slurmstead.cluster import install, operations
from slurmstead.errors import CheckFailed, ExitCode, TaskError
from slurmstead.runner.events import HostEnded, Status, Task
from slurmstead.runner.outcome import Result

SITE = """\
all:
  vars: {ansible_connection: local, bootstrap_authorized_keys: [ssh-ed25519 AAAA me]}
  hosts:
    head: {os_address: 10.77.0.1, router_interface: in0, router_network: 10.77.0.0/24}
    new: {os_address: 10.77.0.12, router_mac: "52:54:00:00:00:0c", install_disk: A1, power_method: ipmi}
    bare: {os_address: 10.77.0.13}
    far: {os_address: 10.78.0.13, router_mac: "52:54:00:00:00:0d", install_disk: A2}
control: {hosts: {head: }}
nfs_server: {hosts: {head: }}
workers: {hosts: {new: , bare: , far: }}
"""
INSTALLED = install.Installed("CZJ1", "/dev/sda (serial A1)", "SHA256:key")


def reported(**report):
    """The result of a run in which the machine reported this."""
    task = Task("1", "Wait until it is installed", action="install_window")
    return Result("install-machine.yml", ended=[HostEnded(task, "head", Status.OK, result={"report": report})])


@pytest.fixture
def ran(project, monkeypatch):
    """The playbooks that the verb runs, with the node's variables."""
    project.write("hosts.yml", SITE)
    calls = []
    monkeypatch.setattr(operations, "reload_firewalls", lambda *_, **__: calls.append("firewalls"))
    monkeypatch.setattr(install, "run", lambda *words, **_: calls.append(words[3]) or INSTALLED)
    monkeypatch.setattr(operations, "run", lambda *words, **more: calls.append((words[2], more["extra_vars"])))
    return calls


def test_a_blank_machine_is_installed_and_becomes_a_worker(ran, stead, project, capsys):
    assert stead("install", "new", "-i", project.path / "hosts.yml") == ExitCode.OK
    assert ran == ["firewalls", "new", ("add-node.yml", {"added_host_key": "SHA256:key"})]
    said = capsys.readouterr().out
    assert "new is installed on /dev/sda (serial A1)." in said
    assert 'os_serial: "CZJ1"\n      os_host_key: SHA256:key' in said


@pytest.mark.parametrize(("words", "restart"), [([], None), (["--restart"], "true")])
def test_a_machine_loses_its_power_only_if_the_operator_says_so(stead, project, monkeypatch, words, restart):
    project.write("hosts.yml", SITE)
    given = {}

    def run(*words, extra_vars, **_):
        given.update(extra_vars)
        raise TaskError(f"{words[2]} failed", "")

    monkeypatch.setattr(operations, "reload_firewalls", lambda *_, **__: None)
    monkeypatch.setattr(operations, "run", run)

    assert stead("install", "new", *words, "-i", project.path / "hosts.yml") == ExitCode.TASK_FAILED
    assert given["install_restart"] == restart


@pytest.mark.parametrize(("method", "shown"), [("wake_on_lan", "wake_on_lan"), ('""', "not set")])
def test_a_power_that_nothing_can_cut_is_not_promised_to_be_cut(ran, stead, project, capsys, method, shown):
    project.write("hosts.yml", SITE.replace("power_method: ipmi", f"power_method: {method}"))

    assert stead("install", "new", "--restart", "-i", project.path / "hosts.yml") == ExitCode.USAGE
    assert f"--restart cannot cut the power of new: its power_method is {shown}" in capsys.readouterr().err
    assert ran == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("bare", "bare has no router_mac"),
        ("far", "os_address of far is not in router_network (10.77.0.0/24)"),
        ("head", "head is the control node"),
        ("other", "other is not a worker"),
    ],
)
def test_a_machine_that_cannot_be_installed_is_refused_before_anything_runs(ran, stead, project, capsys, name, why):
    assert stead("install", name, "-i", project.path / "hosts.yml") == ExitCode.USAGE
    assert why in capsys.readouterr().err
    assert ran == []


def test_without_a_router_nothing_is_installed(ran, stead, project, capsys):
    project.write("hosts.yml", SITE.replace("router_interface: in0, ", ""))

    assert stead("install", "new", "-i", project.path / "hosts.yml") == ExitCode.USAGE
    assert "control is not a router" in capsys.readouterr().err
    assert ran == []


@pytest.mark.parametrize("key", ["", "{{ lookup('pipe', 'id') }}", "SHA256:" + "k" * 43 + "\n{{ 1 }}"])
def test_a_host_key_that_is_no_fingerprint_goes_no_further(key):
    with pytest.raises(CheckFailed, match="did not report the fingerprint"):
        install.parse(reported(host_key=key))


def test_a_serial_that_could_be_a_template_is_left_out():
    found = install.parse(reported(host_key="SHA256:" + "k" * 43, serial="{{ 1 }}", disk="/dev/sda"))

    assert found == install.Installed("", "/dev/sda", "SHA256:" + "k" * 43)


def test_a_failure_after_the_installation_says_how_to_go_on(ran, stead, project, capsys, monkeypatch):
    def fail(*_, **__):
        raise TaskError("add-node.yml failed on new", "Fix it.")

    monkeypatch.setattr(operations, "run", fail)

    assert stead("install", "new", "-i", project.path / "hosts.yml") == ExitCode.TASK_FAILED
    assert "scripts/stead add-node new --host-key SHA256:key" in capsys.readouterr().err
