"""Whether a system was told to shut down: what was not told is never cut off."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest

from ansible.module_utils.slurmstead.power import shutdown
from ansible.module_utils.slurmstead.power.model import Machine, PowerError

MACHINE = Machine("node1", "plug", host="127.0.0.1", address="127.0.0.1", plug="tasmota")


def test_an_sshd_that_closes_before_the_login_was_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With too many connections (MaxStartups), or a penalty for the caller, sshd does so."""
    server = socket.create_server(("127.0.0.1", 0))

    def close_at_once() -> None:
        caller, _ = server.accept()
        with caller:
            caller.recv(256)

    threading.Thread(target=close_at_once, daemon=True).start()
    port = f"Port={server.getsockname()[1]}"
    monkeypatch.setattr(shutdown, "SSH", (*shutdown.SSH, "-o", port))

    with server, pytest.raises(PowerError, match="ssh to 127.0.0.1 ends with 255"):
        shutdown.shut_down(MACHINE)


def test_a_system_that_goes_down_during_the_call_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "Warning: Permanently added '127.0.0.1'.\r\nConnection to 127.0.0.1 closed by remote host.\r\n"
    commands: list[str] = []
    monkeypatch.setattr(shutdown, "run", lambda *words, **_: (255, commands.append(words[-1]) or "", said))

    shutdown.shut_down(MACHINE)

    assert commands == ["poweroff"]


@pytest.mark.parametrize(
    ("code", "said", "can"),
    [
        # What ssh 9.2 prints for a key with `restrict`.
        (255, "channel 0: open failed: administratively prohibited: open failed\r\nstdio forwarding failed\r\n", True),
        (0, "", True),
        (255, "root@127.0.0.1: Permission denied (publickey).\r\n", False),
        (124, "ssh did not answer within 20 s", False),
    ],
)
def test_a_system_that_refuses_the_login_is_found_without_a_command(
    monkeypatch: pytest.MonkeyPatch, code: int, said: str, can: bool
) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(shutdown, "run", lambda *words, **_: (code, calls.append(words) or "", said))

    with contextlib.nullcontext() if can else pytest.raises(PowerError, match=f"ssh to 127.0.0.1 ends with {code}"):
        shutdown.check(MACHINE)

    # -W: no session, so the command of the key, which shuts the system down, is not run.
    assert calls[0][-3:] == ("-W", "localhost:22", "root@127.0.0.1")


def test_a_device_that_shuts_down_needs_no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(shutdown, "run", lambda *words, **_: calls.append(words))

    shutdown.check(Machine("node1", "redfish", host="127.0.0.1", address="127.0.0.1"))

    assert not calls
