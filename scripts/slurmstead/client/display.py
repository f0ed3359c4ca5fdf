"""Shows runs as a table, and copies as progress bars."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from slurmstead.client.records import ENDLESS, State
from slurmstead.client.remote.space import size
from slurmstead.wording import duration

STYLES = {"completed": "green", "running": "cyan", "pending": "dim"}


class Bars:
    """Shows the progress of a transfer as a bar on a terminal; notes are always printed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._size = 0

    def __enter__(self) -> Self:
        # The display starts with the first copy: until then ssh may ask a question on the terminal.
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hide()

    def hide(self) -> None:
        """Remove the bar, so that other output can follow."""
        self._progress.stop()

    def began(self, what: str, size: int) -> None:
        """Show a bar for `size` bytes."""
        self._size = size
        for task in self._progress.task_ids:
            self._progress.remove_task(task)
        self._progress.add_task(what, total=max(size, 1))
        self._progress.start()

    def copied(self, part: float) -> None:
        """Draw the bar up to a fraction of the bytes."""
        for task in self._progress.task_ids:
            self._progress.update(task, completed=part * max(self._size, 1))

    def note(self, text: str) -> None:
        """Print a note above the bar."""
        self._console.print(Text(f"stead: {text}", style="yellow"), soft_wrap=True)


def state_words(state: State) -> str:
    """Return the state of a run; for an array, also how many tasks have ended and how many of them failed.

    >>> counts = {"running": 1, "completed": 2, "failed": 1}
    >>> state_words(State("a", "a", (), "0-3", "running", counts, 0, 0, 0, (), 0, "", 0, 0, "", ()))
    'running 3/4, 1 bad'
    """
    if not state.array:
        return state.state + (f" ({state.exit_code})" if state.state == "failed" and state.exit_code else "")
    total = sum(state.counts.values())
    ended = total - sum(state.counts.get(name, 0) for name in ENDLESS)
    bad = ended - state.counts.get("completed", 0)
    part = "" if state.ended else f" {ended}/{total}"
    return f"{state.state}{part}" + (f", {bad} bad" if bad else "")


def table(states: Sequence[State], now: float) -> Table:
    """Return runs as a table, the latest last."""
    found = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("job", "run", "state", "nodes", "took", "memory"):
        found.add_column(column, no_wrap=column in ("run", "state"))
    for state in states:
        seconds = (state.end or now) - state.start if state.start else None
        nodes = ",".join(state.nodes)
        found.add_row(
            ",".join(state.jobs),
            Text(state.id),
            Text(state_words(state), style=STYLES.get(state.state, "bold red")),
            nodes if len(state.nodes) <= 3 else f"{len(state.nodes)} nodes",
            "" if seconds is None else duration(seconds),
            size(state.memory_bytes) if state.memory_bytes else "",
        )
    return found
