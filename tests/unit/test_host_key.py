"""A host key is forgotten, and another one is trusted only with a given fingerprint; with the real ssh-keygen."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow

INVENTORY = """
all:
  hosts:
    node4:
      ansible_host: 192.0.2.4
      ansible_port: 2222
      ansible_ssh_common_args: -o UserKnownHostsFile={known_hosts}
      ansible_python_interpreter: {python}
"""
NAME = "[192.0.2.4]:2222"

# Nothing in a test can be a second machine: this is ssh(1) as far as it exchanges keys and asks nobody.
SSH = """#!{python}
import os, pathlib, subprocess, sys
words = sys.argv[1:]
if "-G" in words:
    os.execv("/usr/bin/ssh", ["ssh", *words])
options = {{}}
for option, value in zip(words, words[1:]):
    if option == "-o":
        options.setdefault(*value.split("=", 1))
presented = pathlib.Path("{directory}/presented").read_text()
if not presented:
    sys.exit("ssh: connect to host 192.0.2.4 port 2222: No route to host")
known = pathlib.Path(options["UserKnownHostsFile"])
if options.get("StrictHostKeyChecking") == "accept-new":
    known.write_text("{name} " + presented + "\\n")
elif "{name} " + presented not in known.read_text():
    sys.exit("Host key verification failed.")
sys.exit("192.0.2.4: Permission denied (publickey).")
"""


class Machine:
    """What this computer knows of a machine, and the key that it presents."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self.known_hosts = directory / "known_hosts"
        self.old, self.new = self._key("old"), self._key("new")
        (directory / "hosts.yml").write_text(INVENTORY.format(known_hosts=self.known_hosts, python=sys.executable))
        self.known_hosts.write_text(f"other {self.old}\n{NAME} {self.old}\n")
        ssh = directory / "ssh"
        ssh.write_text(SSH.format(python=sys.executable, directory=directory, name=NAME))
        ssh.chmod(0o755)
        self.presents(self.old)

    def _key(self, name: str) -> str:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.directory / name], check=True)
        return " ".join((self.directory / f"{name}.pub").read_text().split()[:2])

    def fingerprint(self, name: str) -> str:
        """Return the fingerprint that a person reads on the console."""
        done = subprocess.run(
            ["ssh-keygen", "-lf", self.directory / f"{name}.pub"], capture_output=True, text=True, check=True
        )
        return done.stdout.split()[1]

    def presents(self, key: str) -> None:
        """Let the machine present a key; without one it is off."""
        (self.directory / "presented").write_text(key)

    def run(self, *switches: str, **arguments: str) -> tuple[int, str]:
        """Run the action as a playbook does; returns its exit code and what it said."""
        play = f"- {{name: Try, hosts: all, tasks: [{{name: Do it, host_key: {arguments}}}]}}\n"
        (self.directory / "play.yml").write_text(play)
        command = ["ansible-playbook", "-i", self.directory / "hosts.yml", *switches, self.directory / "play.yml"]
        path = os.pathsep.join([str(self.directory), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "LC_ALL": "C.UTF-8"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def known(self) -> list[str]:
        """Return the keys that this computer knows of the machine."""
        lines = self.known_hosts.read_text().splitlines()
        return [line.split(" ", 1)[1] for line in lines if line.startswith(f"{NAME} ")]


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("presented", ["old", ""], ids=["known", "off"])
def test_a_known_key_is_left_alone_and_so_is_that_of_a_machine_that_is_off(machine: Machine, presented: str) -> None:
    machine.presents(machine.old if presented else "")

    code, said = machine.run(state="known")

    assert code == 0, said
    assert "changed=0" in said
    assert machine.known() == [machine.old]


def test_a_new_key_is_refused_with_its_fingerprint_until_somebody_vouches_for_it(machine: Machine) -> None:
    machine.presents(machine.new)

    for vouched in ("", machine.fingerprint("old")):
        code, said = machine.run(state="known", fingerprint=vouched)
        assert code != 0
        assert machine.fingerprint("new") in said
        assert machine.known() == [machine.old]

    code, said = machine.run("--check", state="known", fingerprint=machine.fingerprint("new"))
    assert "changed=1" in said
    assert machine.known() == [machine.old]

    code, said = machine.run(state="known", fingerprint=machine.fingerprint("new"))
    assert code == 0, said
    assert machine.known() == [machine.new]
    assert f"other {machine.old}\n" in machine.known_hosts.read_text()


def test_a_key_is_forgotten_once(machine: Machine) -> None:
    code, said = machine.run(state="unknown")
    assert code == 0, said
    assert "changed=1" in said
    assert machine.known() == []

    code, said = machine.run(state="unknown")
    assert "changed=0" in said


def test_another_machine_is_believed_only_if_somebody_vouches_for_its_key(machine: Machine) -> None:
    machine.presents(machine.new)

    code, said = machine.run(state="vouched")
    assert code != 0
    assert f"does not know: {machine.fingerprint('new')}" in said

    code, said = machine.run("--check", state="vouched", fingerprint=machine.fingerprint("new"))
    assert code == 0, said
    assert machine.known() == [machine.old]

    for changed in (1, 0):
        code, said = machine.run(state="vouched", fingerprint=machine.fingerprint("new"))
        assert code == 0, said
        assert f"changed={changed}" in said
        assert machine.known() == [machine.new]


@pytest.mark.parametrize(
    ("vouched", "words"),
    [("", "looks like the old machine"), ("new", "Is the old machine still on at this address?")],
)
def test_a_machine_that_was_not_replaced_is_refused(machine: Machine, vouched: str, words: str) -> None:
    code, said = machine.run(state="vouched", fingerprint=machine.fingerprint(vouched) if vouched else "")

    assert code != 0
    assert words in said
    assert machine.fingerprint("old") in said
    assert machine.known() == [machine.old]


def test_a_machine_that_is_off_cannot_be_vouched_for(machine: Machine) -> None:
    machine.presents("")

    code, said = machine.run(state="vouched", fingerprint=machine.fingerprint("new"))

    assert code != 0
    assert "node4 does not answer; is it on?" in said
    assert "unreachable=1" in said
