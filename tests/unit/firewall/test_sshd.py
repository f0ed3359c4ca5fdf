"""The connection over which a process was started, from real processes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.firewall import sshd


def grandchild(session: str | None) -> Iterator[int]:
    """The process ID of a child of a shell; only the shell has the variable, as a program under sudo sees it."""
    environment = {"PATH": os.environ["PATH"], **({"SSH_CONNECTION": session} if session else {})}
    shell = "env --ignore-environment /bin/sleep 60 & echo $!; wait"
    with subprocess.Popen(["sh", "-c", shell], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        yield pid
        os.kill(pid, 15)


@pytest.fixture
def session(request: pytest.FixtureRequest) -> Iterator[int]:
    """A process below an ssh session with the value of SSH_CONNECTION that the test gives."""
    yield from grandchild(request.param)


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        ("192.168.1.7 50022 192.168.1.11 22", ("192.168.1.7", 22)),
        ("fe80::1%eth0 50022 fe80::2%eth0 2222", ("fe80::1", 2222)),
        ("nonsense", None),
    ],
    indirect=["session"],
)
def test_the_connection_is_found_below_sudo(session: int, expected: tuple[str, int] | None) -> None:
    assert sshd.connection(session) == expected


def test_the_interface_of_a_peer_is_that_of_the_vpn(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "10.79.0.2 dev stead-vpn src 10.79.0.1 uid 0 \\    cache \n"
    monkeypatch.setattr(sshd, "run", lambda *_: (0, said, ""))

    assert sshd.interface("10.79.0.2") == "stead-vpn"


def test_without_sshd_the_port_is_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sshd, "run", lambda *command: (127, "", "sshd is not installed"))

    assert sshd.ports() == [22]


SETTINGS = """port 2222
port 22
usepam yes
portfoo 9
listenaddress 192.168.1.10:2200
listenaddress [fd00::9]:2201
"""


def test_all_ports_of_sshd_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sshd, "run", lambda *command: (0, SETTINGS, ""))

    assert sshd.ports() == [22, 2200, 2201, 2222]


@pytest.mark.parametrize(
    ("more", "expected"),
    [("", False), ("persourcepenalties crash:90 authfail:5\n", True), ("persourcepenalties no\n", True)],
)
def test_an_sshd_that_knows_penalties_is_recognized(monkeypatch: pytest.MonkeyPatch, more: str, expected: bool) -> None:
    monkeypatch.setattr(sshd, "run", lambda *command: (0, SETTINGS + more, ""))

    assert sshd.penalizes() is expected
