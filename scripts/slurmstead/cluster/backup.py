"""Archives of a cluster: its queue, MUNGE key and configuration."""

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
    """A written archive; `size` in bytes, `jobs` counts its jobs by state, None if slurmctld did not answer."""

    path: pathlib.Path
    size: int
    files: int
    cluster: str
    slurm: str
    jobs: Mapping[str, int] | None

    @property
    def lines(self) -> list[str]:
        """The summary of the archive for the user."""
        jobs = "slurmctld did not answer, so the jobs are those of its last saved state"
        if self.jobs is not None:
            jobs = " and ".join(f"{number} {state}" for state, number in self.jobs.items()) + " jobs"
        size = f"{self.size / 1024:.0f} KiB"
        return [
            f"{self.cluster}, Slurm {self.slurm}, {jobs}, {count(self.files, 'file')}, {size}, read back and compared",
            "It contains the MUNGE key: store it like a password, and not on the cluster.",
        ]


def parse(results: list[Mapping[str, Any]]) -> Report | None:
    """Return the report that backup-cluster.yml printed, or None if the playbook did not get that far."""
    for result in results:
        said = result.get("msg")
        if isinstance(said, dict) and "path" in said:
            path = pathlib.Path(said["path"])
            return Report(path, said["bytes"], said["files"], said["cluster"], said["slurm"], said["jobs"])
    return None


def run(console: Console, inventory: pathlib.Path, output: pathlib.Path | None, *, plain: bool = False) -> Report:
    """Write an archive of a cluster, with progress on `console`.

    :raises SteadError: no archive was written
    """
    wanted = {"backup_output": str(output.absolute())} if output else {}
    if output and not output.absolute().parent.is_dir():
        raise UsageError(
            f"the directory {output.absolute().parent} does not exist", "Create it, or choose another with --output."
        )
    with Progress(console, "backup-cluster.yml") as progress:
        result: Result = playbook.run(
            PLAYBOOKS / "backup-cluster.yml", inventory, extra_vars=wanted, plain=plain, observer=progress
        )
    report = parse(result.results_of("debug"))
    if report is not None and not result.error:
        return report
    raise result.error or CheckFailed(
        f"nothing was backed up: {inventory} has no control node", "Add one to the group control."
    )


def print_report(console: Console, report: Report) -> None:
    """Print the path and the content of the archive."""
    console.print(Text(str(report.path)), soft_wrap=True)
    for line in report.lines:
        console.print(Text(f"  {line}"), soft_wrap=True)


def print_notes(console: Console, result: Result) -> None:
    """Print what restore-cluster.yml said about the files before, or that it restored nothing."""
    for debug in result.results_of("debug"):
        said = debug.get("msg")
        for note in said.get("restored", ()) if isinstance(said, dict) else ():
            console.print(Text(note), soft_wrap=True)
