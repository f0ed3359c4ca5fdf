"""The exit codes that docs/tour.md promises, each brought about by a real run of ansible-playbook."""

import io
import os
import subprocess
import sys

import pytest

from slurmstead.errors import ExitCode
from slurmstead.paths import ROOT

pytestmark = pytest.mark.slow

GOOD = "- ansible.builtin.debug: {msg: fine}"
FAILING = """
- name: Look for the disk
  ansible.builtin.fail: {msg: "expected a blank disk, seen ext4"}
  when: inventory_hostname == 'here'
"""
REFUSING = """
- name: Check the addresses
  ansible.builtin.assert: {that: false, fail_msg: os_address is missing}
"""
CHANGING = "- {name: Write a file, ansible.builtin.command: 'true', changed_when: true}"
BOTH = f"{FAILING}{CHANGING}"


@pytest.mark.parametrize(
    ("tasks", "hosts", "code", "text"),
    [
        pytest.param(CHANGING, ["here", "other"], ExitCode.OK, "2 changes on 2 hosts", id="changed"),
        pytest.param(FAILING, ["here"], ExitCode.TASK_FAILED, "expected a blank disk, seen ext4", id="failed task"),
        pytest.param(CHANGING, ["here", "gone"], ExitCode.UNREACHABLE, "gone could not be reached", id="host off"),
        pytest.param(BOTH, ["here", "gone"], ExitCode.TASK_FAILED, "failed on here", id="failed task and host off"),
        pytest.param("- no.such.module: {}", ["here"], ExitCode.USAGE, "no.such.module", id="invalid playbook"),
        pytest.param(GOOD, [], ExitCode.USAGE, "matched no host", id="empty inventory"),
    ],
)
def test_a_run_ends_with_the_documented_code(project, stead, capsys, tasks, hosts, code, text):
    project.playbook(tasks)
    assert stead("up", "-i", project.inventory(*hosts), "--plain") == code
    captured = capsys.readouterr()
    assert text in captured.out + captured.err


@pytest.mark.parametrize("command", [["init"], ["up", "-i"], ["people", "list", "-i"]], ids=" ".join)
def test_a_path_that_cannot_be_used_is_named(project, stead, capsys, monkeypatch, command):
    """As root, a test cannot meet a directory that it may not read."""
    monkeypatch.chdir(project.path)
    path = "x" * 300

    assert stead(*command, path) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert path in error
    assert "cannot be used: File name too long\n       Check the path and its mode." in error


def test_the_accelerator_changes_no_exit_code(project, stead, capsys, monkeypatch):
    project.playbook(CHANGING)
    # As a person gives it: relative to where they are.
    monkeypatch.chdir(project.path)
    assert stead("up", "-i", project.inventory("here", "gone").name) == ExitCode.UNREACHABLE
    captured = capsys.readouterr()
    assert "gone could not be reached" in captured.err
    assert "1 change on 2 hosts" in captured.out


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("isolation", ["none", "fork"])
def test_a_host_that_goes_away_within_a_task_was_not_reached(project, stead, capsys, isolation, hidden):
    # Of a process that it has started there, the accelerator says what it says of a machine.
    project.playbook(f"""
- name: End the process that runs the module
  ansible.builtin.command: sh -c 'kill -9 $PPID'
  changed_when: true
  no_log: {hidden}
  vars: {{mitogen_task_isolation: {isolation}}}
""")
    assert stead("up", "-i", project.inventory("here")) == ExitCode.UNREACHABLE
    assert "here could not be reached" in capsys.readouterr().err


def test_a_host_that_is_off_does_not_stop_the_others(project, stead):
    project.playbook(f"""
- name: Reach the host
  ansible.builtin.command: "true"
  changed_when: false
- name: Leave a mark
  ansible.builtin.copy: {{content: "", dest: "{project.path}/{{{{ inventory_hostname }}}}", mode: "0600"}}
""")
    assert stead("up", "-i", project.inventory("here", "gone"), "--plain") == ExitCode.UNREACHABLE
    assert (project.path / "here").exists()


def test_a_refused_inventory_is_wrong_usage(project, stead, capsys):
    project.playbook(REFUSING, name="validate-inventory.yml")
    project.write("site.yml", "- ansible.builtin.import_playbook: validate-inventory.yml\n")
    assert stead("up", "-i", project.inventory("here"), "--plain") == ExitCode.USAGE
    captured = capsys.readouterr()
    assert "os_address is missing" in captured.err
    assert "the inventory has mistakes" in captured.err


def test_a_variable_that_a_role_does_not_accept_is_wrong_usage(project, stead, capsys):
    options = "{os_address: {type: str, required: true}}"
    project.write("roles/os/meta/argument_specs.yml", f"argument_specs: {{main: {{options: {options}}}}}\n")
    project.write("roles/os/tasks/main.yml", GOOD)
    project.playbook("- ansible.builtin.import_role: {name: os}")
    assert stead("up", "-i", project.inventory("here"), "--plain") == ExitCode.USAGE
    assert "os_address" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["up", "-i", "nowhere"], "there is no inventory"),
        (["up", "--no-such-option"], "No such option"),
        (["down"], "No such command"),
        (["lab", "up", "--name", "No Name"], "is not a valid name of a lab"),
        (["lab", "ssh", "node1"], "does not exist"),
    ],
    ids=["unknown inventory", "unknown option", "unknown verb", "bad lab name", "no lab"],
)
def test_what_cannot_be_done_as_written_is_wrong_usage(stead, capsys, arguments, text):
    assert stead(*arguments) == ExitCode.USAGE
    assert text in capsys.readouterr().err


def test_a_limit_that_matches_no_host_is_wrong_usage(project, stead, capsys):
    project.playbook(GOOD)
    assert stead("up", "-i", project.inventory("here"), "--limit", "elsewhere", "--plain") == ExitCode.USAGE
    assert "elsewhere" in capsys.readouterr().err


def test_a_lab_that_does_not_exist_is_a_failed_check(project, stead):
    assert stead("lab", "status") == ExitCode.CHECK_FAILED


def test_help_names_every_exit_code(stead, capsys):
    assert stead("--help") == ExitCode.OK
    text = " ".join(capsys.readouterr().out.split())
    for code in ExitCode:
        assert f"{code.value} " in text.partition("Exit codes:")[2]


def test_output_in_a_locale_without_our_characters_is_no_error(stead, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    # The help has an ellipsis.
    assert stead("people", "remove", "--help") == ExitCode.OK


def test_a_computer_without_room_is_named():
    command = ["prlimit", "--fsize=0", sys.executable, "-m", "slurmstead", "jobs", "--head", "alice@node3"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.USAGE
    assert done.stderr.startswith("stead: the disk of this computer is full: ")
    assert "Traceback" not in done.stderr
