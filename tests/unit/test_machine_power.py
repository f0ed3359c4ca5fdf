"""A machine is looked at, waited for and switched off by the real action, with what ssh(1) says of it."""

from __future__ import annotations

import os
import pathlib
import shlex
import subprocess
import sys

import pytest

from ansible.module_utils.slurmstead.reach.answer import is_silent
from ansible.module_utils.slurmstead.reach.ssh import as_root

ROOT = pathlib.Path(__file__).resolve().parents[2]

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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "on", "words"), [(SILENCE, "false", "node4 does not answer; is it on?"), (REFUSED, "true", '"said": ""')]
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
