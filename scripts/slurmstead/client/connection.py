"""One ssh connection to the head node, shared by all that a command does there."""

import contextlib
import json
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, Self

from slurmstead.client import bundle
from slurmstead.client.head import Head, user_file
from slurmstead.errors import IncompleteCopy, MachineError, SteadError, TaskError, UnreachableError, UsageError

CONNECT_SECONDS = 5
"""A head node that does not answer within this time counts as off."""
PATIENT_SECONDS = 45
"""For a head node that accepts connections but is too busy to greet: five logins at once on a small board."""
ANSWER_SECONDS = 600
"""For slow requests, such as listing many files; a lost connection is noticed much earlier."""

KINDS: dict[str, type[SteadError]] = {
    "usage": UsageError,
    "unreachable": UnreachableError,
    "incomplete": IncompleteCopy,
}
"""Exceptions by the kind of the head node's refusal; any other kind is a TaskError."""

BUSY = re.compile(r"timed out", re.IGNORECASE)
"""ssh's words when no server greets it; when it cannot connect, they begin with `connect to host`."""

OPTIONS = {
    "ConnectionAttempts": 1,
    # A lost connection is noticed within 20 s.
    "ServerAliveInterval": 5,
    "ServerAliveCountMax": 3,
    "LogLevel": "ERROR",
}


class Connection:
    """A connection to the head node.

    >>> with Connection(Head("alice@node3")) as connection:  # doctest: +SKIP
    ...     connection.ask("jobs")
    """

    def __init__(self, head: Head, note: Callable[[str], None] = lambda _: None) -> None:
        """Prepare the connection; `__enter__` opens it.

        :param note: receives notes for the waiting user
        """
        self.head = head
        self._note = note
        self._sockets: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        """Open the connection.

        :raises UnreachableError: the head node does not answer, or refuses the user
        :raises UsageError: the configuration of ssh cannot be read
        """
        if self.head.is_local:
            return self
        if self.head.ssh_config:
            _check_config(self.head.ssh_config)
        # Short, because socket paths are limited to 107 bytes (unix(7)).
        self._sockets = tempfile.TemporaryDirectory(prefix="stead-")
        code, said = self._open(CONNECT_SECONDS)
        if code and BUSY.search(said) and "connect to host" not in said:
            self._note(f"{self.head.host} is slow to answer; waiting up to {PATIENT_SECONDS} s more")
            code, said = self._open(PATIENT_SECONDS)
        if code:
            self._sockets.cleanup()
            raise UnreachableError(
                f"{self.head.host} did not answer: {_last_line(said)}",
                "Is it on, and does `ssh` work? Jobs go on without this computer; repeat the same command to continue.",
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._sockets is not None:
            subprocess.run(
                [*self.ssh(), "-O", "exit", self.head.host],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
            with contextlib.suppress(OSError):
                self._sockets.cleanup()

    def _open(self, seconds: int) -> tuple[int, str]:
        """Return the exit code and the output of ssh, which must connect within the given seconds."""
        command = [*self.ssh(seconds), "-o", "ControlMaster=yes", "-o", "ControlPersist=60", "-f", "-N"]
        # A file: the connection stays in the background and would keep a pipe open.
        with tempfile.TemporaryFile() as words:
            try:
                done = subprocess.run(
                    [*command, self.head.host], stdin=subprocess.DEVNULL, stdout=words, stderr=words, check=False
                )
            except FileNotFoundError:
                raise MachineError("this computer has no ssh", "Install it, on Debian: openssh-client") from None
            words.seek(0)
            return done.returncode, words.read().decode(errors="replace").strip()

    def ssh(self, seconds: int = PATIENT_SECONDS) -> list[str]:
        """Return the beginning of a command line that uses this connection, or opens its own within `seconds`."""
        config = ["-F", self.head.ssh_config] if self.head.ssh_config else []
        options = [word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}")]
        socket = ["-o", f"ControlPath={self._sockets.name}/ssh"] if self._sockets else []
        return ["ssh", *config, "-o", f"ConnectTimeout={seconds}", *options, *socket]

    def command(self, words: str) -> list[str]:
        """Return the command line that runs a line of shell on the head node."""
        return ["sh", "-c", words] if self.head.is_local else [*self.ssh(), self.head.host, words]

    def ask(self, action: str, **request: Any) -> dict[str, Any]:
        """Return the head node's answer to a request.

        :raises UnreachableError: there was no answer
        :raises SteadError: the head node refused
        """
        try:
            done = subprocess.run(
                self.command(_remote_command()),
                input=self._message(action, request),
                capture_output=True,
                timeout=ANSWER_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise self._cut(f"no answer within {ANSWER_SECONDS} s") from None
        answer = _parse(done.stdout)
        if answer is None:
            raise self._failed(done.returncode, done.stderr)
        if "error" in answer:
            raise refusal(answer["error"])
        return answer

    @contextlib.contextmanager
    def stream(self, action: str, **request: Any) -> Iterator["subprocess.Popen[bytes]"]:
        """Yield the process whose standard output is the answer; its exit code is checked when the block ends.

        :raises UnreachableError: the connection was lost
        :raises SteadError: the head node refused
        """
        command = self.command(_remote_command())
        with tempfile.TemporaryFile() as words, tempfile.TemporaryFile() as message:
            message.write(self._message(action, request))
            message.seek(0)
            with subprocess.Popen(command, stdin=message, stdout=subprocess.PIPE, stderr=words) as process:
                try:
                    yield process
                except BaseException:
                    process.kill()
                    raise
            words.seek(0)
            said = words.read()
        if process.returncode:
            answer = _parse(said)
            if answer is not None and "error" in answer:
                raise refusal(answer["error"])
            raise self._failed(process.returncode, said)

    def _message(self, action: str, request: dict[str, Any]) -> bytes:
        program = bundle.program()
        line = {"action": action, "directory": self.head.directory, **request, "program_bytes": len(program)}
        return json.dumps(line).encode() + b"\n" + program

    def _failed(self, code: int, stderr: bytes) -> SteadError:
        said = stderr.decode(errors="replace").strip()
        # 255 is ssh's own; a negative number or 141 means that it was killed, for example with its master.
        if code in (255, 141) or code < 0 or not said:
            return self._cut(_last_line(said) or f"ssh exited with {code}")
        if code == 127:
            return TaskError(f"{self.head.host} has no python3: {_last_line(said)}", "Check that it is the head node.")
        return TaskError(f"the program on {self.head.host} exited with {code}:\n{said}")

    def _cut(self, why: str) -> UnreachableError:
        return UnreachableError(
            f"the connection to {self.head.host} was lost: {why}",
            "Repeat the same command to continue; jobs go on without this computer.",
        )


def _check_config(path: str) -> None:
    """Check that ssh can read its configuration: otherwise it exits as if the head node were off."""
    try:
        with open(path):
            pass
    except OSError as error:
        raise UsageError(
            f"the ssh configuration {path} cannot be read: {error.strerror}",
            f"Correct --ssh-config, STEAD_SSH_CONFIG or ssh_config in {user_file()}.",
        ) from None


def _remote_command() -> str:
    return f"python3 -I -X utf8 -c {shlex.quote(bundle.ON_HEAD)}"


def _parse(output: bytes) -> dict[str, Any] | None:
    """Return the answer, which is the last line: a login shell can print lines before it."""
    lines = output.strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _last_line(text: str) -> str:
    lines = text.splitlines()
    return lines[-1] if lines else ""


def refusal(error: dict[str, str]) -> SteadError:
    """Return the head node's refusal as an exception."""
    return KINDS.get(error["kind"], TaskError)(error["text"], error["hint"])
