"""A machine is looked at, waited for and switched off by the real action, with what ssh(1) says of it."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shlex
import subprocess
import sys
from typing import Any

import pytest
import yaml

from ansible.module_utils.slurmstead.reach.answer import is_silent, silent_on_the_way
from ansible.module_utils.slurmstead.reach.ssh import as_root

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("machine_power", ROOT / "plugins/action/machine_power.py")
assert SPEC is not None and SPEC.loader is not None
machine_power: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(machine_power)

INVENTORY = """
all:
  hosts:
    node4:
      ansible_host: 192.0.2.4
      ansible_python_interpreter: {python}
"""

# Nothing in a test can be a second machine: this is ssh(1) as far as it says how a machine is. Each line of the file
# `answers` is for one call, and the last one for all that follow.
SSH = """#!{python}
import pathlib, sys
if "-G" in sys.argv:
    print("hostname 192.0.2.4")
    sys.exit()
directory = pathlib.Path("{directory}")
with (directory / "calls").open("a") as file:
    file.write(" ".join(sys.argv[sys.argv.index("--") + 1 :]) + "\\n")
answer, _, later = (directory / "answers").read_text().partition("\\n")
(directory / "answers").write_text(later or answer)
if answer != "{login}":
    sys.stderr.write(answer)
    sys.exit(255)
