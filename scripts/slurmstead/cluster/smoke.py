"""The smoke test: checks a cluster from a user's point of view."""

import dataclasses
import json
import pathlib

from rich.console import Console
from rich.text import Text

from slurmstead.cluster.ask import ask
from slurmstead.errors import CheckFailed
from slurmstead.runner.events import Event, HostEnded
from slurmstead.runner.progress import Progress
from slurmstead.wording import count


@dataclasses.dataclass(frozen=True)
class Check:
    """The result of one check."""

    name: str
    ok: bool
    expected: str
    seen: str
    hint: str


@dataclasses.dataclass(frozen=True)
class Report:
    """The results of all checks."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether there are checks and all of them passed."""
        return bool(self.checks) and all(check.ok for check in self.checks)

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps({"ok": self.ok, "checks": [dataclasses.asdict(check) for check in self.checks]}, indent=2)


class _Progress(Progress):
    """Progress without the message of the task that fails because of failed checks; the report shows them."""

    _reported = False

    def event(self, event: Event) -> None:
        if isinstance(event, HostEnded):
            self._reported = self._reported or "checks" in event.result
            if self._reported:
                event = dataclasses.replace(event, message="")
        super().event(event)


def run(console: Console, inventory: pathlib.Path, *, plain: bool = False) -> Report:
    """Test a cluster, with progress on `console`.

    :raises SteadError: the test could not be run
    """
    found = ask(
        *(console, "smoke-test.yml", inventory, "slurm_smoke", "checks"),
        unasked=CheckFailed(f"nothing was tested: {inventory} has no host for the smoke test", "Add machines to it."),
        plain=plain,
        progress=_Progress,
    )
    checks = (
        {field.name: check.get(field.name, "") for field in dataclasses.fields(Check)} for check in found["checks"]
    )
    return Report(tuple(Check(**{**check, "ok": bool(check["ok"])}) for check in checks))


def print_report(console: Console, report: Report) -> None:
    """Print one line for each check, and for each failed one what to do."""
    for check in report.checks:
        mark = Text("ok  ", style="green") if check.ok else Text("FAIL", style="bold red")
        seen = f"  {check.seen}" if check.seen else ""
        console.print(Text.assemble("  ", mark, f"  {check.name}", (seen if check.ok else "", "dim")), soft_wrap=True)
        if not check.ok:
            for part in ("expected", "seen", "hint"):
                console.print(Text(f"          {part + ':':<9} {getattr(check, part)}"), soft_wrap=True)
    failed = [check for check in report.checks if not check.ok]
    total = count(len(report.checks), "check")
    console.print(f"  {total}, all good" if not failed else f"  {total}, {len(failed)} failed")
