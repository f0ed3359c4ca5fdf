"""The outcome of a check or a scenario."""

import dataclasses
import re

from rich.console import Console
from rich.text import Text

from slurmstead.wording import duration

PYTEST_CLOSING = re.compile(r"^(=+ )?\d+ (passed|failed|errors?|skipped|deselected)\b.* in [0-9.]+s")
PASSED = re.compile(r"\b(\d+) passed\b")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of a check; `seconds` is its duration, `output` everything that it printed."""

    name: str
    ok: bool
    seconds: float
    output: str

    @property
    def closing(self) -> list[str]:
        """Return pytest's summary lines."""
        # molecule draws a border before each line.
        lines = (line.strip(" │") for line in COLOUR.sub("", self.output).splitlines())
        return [line for line in lines if PYTEST_CLOSING.match(line)]

    @property
    def tests(self) -> int:
        """The number of tests that passed."""
        return sum(int(number) for line in self.closing for number in PASSED.findall(line))


def show(console: Console, outcome: Outcome) -> None:
    """Print a check's result and its duration in one line."""
    mark = Text("ok    ", style="green") if outcome.ok else Text("FAILED", style="bold red")
    console.print(Text.assemble(mark, f"  {outcome.name:<24} {duration(outcome.seconds):>10}"))


def show_all(console: Console, outcomes: list[Outcome]) -> None:
    """Print all results, then pytest's summary lines."""
    console.print()
    for outcome in outcomes:
        show(console, outcome)
    for outcome in outcomes:
        for line in outcome.closing:
            console.print(Text(f"{outcome.name}: {line.strip('= ')}"), soft_wrap=True)
