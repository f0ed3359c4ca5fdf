"""Shows the progress of a run, and afterwards its changes."""

import dataclasses
import textwrap
import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from slurmstead.runner.events import (
    Ended,
    Event,
    FileChanged,
    HostEnded,
    HostStarted,
    PlayStarted,
    Status,
    Task,
    TaskStarted,
)
from slurmstead.runner.outcome import Result
from slurmstead.wording import count, duration

HEARTBEAT_SECONDS = 30
"""Seconds between messages about a long task if the console cannot draw a live line."""

STYLES = {Status.FAILED: "bold red", Status.UNREACHABLE: "bold red", Status.IGNORED: "yellow"}


@dataclasses.dataclass
class _Running:
    """A running task."""

    task: Task
    started: float
    spoke: float
    hosts: set[str] = dataclasses.field(default_factory=set)
    done: dict[str, Status] = dataclasses.field(default_factory=dict)

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def progress(self) -> str:
        return f"{len(self.done)} of {count(len(self.hosts), 'host')}" if self.hosts else "starting"

    def outcome(self) -> str:
        statuses = list(self.done.values())
        words = [count(len(statuses) - statuses.count(Status.SKIPPED), "host")]
        shown = (Status.CHANGED, Status.FAILED, Status.IGNORED, Status.UNREACHABLE)
        words += [f"{statuses.count(status)} {status.value}" for status in shown if status in statuses]
        return ", ".join(words)


class Progress:
    """Prints each finished task, and draws the running ones if the console is a terminal.

    >>> with Progress(Console(), "site.yml") as progress:  # doctest: +SKIP
    ...     playbook.run(..., observer=progress)
    """

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._play = ""
        self._announced = ""
        self._running: dict[str, _Running] = {}
        self._started = time.monotonic()
        self._spinner = Spinner("dots")
        # Drawn by tick(), not by a thread: ansible-runner forks.
        self._live = Live(console=console, auto_refresh=False, transient=True, get_renderable=self._draw)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live.is_started:
            self._live.stop()

    def event(self, event: Event) -> None:
        """Show an event."""
        match event:
            case PlayStarted(name=name):
                self._finish_tasks()
                self._play = name
            case TaskStarted(task=task):
                self._finish_tasks(only_complete=True)
                self._find(task)
            case HostStarted(task=task, host=host):
                self._find(task).hosts.add(host)
            case HostEnded(task=task, host=host, status=status):
                running = self._find(task)
                running.hosts.add(host)
                running.done[host] = status
                if event.message:
                    self._print_failure(event)
            case FileChanged(host=host, text=text) if text.strip():
                self._announce_play()
                self._print_block(f"{host}:\n{text.strip()}", indent=4)
            case Ended():
                self._finish_tasks()

    def tick(self) -> None:
        """Draw the running tasks; without a terminal, print a line about them now and then."""
        if self._live.is_started:
            self._live.refresh()
            return
        for running in self._running.values():
            if time.monotonic() - running.spoke > HEARTBEAT_SECONDS:
                running.spoke = time.monotonic()
                self._print_line(
                    f"… {running.task.name}", f"{self._so_far(running)} after {duration(running.seconds())}"
                )

    def note(self) -> str:
        """Return how far a long task is, if it tells."""
        return ""

    def _so_far(self, running: _Running) -> str:
        return ", ".join(filter(None, (running.progress(), self.note())))

    def _find(self, task: Task) -> _Running:
        now = time.monotonic()
        return self._running.setdefault(task.uuid, _Running(task, now, now))

    def _finish_tasks(self, only_complete: bool = False) -> None:
        for uuid, running in list(self._running.items()):
            if only_complete and len(running.done) < len(running.hosts):
                continue
            del self._running[uuid]
            if any(status is not Status.SKIPPED for status in running.done.values()):
                self._print_line(running.task.name, f"{running.outcome()}, {duration(running.seconds())}")

    def _announce_play(self) -> None:
        if self._play != self._announced:
            self._announced = self._play
            self._console.print(Text(f"  {self._play}", style="bold"))

    def _print_line(self, left: str, right: str) -> None:
        self._announce_play()
        self._console.print(Text.assemble(f"    {left}  ", (right, "dim")), soft_wrap=True)

    def _print_failure(self, end: HostEnded) -> None:
        self._announce_play()
        host = end.machine if end.status is Status.UNREACHABLE else end.host
        self._console.print(Text(f"    {host}: {end.status.value}: {end.task.name}", style=STYLES[end.status]))
        self._print_block(end.message, indent=8)

    def _print_block(self, text: str, *, indent: int) -> None:
        self._console.print(Text(textwrap.indent(text, " " * indent)), soft_wrap=True)

    def _draw(self) -> RenderableType:
        tasks = [
            Text(
                f"    {running.task.name}  {self._so_far(running)}, {duration(running.seconds())}",
                overflow="ellipsis",
                no_wrap=True,
            )
            for running in self._running.values()
        ]
        where = f"{self._title} › {self._play}" if self._play else self._title
        total = f"{where}  {duration(time.monotonic() - self._started)} in all"
        row = Table.grid(padding=(0, 1))
        row.add_row(self._spinner, Text(total, overflow="ellipsis", no_wrap=True))
        return Group(row, *tasks)


def print_summary(console: Console, result: Result) -> None:
    """Print the outcome and the changes of a run on each host."""
    table = Table("host", "outcome", "tasks", "changed", "what changed", box=None, pad_edge=False, header_style="bold")
    for host, summary in sorted(result.hosts.items()):
        trouble = "unreachable" if summary.unreachable else "failed" if summary.failed else ""
        table.add_row(
            Text(host),
            Text(trouble or "good", style="bold red" if trouble else "green"),
            str(summary.ran),
            str(len(summary.changed)),
            Text("\n".join(summary.changed)),
        )
    console.print()
    console.print(table)
    print_warnings(console, result)
    changed = sum(len(summary.changed) for summary in result.hosts.values())
    hosts = count(len(result.hosts), "host")
    console.print(f"{result.playbook}: {count(changed, 'change')} on {hosts} in {duration(result.seconds)}")


def print_warnings(console: Console, result: Result) -> None:
    """Print the warnings of a run."""
    for warning in result.warnings:
        console.print(Text(warning, style="yellow"), soft_wrap=True)
