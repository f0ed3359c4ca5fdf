"""Measurements of quiet nodes."""

import dataclasses
import pathlib
from typing import Any

from rich.console import Console

from slurmstead.cluster.ask import ask
from slurmstead.errors import UsageError


@dataclasses.dataclass(frozen=True)
class Report:
    """What the module quiet_measure found."""

    ok: bool
    lines: list[str]
    answers: dict[str, Any]


def run(console: Console, inventory: pathlib.Path, *, times: int, seconds: int, plain: bool = False) -> Report:
    """Measure the quiet nodes of a cluster, with progress on `console`.

    :raises SteadError: they could not be measured
    """
    found = ask(
        *(console, "measure-quiet.yml", inventory, "quiet_measure", "lines"),
        unasked=UsageError(f"{inventory} has no quiet node", "Set slurm_quiet: true on workers."),
        extra_vars={"quiet_times": str(times), "quiet_deadline": str(seconds)},
        plain=plain,
    )
    return Report(bool(found["ok"]), list(found["lines"]), dict(found["answers"]))