"""

LOGIN = "the machine accepts logins"
SILENCE = "ssh: connect to host 192.0.2.4 port 22: No route to host"
REFUSED = "ssh: connect to host 192.0.2.4 port 22: Connection refused"
JUMP = "ssh: connect to host 192.0.2.1 port 22: No route to host"
CLOSED = "Connection to 192.0.2.4 closed by remote host."
NO_HEARTBEAT = "Timeout, server 192.0.2.4 not responding."
POWEROFF = shlex.join(as_root("systemctl", "poweroff"))


class Machine:
    """A machine that answers as it was told."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        (directory / "hosts.yml").write_text(INVENTORY.format(python=sys.executable))
        ssh = directory / "ssh"
        ssh.write_text(SSH.format(python=sys.executable, directory=directory, login=LOGIN))
        ssh.chmod(0o755)

    def run(self, *answers: str, check: bool = False, **arguments: object) -> tuple[int, str]:
        """Run the action as a playbook does; returns its exit code and what it said."""
        (self.directory / "answers").write_text("\n".join(answers))
        (self.directory / "calls").write_text("")
        tasks = f"[{{name: Do it, machine_power: {arguments}, register: it}}, {{name: Say it, debug: {{var: it}}}}]"
        (self.directory / "play.yml").write_text(f"- {{name: Try, hosts: all, tasks: {tasks}}}\n")
        switches = ["--check"] if check else []
        command = ["ansible-playbook", "-i", self.directory / "hosts.yml", *switches, self.directory / "play.yml"]
        path = os.pathsep.join([str(self.directory), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
        # Long lines are folded in YAML.
        settings = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}
        environment = {**os.environ, **settings, "PATH": path, "LC_ALL": "C.UTF-8"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def calls(self) -> list[str]:
        """Return the commands that were to be run on the machine."""
        return (self.directory / "calls").read_text().splitlines()


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("said", "silent"),
    [
        (SILENCE, True),
        ("ssh: connect to host node4.local port 22: Connection timed out", True),
        ("ssh: Could not resolve hostname node4.local: Name or service not known", True),
        ("channel 0: open failed: connect failed: No route to host\nstdio forwarding failed", True),
        # A virtual machine, whose port QEMU forwards until it ends.
        ("ssh: connect to host 127.0.0.1 port 40123: Connection refused", True),
        (REFUSED, False),
        ("kex_exchange_identification: read: Connection reset by peer", False),
        ("Connection timed out during banner exchange\nConnection to 127.0.0.1 port 40123 timed out", False),
        ("ansible@192.0.2.4: Permission denied (publickey).", False),
        # The cable of this computer says nothing of the machine's power.
        ("ssh: connect to host 192.0.2.4 port 22: Network is unreachable", False),
    ],
)
def test_only_silence_means_that_a_machine_is_off(said: str, silent: bool) -> None:
    assert is_silent(said) is silent


END = "kex_exchange_identification: Connection closed by remote host\nConnection closed by UNKNOWN port 65535"
BEHIND = "channel 0: open failed: connect failed: No route to host\nstdio forwarding failed"


@pytest.mark.parametrize(
    ("said", "other"),
    [
        (SILENCE, ""),
        (f"{BEHIND}\n{END}", ""),
        (f"{JUMP}\n{END}", "192.0.2.1"),
        ("ssh: Could not resolve hostname gate: Name or service not known", "gate"),
        # The first of two jump hosts does not reach the second.
        (f"{BEHIND}\n{END}\n{END}", "a jump host"),
    ],
)
def test_a_silent_jump_host_says_nothing_about_the_machine(said: str, other: str) -> None:
    assert is_silent(said)
    assert silent_on_the_way(said, {"192.0.2.4"}) == other


def test_an_address_of_the_users_own_configuration_of_ssh_is_the_machines(tmp_path: pathlib.Path) -> None:
    (tmp_path / "config").write_text("Host board\nHostName 192.0.2.4\n")
    machine = machine_power.Machine(
        "node4", {"ansible_host": "board", "ansible_ssh_common_args": f"-F {tmp_path}/config"}
    )

    assert machine.addresses() == {"192.0.2.4"}


def look_of(said: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a machine about which ssh says this."""
    machine = machine_power.Machine("node4", {"ansible_host": "192.0.2.4"})
    monkeypatch.setattr(machine, "run", lambda *_: (255, said))
    return machine


def test_a_machine_behind_a_silent_jump_host_is_not_known_to_be_off(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "192.0.2.1, on the way to node4, does not answer"
    machine = look_of(f"{JUMP}\n{END}", monkeypatch)

    assert machine.look() == (False, why)
    with pytest.raises(machine_power.AnsibleActionFail, match="so it is not known whether node4 is off"):
        machine_power.switch_off("node4", machine, 0, check_mode=False)
    assert look_of(SILENCE, monkeypatch).look() == (False, "")


def test_flash_needs_to_know_that_the_machine_is_off() -> None:
    plays = yaml.safe_load((ROOT / "playbooks/flash-board.yml").read_text())
    (tasks,) = [play["tasks"] for play in plays if play["name"] == "Check that the module is not in use"]
    conditions = [task["ansible.builtin.assert"]["that"] for task in tasks if "ansible.builtin.assert" in task]

    assert conditions[1:] == ["not __flashed_seen.on", "not __flashed_seen.unknown"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "on", "words"),
    [
        (SILENCE, "false", '"unknown": ""'),
        (SILENCE, "false", "node4 does not answer; is it on?"),
        (JUMP, "false", "192.0.2.1, on the way to node4, does not answer"),
        (REFUSED, "true", '"said": ""'),
    ],
)
def test_a_machine_that_is_off_is_named_and_not_unreachable(machine: Machine, answer: str, on: str, words: str) -> None:
    code, said = machine.run(answer, state="seen")

    assert code == 0, said
    assert f'"on": {on}' in said
    assert words in said


@pytest.mark.slow
def test_a_machine_is_waited_for_until_somebody_can_log_in(machine: Machine) -> None:
    code, said = machine.run(SILENCE, REFUSED, LOGIN, state="on", deadline=60)

    assert code == 0, said
    assert "node4 answers after" in said
    assert machine.calls() == ["true"] * 3


@pytest.mark.slow
def test_a_machine_that_does_not_come_is_unreachable_with_the_last_words_of_ssh(machine: Machine) -> None:
    code, said = machine.run(SILENCE, state="on", deadline=0)

    assert code != 0
    assert f"node4 was not reached within 0 min ({SILENCE}); is it on?" in said
    assert "unreachable=1" in said


@pytest.mark.slow
@pytest.mark.parametrize("end", [CLOSED, NO_HEARTBEAT])
def test_a_machine_is_switched_off_once_and_seen_to_be_silent(machine: Machine, end: str) -> None:
    code, said = machine.run(LOGIN, end, REFUSED, SILENCE, state="off", deadline=60)

    assert code == 0, said
    assert "node4 is off" in said
    assert "changed=1" in said
    assert machine.calls() == ["true", POWEROFF, "true", "true"]


@pytest.mark.slow
def test_a_machine_that_is_off_is_left_alone(machine: Machine) -> None:
    code, said = machine.run(SILENCE, state="off")

    assert code == 0, said
    assert "changed=0" in said
    assert machine.calls() == ["true"]


@pytest.mark.slow
def test_a_dry_run_switches_nothing_off(machine: Machine) -> None:
    code, said = machine.run(LOGIN, check=True, state="off")

    assert code == 0, said
    assert "node4 would be switched off" in said
    assert "changed=1" in said
    assert machine.calls() == ["true"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ((LOGIN, "sudo: a password is required"), "node4 cannot be switched off: sudo: a password is required"),
        ((LOGIN,), "node4 still answers 0 s after it was switched off; see its console"),
    ],
)
def test_a_machine_that_stays_on_is_a_failure(machine: Machine, answers: tuple[str, ...], words: str) -> None:
    code, said = machine.run(*answers, state="off", deadline=0)

    assert code != 0
    assert words in said
    assert "failed=1" in said
