"""Running a playbook. This module alone knows ansible-runner."""

import contextlib
import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, Protocol

import ansible_runner

from slurmstead import events, processes
from slurmstead.errors import ExitCode, Interrupted, InventoryError, SteadError, TaskError, UnreachableError, UsageError
from slurmstead.paths import ROOT

TICK_SECONDS = 0.25
GRACE_SECONDS = 10
"""How long an interrupted run may take to end by itself."""

PASSED_ON = {
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "SSH_AUTH_SOCK", "SSL_CERT_FILE"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
}
PASSED_ON_PREFIXES = ("ANSIBLE_", "STEAD_", "XDG_")

LAST_STRATEGY_PLUGINS = (2, 22)
"""ansible-core 2.23 will load no strategy plugin but its own (the deprecation in ansible/plugins/loader.py)."""


class Observer(Protocol):
    """Who watches a run."""

    def event(self, event: events.Event) -> None:
        """Take note of an event."""

    def tick(self) -> None:
        """Use a moment in which nothing happened; called several times a second."""


@dataclasses.dataclass
class HostSummary:
    """What a run did on a host; `changed` are the names of the tasks that changed something, in their order."""

    ran: int = 0
    changed: list[str] = dataclasses.field(default_factory=list)
    failed: int = 0
    unreachable: bool = False


@dataclasses.dataclass
class Result:
    """How a run went; `words` is what Ansible said outside of tasks, `seconds` its duration."""

    playbook: str
    hosts: dict[str, HostSummary] = dataclasses.field(default_factory=dict)
    ended: list[events.HostEnded] = dataclasses.field(default_factory=list)
    began: bool = False
    returned: int = 0
    words: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0

    def add(self, event: events.Event) -> None:
        """Take note of an event."""
        match event:
            case events.HostEnded(host=host, status=status):
                self.ended.append(event)
                if status is events.Status.CHANGED:
                    self.hosts.setdefault(host, HostSummary()).changed.append(event.task.name)
            case events.Ended(ok=ok, failed=failed, unreachable=unreachable):
                self.began = True
                for host in {*ok, *failed, *unreachable}:
                    summary = self.hosts.setdefault(host, HostSummary())
                    summary.failed, summary.unreachable = failed.get(host, 0), host in unreachable
                    summary.ran = ok.get(host, 0) + summary.failed
            case events.Said(text=text) if text.strip():
                self.words.append(text.strip())

    def results_of(self, action: str) -> list[Mapping[str, Any]]:
        """Return what the module `action` returned, wherever it ran."""
        return [end.result for end in self.ended if end.task.action.rpartition(".")[2] == action and end.result]

    @property
    def warnings(self) -> list[str]:
        """What Ansible warned of, each once."""
        return list(dict.fromkeys(line for line in self.words if line.startswith("[WARNING]")))

    @property
    def error(self) -> SteadError | None:
        """Why the run was not good; a failed task outweighs a host that did not answer."""
        failed = [host for host, summary in self.hosts.items() if summary.failed]
        unreachable = [host for host, summary in self.hosts.items() if summary.unreachable]
        if not self.began and self.returned:
            return UsageError(f"{self.playbook} could not begin:\n" + "\n".join(self.words))
        if any(end.task.is_validation and end.host in failed for end in self._failures()):
            return InventoryError(f"the inventory was refused before {self.playbook} changed anything")
        if failed:
            return TaskError(f"{self.playbook} failed on {_names(failed)}")
        if unreachable:
            hint = "Is the machine on, and does `ssh` reach it? The same command carries on when it is back."
            return UnreachableError(f"{_names(unreachable)} could not be reached; the other hosts were completed", hint)
        if self.returned:
            return TaskError(
                f"{self.playbook} ended with {self.returned}:\n" + "\n".join(self.words[-events.OUTPUT_LINES :])
            )
        return None

    @property
    def exit_code(self) -> ExitCode:
        """The outcome as the command's exit code."""
        return self.error.exit_code if self.error else ExitCode.OK

    def _failures(self) -> Iterator[events.HostEnded]:
        return (end for end in self.ended if end.status is events.Status.FAILED)


def _names(hosts: list[str]) -> str:
    return ", ".join(sorted(hosts))


