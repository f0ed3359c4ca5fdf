"""Measurements of quiet nodes."""

import dataclasses
import pathlib
from typing import Any

from rich.console import Console

from slurmstead.errors import UsageError
from slurmstead.paths import PLAYBOOKS
from slurmstead.runner import playbook
from slurmstead.runner.progress import Progress


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
    variables = {"quiet_times": str(times), "quiet_deadline": str(seconds)}
    with Progress(console, "measure-quiet.yml") as progress:
        result = playbook.run(
            PLAYBOOKS / "measure-quiet.yml", inventory, extra_vars=variables, plain=plain, observer=progress
        )
    if found := result.answer("quiet_measure", "lines"):
        return Report(bool(found["ok"]), list(found["lines"]), dict(found["answers"]))
    raise result.error or UsageError(f"{inventory} has no quiet node", "Set slurm_quiet: true on workers.")
