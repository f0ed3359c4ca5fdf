"""The doctor: what is wrong with a cluster, seen from outside and from all its machines, and what to do about it."""

import contextlib
import dataclasses
import json
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from slurmstead.errors import CheckFailed, SteadError
from slurmstead.paths import PLAYBOOKS
from slurmstead.runner import playbook
from slurmstead.runner.events import Event, HostEnded
from slurmstead.runner.outcome import Result
from slurmstead.runner.progress import Progress
from slurmstead.wording import count


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something that is wrong: where, one word for programs, what was seen and what to do."""

    host: str
    about: str
    seen: str
    advice: str


@dataclasses.dataclass(frozen=True)
class Report:
    """All that is wrong with a cluster."""

    machines: int
    findings: tuple[Finding, ...]

    @property
    def error(self) -> SteadError | None:
        """That the cluster is not healthy, if so; a machine that cannot be checked is a finding like others."""
        return CheckFailed("the cluster is not healthy", "Each line says what to do.") if self.findings else None

    def to_json(self) -> str:
        """Return the report as programs read it."""
        return json.dumps({"ok": not self.findings, **dataclasses.asdict(self)}, indent=2)


def parse(result: Result) -> Report | None:
    """Return the report that run-doctor.yml left, or None if it did not come to that."""
    for judged in result.results_of("doctor_findings"):
        if "findings" in judged:
            return Report(judged["machines"], tuple(Finding(**finding) for finding in judged["findings"]))
    return None


class _Progress(Progress):
    """Progress without the words of the task that fails only because of the report, which is printed for itself."""

    def event(self, event: Event) -> None:
        if isinstance(event, HostEnded) and "findings" in event.result:
            event = dataclasses.replace(event, message="")
        super().event(event)


@contextlib.contextmanager
def _connections() -> Iterator[dict[str, str]]:
    """Let ssh keep its connections for this run alone: with one from before, a machine that lets nobody in is not seen.

    Yields the variables with which Ansible does.
    """
    with tempfile.TemporaryDirectory(prefix="stead-") as directory:
        try:
            yield {"ansible_control_path_dir": directory}
        finally:
            for socket in pathlib.Path(directory).iterdir():
                command = ["ssh", "-O", "exit", "-o", f"ControlPath={socket}", "machine"]
                # One that does not end takes no report with it: it ends by itself (ControlPersist).
                with contextlib.suppress(subprocess.TimeoutExpired):
                    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)


def run(console: Console, inventory: pathlib.Path, *, plain: bool = False) -> Report:
    """Check a cluster; how far it is is shown on `console`.

    :raises SteadError: it could not be judged
    """
    with _connections() as variables, _Progress(console, "run-doctor.yml") as progress:
        result = playbook.run(
            PLAYBOOKS / "run-doctor.yml", inventory, extra_vars=variables, plain=plain, observer=progress
        )
    report = parse(result)
    if report is not None:
        return report
    raise result.error or CheckFailed(f"{inventory} was not checked: it has no machine")


def print_report(console: Console, report: Report) -> None:
    """Print a line for each finding."""
    for finding in report.findings:
        text = Text.assemble((finding.host, "bold"), f"  {finding.seen}", (f": {finding.advice}", "dim"))
        console.print(text, soft_wrap=True)
    found = count(len(report.findings), "finding") if report.findings else "nothing found"
    console.print(f"{count(report.machines, 'machine')} checked, {found}")
