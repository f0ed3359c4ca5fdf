"""Archives of a cluster: what makes it this cluster, beside the inventory."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from slurmstead.errors import CheckFailed, UsageError
from slurmstead.paths import PLAYBOOKS
from slurmstead.runner import playbook
from slurmstead.runner.outcome import Result
from slurmstead.runner.progress import Progress
from slurmstead.wording import count


@dataclasses.dataclass(frozen=True)
class Report:
    """An archive that was written; `jobs` is how many it has by state, None where no slurmctld answered."""

    path: pathlib.Path
    size: int
    files: int
    cluster: str
    slurm: str
    jobs: Mapping[str, int] | None

    @property
    def lines(self) -> list[str]:
        """What a person wants to know of it."""
        jobs = "slurmctld did not answer, so the state is what it left"
        if self.jobs is not None:
            jobs = " and ".join(f"{number} {state}" for state, number in self.jobs.items()) + " jobs"
        size = f"{self.size / 1024:.0f} KiB"
        return [
            f"{self.cluster}, Slurm {self.slurm}, {jobs}, {count(self.files, 'file')}, {size}, read back and compared",
            "It holds the MUNGE key: keep it as you keep a password, and not on the cluster.",
        ]


def parse(results: list[Mapping[str, Any]]) -> Report | None:
    """Return the report that backup-cluster.yml showed, or None if it did not come to that."""
    for result in results:
        said = result.get("msg")
        if isinstance(said, dict) and "path" in said:
            path = pathlib.Path(said["path"])
            return Report(path, said["bytes"], said["files"], said["cluster"], said["slurm"], said["jobs"])
    return None


def run(console: Console, inventory: pathlib.Path, output: pathlib.Path | None, *, plain: bool = False) -> Report:
    """Write an archive of a cluster; how far it is is shown on `console`.

    :raises SteadError: there is no archive
    """
    wanted = {"backup_output": str(output.absolute())} if output else {}
    if output and not output.absolute().parent.is_dir():
        raise UsageError(
            f"there is not a directory {output.absolute().parent}", "Make it, or name another with --output."
        )
    with Progress(console, "backup-cluster.yml") as progress:
        result: Result = playbook.run(
            PLAYBOOKS / "backup-cluster.yml", inventory, extra_vars=wanted, plain=plain, observer=progress
        )
    report = parse(result.results_of("debug"))
    if report is not None and not result.error:
        return report
    raise result.error or CheckFailed(f"{inventory} was not backed up: it has no control node")


def print_report(console: Console, report: Report) -> None:
    """Print where the archive is and what is in it."""
    console.print(Text(str(report.path)), soft_wrap=True)
    for line in report.lines:
        console.print(Text(f"  {line}"), soft_wrap=True)