class _Cancellation:
    """Ends a run on a signal: Ansible is asked first, then whatever it started is told, then killed."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._requests = 0
        self._deadline = 0.0
        self._seen: list[processes.Process] = []

    def request(self, number: int, _frame: FrameType | None = None) -> None:
        """Take note of a signal; a second one shortens the grace."""
        self.number = self.number or number
        self._requests += 1

    def due(self) -> bool:
        """Bring the end forward; True when ansible-runner is to give up on the process."""
        if self.number is None:
            return False
        running = processes.descendants(os.getpid())
        self._seen += [process for process in running if process not in self._seen]
        if not self._deadline:
            self._deadline = time.monotonic() + GRACE_SECONDS
            playbooks = [process for process in running if process.parent == os.getpid()]
            processes.send(playbooks, signal.SIGINT)
            # Ansible's workers are sessions of their own and may be in the middle of a command on this computer.
            processes.send([process for process in running if process not in playbooks], signal.SIGTERM)
        return self._requests > 1 or time.monotonic() > self._deadline

    def finish(self) -> None:
        """Leave no process behind, then tell the caller."""
        if self.number is None:
            return
        processes.end(self._seen, seconds=2)
        raise Interrupted(self.number, "The same command carries on from here.")


@contextlib.contextmanager
def _signals_to(cancellation: _Cancellation) -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, cancellation.request) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Replace this process's environment for a while: ansible-runner hands on, and writes down, all that it finds."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def accelerator() -> dict[str, str]:
    """Return the settings that make Ansible use mitogen; none if it is missing or ansible-core does not support it."""
    core = tuple(int(part) for part in importlib.metadata.version("ansible-core").split(".")[:2])
    package = importlib.util.find_spec("ansible_mitogen")
    if core > LAST_STRATEGY_PLUGINS or package is None or package.origin is None:
        return {}
    strategies = pathlib.Path(package.origin).parent / "plugins" / "strategy"
    return {
        "ANSIBLE_STRATEGY": "mitogen_linear",
        "ANSIBLE_STRATEGY_PLUGINS": str(strategies),
        "ANSIBLE_DEPRECATION_WARNINGS": "False",
    }


def environment(outside: Mapping[str, str], *, plain: bool) -> dict[str, str]:
    """Return the environment of a run: what Ansible and ssh need of `outside`, and nothing that could be a secret."""
    kept = {name: value for name, value in outside.items() if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES)}
    return {
        **({} if plain else accelerator()),
        # ansible-runner would switch this off where nobody set it.
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        **kept,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        # Ansible refuses to start in a locale that is not UTF-8.
        "LC_ALL": "C.UTF-8",
    }


def run(
    playbook: pathlib.Path,
    inventory: pathlib.Path,
    *,
    limit: str | None = None,
    tags: str | None = None,
    extra_vars: Mapping[str, str] | None = None,
    check: bool = False,
    diff: bool = False,
    plain: bool = False,
    observer: Observer | None = None,
) -> Result:
    """Run a playbook and return how it went.

    :param limit: pattern of the hosts to work on (`--limit`)
    :param tags: names of the tags to run, joined with commas
    :param plain: leave the accelerator out
    :raises InventoryError: the inventory does not exist
    :raises Interrupted: a signal ended the run; no process of it is left
    """
    if not inventory.exists():
        raise InventoryError(f"there is no inventory {inventory}", "Give the path of a directory or file with -i.")
    result = Result(playbook.name)
    cancellation = _Cancellation()

    def take(raw: dict[str, Any]) -> bool:
        event = events.parse(raw)
        if event is not None:
            result.add(event)
            if observer is not None:
                observer.event(event)
        return False  # nothing is kept on disk

    def cancelled() -> bool:
        if observer is not None:
            observer.tick()
        return cancellation.due()

    switches = [switch for switch, wanted in (("--check", check), ("--diff", diff)) if wanted]
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="stead-") as private,
        _environment(environment(os.environ, plain=plain)),
        _signals_to(cancellation),
    ):
        # ansible-runner 2.4.3 forgets settings that are given as an argument when it writes no files.
        (pathlib.Path(private) / "env").mkdir()
        (pathlib.Path(private) / "env" / "settings").write_text(json.dumps({"pexpect_timeout": TICK_SECONDS}))
        runner = ansible_runner.run(
            private_data_dir=private,
            project_dir=str(ROOT),
            playbook=str(playbook),
            inventory=str(inventory),
            limit=limit,
            tags=tags,
            extravars=dict(extra_vars or {}),
            cmdline=" ".join(switches) or None,
            quiet=True,
            suppress_env_files=True,
            event_handler=take,
            cancel_callback=cancelled,
        )
        cancellation.finish()
    result.returned = runner.rc or 0
    result.seconds = time.monotonic() - started
    return result
