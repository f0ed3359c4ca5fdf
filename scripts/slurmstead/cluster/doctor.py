"""The doctor: finds the problems of a cluster, from outside and from all its machines, and says what to do."""

import contextlib
import dataclasses
import json
import pathlib
import re
import subprocess
import tempfile
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from slurmstead.cluster.ask import ask
from slurmstead.errors import CheckFailed, SteadError, UsageError
from slurmstead.runner.events import Event, HostEnded
from slurmstead.runner.progress import Progress
from slurmstead.wording import count


@dataclasses.dataclass(frozen=True)
class Finding:
    """A problem: the host, one word for programs, what was seen and what to do."""

    host: str
    about: str
    seen: str
    advice: str


@dataclasses.dataclass(frozen=True)
class Report:
    """The problems of a cluster."""

    machines: int
    findings: tuple[Finding, ...]

    @property
    def error(self) -> SteadError | None:
        """CheckFailed if there is a finding, else None; a machine that cannot be checked is a finding too."""
        return (
            CheckFailed("the cluster is not healthy", "Follow the advice in each line above.")
            if self.findings
            else None
        )

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps({"ok": not self.findings, **dataclasses.asdict(self)}, indent=2)


class _Progress(Progress):
    """Progress without the message of the task that fails because of what it found; the report shows that."""

    def event(self, event: Event) -> None:
        if isinstance(event, HostEnded) and {"findings", "lines"} & event.result.keys():
            event = dataclasses.replace(event, message="")
        super().event(event)


@contextlib.contextmanager
def _connections() -> Iterator[dict[str, str]]:
    """Give this run its own ssh connections: an older one would hide that a machine refuses logins.

    Yields the variables that make Ansible use them.
    """
    with tempfile.TemporaryDirectory(prefix="stead-") as directory:
        try:
            yield {"ansible_control_path_dir": directory}
        finally:
            for socket in pathlib.Path(directory).iterdir():
                command = ["ssh", "-O", "exit", "-o", f"ControlPath={socket}", "machine"]
                # A connection that does not close must not lose the report: it closes by itself (ControlPersist).
                with contextlib.suppress(subprocess.TimeoutExpired):
                    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)


def run(console: Console, inventory: pathlib.Path, *, plain: bool = False) -> Report:
    """Check a cluster, with progress on `console`.

    :raises SteadError: the check could not be completed
    """
    unasked = CheckFailed(f"nothing was checked: {inventory} has no machine", "Add machines to it.")
    with _connections() as variables:
        judged = ask(
            *(console, "run-doctor.yml", inventory, "doctor_findings", "findings"),
            unasked=unasked,
            extra_vars=variables,
            plain=plain,
            progress=_Progress,
        )
    return Report(judged["machines"], tuple(Finding(**finding) for finding in judged["findings"]))


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What the doctor says about a job; `hopeless` if the job is unknown or can never run."""

    lines: tuple[str, ...]
    hopeless: bool

    @property
    def error(self) -> SteadError | None:
        """CheckFailed if the job is unknown or can never run, else None."""
        return CheckFailed("the job is unknown, or cannot run", "Read the lines above.") if self.hopeless else None


def explain(console: Console, inventory: pathlib.Path, job: str, *, plain: bool = False) -> Explanation:
    """Explain why a job waits, with progress on `console`.

    :param job: the number of a job or of a task of an array
    :raises SteadError: control could not be asked
    """
    if not re.fullmatch(r"[0-9]+(_[0-9]+)?", job):
        raise UsageError(
            f"--job {job} is not the number of a job", "Give a number that `squeue` shows, such as 7 or 7_2."
        )
    told = ask(
        *(console, "explain-job.yml", inventory, "doctor_job", "lines"),
        unasked=CheckFailed(f"nothing was asked: {inventory} has no control node", "Add it to the group control."),
        extra_vars={"job_number": job},
        plain=plain,
        progress=_Progress,
    )
    return Explanation(tuple(told["lines"]), told["hopeless"])


def print_report(console: Console, report: Report) -> None:
    """Print one line for each finding."""
    for finding in report.findings:
        text = Text.assemble((finding.host, "bold"), f"  {finding.seen}", (f": {finding.advice}", "dim"))
        console.print(text, soft_wrap=True)
    found = count(len(report.findings), "finding") if report.findings else "nothing found"
    console.print(f"{count(report.machines, 'machine')} checked, {found}")
