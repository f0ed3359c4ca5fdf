"""The errors that end a command, with their exit codes.

SteadError
├── CheckFailed        1  a check found a problem
├── UsageError         2  the request cannot be carried out as written
│   ├── InventoryError 2  the inventory is missing, empty or invalid
│   ├── IncompleteCopy 2  a file changed or could not be read while it was copied; repeating continues
│   └── MachineError   2  this computer lacks something that the command needs
├── UnreachableError   3  a host did not answer; the run may have completed the others
├── TaskError          4  a task failed on a host
│   └── JobFailed      4  a job on the cluster failed
└── Interrupted  128 + n  stopped by signal n: 130 after Ctrl-C, 143 after SIGTERM

The exit codes are an interface: docs/tour.md lists them, and tests/unit/scripts/cli/test_exit_codes.py checks them.
"""

import enum
from collections.abc import Iterable
from typing import ClassVar


class ExitCode(enum.IntEnum):
    """The exit codes of the command."""

    OK = 0
    CHECK_FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    TASK_FAILED = 4
    INTERRUPTED = 130


class SteadError(Exception):
    """An error with an exit code; the text says what was expected and seen, `hint` what to do."""

    exit_code: ClassVar[ExitCode]

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint

    @property
    def code(self) -> int:
        """The exit code of the process."""
        return self.exit_code


class CheckFailed(SteadError):
    """A check found a problem."""

    exit_code = ExitCode.CHECK_FAILED


class UsageError(SteadError):
    """The request cannot be carried out as written."""

    exit_code = ExitCode.USAGE


class InventoryError(UsageError):
    """The inventory is missing, empty or invalid."""


class IncompleteCopy(UsageError):
    """A file changed or could not be read while it was copied; the same call continues with the others."""


class MachineError(UsageError):
    """This computer lacks something that the command needs."""


class UnreachableError(SteadError):
    """A host did not answer; `hosts` are those of a run."""

    exit_code = ExitCode.UNREACHABLE

    def __init__(self, text: str, hint: str = "", hosts: Iterable[str] = ()) -> None:
        super().__init__(text, hint)
        self.hosts = frozenset(hosts)


class TaskError(SteadError):
    """A task failed on a host."""

    exit_code = ExitCode.TASK_FAILED


class JobFailed(TaskError):
    """A job on the cluster failed; `state` is its final state, `tail` the last lines of its standard error."""

    def __init__(self, text: str, hint: str = "", state: object = None, tail: str = "") -> None:
        super().__init__(f"{text}\n{tail}" if tail else text, hint)
        self.state = state
        self.tail = tail


class Interrupted(SteadError):
    """A signal from the user or another process stopped the command."""

    exit_code = ExitCode.INTERRUPTED

    def __init__(self, signal_number: int, hint: str = "") -> None:
        super().__init__("interrupted", hint)
        self.signal_number = signal_number

    @property
    def code(self) -> int:
        """128 + the signal's number, as in a shell."""
        return 128 + self.signal_number
