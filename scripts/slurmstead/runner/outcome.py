"""The outcome of a run: from the events of a playbook to an exit code."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from slurmstead.errors import InventoryError, SteadError, TaskError, UnreachableError, UsageError
from slurmstead.runner import events

GOES_ON = ("site.yml", "rotate-key.yml", "upgrade-cluster.yml")
"""Playbooks that complete all other hosts if one is off, and can wake those that sleep (--wake)."""

EMPTY = "host pattern, ignoring: __"
"""In Ansible's warning about a group that a run makes, whose name begins with __."""


@dataclasses.dataclass
class HostSummary:
    """The outcome on a host: `ran` and `failed` count tasks, `changed` names the tasks that changed something."""

    ran: int = 0
    changed: list[str] = dataclasses.field(default_factory=list)
    failed: int = 0
    unreachable: bool = False


@dataclasses.dataclass
class Result:
    """The outcome of a run; `words` are Ansible's messages outside of tasks, `seconds` is its duration."""

    playbook: str
    hosts: dict[str, HostSummary] = dataclasses.field(default_factory=dict)
    ended: list[events.HostEnded] = dataclasses.field(default_factory=list)
    began: bool = False
    returned: int = 0
    words: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0

    def add(self, event: events.Event) -> None:
        """Record an event."""
        match event:
            case events.HostEnded(host=host, status=status):
                self.ended.append(event)
                if status is events.Status.CHANGED:
                    self.hosts.setdefault(host, HostSummary()).changed.append(event.task.name)
            case events.Ended(ok=ok, failed=failed, unreachable=unreachable):
                self.began = True
                handed_over = [end for end in self._losses() if end.delegate]
                delegates = {end.machine for end in handed_over}
                blamed = [end.host for end in handed_over]
                for host in {*ok, *failed, *unreachable, *delegates}:
                    summary = self.hosts.setdefault(host, HostSummary())
                    summary.failed = failed.get(host, 0)
                    summary.unreachable = host in delegates or unreachable.get(host, 0) > blamed.count(host)
                    summary.ran = ok.get(host, 0) + summary.failed
            case events.Said(text=text) if text.strip():
                self.words.append(text.strip())

    def results_of(self, action: str) -> list[Mapping[str, Any]]:
        """Return the results of the module `action` on all hosts."""
        return [end.result for end in self.ended if end.task.action.rpartition(".")[2] == action and end.result]

    def answer(self, action: str, key: str) -> Mapping[str, Any]:
        """Return the first result of the module `action` that has a key; empty if the run did not get that far."""
        return next((result for result in self.results_of(action) if key in result), {})

    @property
    def warnings(self) -> list[str]:
        """Ansible's warnings, without duplicates; not that a group which a run makes is empty."""
        lines = (line for line in self.words if line.startswith("[WARNING]") and EMPTY not in line)
        return list(dict.fromkeys(lines))

    @property
    def error(self) -> SteadError | None:
        """The error of the run, or None; a failed task takes precedence over an unreachable host."""
        failed = [host for host, summary in self.hosts.items() if summary.failed]
        unreachable = [host for host, summary in self.hosts.items() if summary.unreachable]
        if not self.began and self.returned:
            if self.ended:
                return TaskError(f"{self.playbook} stopped:\n" + "\n".join(self.words[-events.OUTPUT_LINES :]))
            return UsageError(f"{self.playbook} could not start:\n" + "\n".join(self.words))
        untouched = not any(summary.changed for summary in self.hosts.values())
        if untouched and any(end.task.is_validation and end.host in failed for end in self._failures()):
            return InventoryError(
                f"the inventory has mistakes; {self.playbook} changed nothing", "Correct the mistakes listed above."
            )
        if failed:
            return TaskError(
                f"{self.playbook} failed on {_names(failed)}", "Fix the errors above, then run the same command again."
            )
        if unreachable and set(unreachable) <= self.asleep:
            verb = "sleeps" if len(unreachable) == 1 else "sleep"
            how = "--wake" if self.playbook in GOES_ON else "`scripts/stead power on`"
            what, hint = ", so this remains to be done there", f"No job runs there until then. To do it now, use {how}."
            noted = any(result.get("noted") for result in self.results_of("power_missed"))
            return UnreachableError(
                f"{_names(unreachable)} {verb}{what if noted else ''}{self._others()}",
                hint if noted else "To wake a machine, run `scripts/stead power on`.",
                unreachable,
            )
        if unreachable:
            hint = "Check its power and network, then run the same command again to continue."
            asleep = sorted(self.asleep.intersection(unreachable))
            slept = f" ({_names(asleep)} sleeping)" if asleep else ""
            text = f"{_names(unreachable)} could not be reached{slept}{self._others()}"
            return UnreachableError(text, hint, unreachable)
        if self.returned:
            return TaskError(
                f"{self.playbook} exited with {self.returned}:\n" + "\n".join(self.words[-events.OUTPUT_LINES :])
            )
        return None

    @property
    def asleep(self) -> set[str]:
        """The workers that slept during the run."""
        return {name for result in self.results_of("power_missed") for name in result.get("asleep") or ()}

    def _others(self) -> str:
        return "; the other hosts were completed" if self.playbook in GOES_ON and self._went_on() else ""

    def _losses(self) -> list[events.HostEnded]:
        return [end for end in self.ended if end.status is events.Status.UNREACHABLE]

    def _went_on(self) -> bool:
        """Whether other hosts continued after a host was lost; a loss during the first checks ends the run for all."""
        losses = self._losses()
        if any(end.delegate for end in losses):
            return False
        return not losses or any(end.task != losses[-1].task for end in self.ended[self.ended.index(losses[-1]) :])

    def _failures(self) -> Iterator[events.HostEnded]:
        return (end for end in self.ended if end.status is events.Status.FAILED)


def _names(hosts: list[str]) -> str:
    return ", ".join(sorted(hosts))
