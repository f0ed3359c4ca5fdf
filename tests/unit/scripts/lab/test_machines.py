"""The lab as the command sees it: its directory, its processes and its names."""

import os
import pathlib
import signal
import subprocess
import time

import pytest

from slurmstead import paths
from slurmstead.errors import MachineError, UsageError
from slurmstead.lab import machines as lab


@pytest.fixture
def directory(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a lab with machines that never ran, that stopped, and whose process ID another process has."""
    for name, pid in (("node1", None), ("node2", "999999999"), ("node3", str(os.getpid()))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ssh_config").touch()
        if pid:
            (tmp_path / name / "pid").write_text(pid)
    (tmp_path / "ssh_config").touch()
    return tmp_path


@pytest.fixture(params=["node1/pid", "node1"], ids=["machine", "container"])
def running(request, directory):
    """Start a process that has the pid file or the directory of node1, and its name, among its arguments."""
    with subprocess.Popen(["sh", "-c", "sleep 60 & wait", "sh", "node1", directory / request.param]) as process:
        (directory / "node1" / "pid").write_text(f"{process.pid}\n")
        deadline = time.monotonic() + 10
        # A process that has just been started shows no arguments for a moment.
        while lab.pids(directory)["node1"] is None and time.monotonic() < deadline:
            time.sleep(0.01)
        yield process
        for child in lab.processes.descendants(process.pid):
            os.kill(child.pid, signal.SIGTERM)
        process.kill()


def test_only_a_process_of_the_lab_counts_as_a_machine(directory, running):
    assert lab.pids(directory) == {"node1": running.pid, "node2": None, "node3": None}


def test_a_machine_of_another_lab_with_the_same_process_id_is_not_ended(directory, running, tmp_path):
    """After a crash of this computer, a pid file of one lab can name a machine of another."""
    other = tmp_path / "other" / "node1"
    other.mkdir(parents=True)
    (other / "ssh_config").touch()
    (other / "pid").write_text(f"{running.pid}\n")
    assert lab.pids(other.parent) == {"node1": None}
    lab.end(other.parent)
    assert running.poll() is None


def test_a_lab_that_never_was_has_no_machines(tmp_path):
    assert lab.pids(tmp_path / "lab") == {}
    assert lab.status(tmp_path / "lab") == []


def test_a_command_is_handed_to_ssh_as_it_is(directory, running):
    config = str(directory / "ssh_config")
    assert lab.ssh_command(directory, "node1", []) == ["ssh", "-F", config, "node1"]
    assert lab.ssh_command(directory, "node1", ["echo", "-n"], user="alice") == (
        ["ssh", "-F", config, "-l", "alice", "node1", "--", "echo", "-n"]
    )


@pytest.mark.parametrize(
    ("node", "error", "text"),
    [("node9", UsageError, "has no machine node9"), ("node2", MachineError, "node2 does not run")],
)
def test_a_machine_that_cannot_be_logged_in_to_is_named(directory, node, error, text):
    with pytest.raises(error, match=text) as caught:
        lab.ssh_command(directory, node, [])
    assert caught.value.hint


def test_a_lab_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(UsageError, match="does not exist") as caught:
        lab.ssh_command(tmp_path, "node1", [])
    assert "lab up" in caught.value.hint


def test_status_tells_machines_that_run_from_those_that_answer(directory, running, monkeypatch):
    monkeypatch.setattr(lab, "_release", lambda directory, node: "trixie")
    by_name = {node.name: node for node in lab.status(directory)}
    assert by_name["node1"].pid == running.pid
    assert by_name["node1"].release == "trixie"
    assert by_name["node1"].memory > 0
    assert by_name["node2"] == lab.Node("node2", None, None, None)


@pytest.mark.parametrize("name", ["a", "my-lab", "ci-4711", "0"])
def test_a_name_is_handed_to_the_inventory(monkeypatch, name):
    monkeypatch.setenv("STEAD_LAB", "before")
    assert lab.choose(name) == name
    assert os.environ["STEAD_LAB"] == name


@pytest.mark.parametrize("name", ["", "A", "a b", "../x", "-a", "x" * 32, "a\n"])
def test_a_name_that_no_path_should_hold_is_refused(monkeypatch, name):
    monkeypatch.setenv("STEAD_LAB", name)
    if not name:
        assert lab.choose(None) == "default"
        return
    with pytest.raises(UsageError):
        lab.choose(name)


def test_the_lab_stands_where_the_inventory_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert paths.lab_directory("x") == tmp_path / "slurmstead" / "lab" / "x"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert paths.lab_directory("x") == pathlib.Path("/home/me/.local/state/slurmstead/lab/x")


def test_only_what_the_caller_chose_is_set_for_the_playbooks():
    assert lab.variables(image=None, release=None) == {}
    assert lab.variables(image="clean", release="trixie") == {"lab_image": "clean", "lab_release": "trixie"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "needed"),
    [("lab_board: rk1", True), ("lab_architecture: arm64", True), ("lab_number: 1", False), ("lab_board: ''", False)],
)
def test_an_inventory_with_a_board_needs_arm64(tmp_path, host, needed):
    (tmp_path / "hosts.yml").write_text(f"all: {{hosts: {{node1: {{{host}}}}}}}")
    assert lab.needs_arm64(tmp_path / "hosts.yml") is needed


@pytest.mark.parametrize(
    ("inventory", "name"),
    [("lab-rk1", "lab-rk1"), ("lab-rk1/hosts.yml", "lab-rk1"), ("lab", "default"), ("lab/hosts.yml", "default")],
)
def test_a_lab_has_the_name_of_its_inventory(monkeypatch, inventory, name):
    monkeypatch.delenv("STEAD_LAB", raising=False)
    assert lab.choose(None, paths.ROOT / "inventory" / inventory) == name
    monkeypatch.delenv("STEAD_LAB")
    assert lab.choose(None) == "default"
    monkeypatch.delenv("STEAD_LAB")


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({}, ""),
        ({"lab_release": "bookworm", "lab_image": "baked"}, ""),
        ({"lab_release": "trixie"}, "node1 of the lab .* exists with bookworm, not trixie$"),
        ({"lab_image": "clean"}, "node1 of the lab .* exists with baked, not clean$"),
    ],
)
def test_a_machine_that_exists_with_another_image_is_named(directory, wanted, text):
    (directory / "node1" / "image").write_text("/my cache-1/images/bookworm-amd64-baked-0123456789ab")
    if not text:
        lab.check_image(directory, wanted)
        return
    with pytest.raises(UsageError, match=text) as caught:
        lab.check_image(directory, wanted)
    assert "lab down" in caught.value.hint
