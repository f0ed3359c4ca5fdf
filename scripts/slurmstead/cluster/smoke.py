"""The smoke test: does the cluster do what a user expects of it?"""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from slurmstead.errors import CheckFailed
from slurmstead.paths import PLAYBOOKS
from slurmstead.runner import playbook
from slurmstead.runner.events import Event, HostEnded
from slurmstead.runner.progress import Progress
from slurmstead.wording import count


@dataclasses.dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    expected: str
    seen: str
    hint: str


@dataclasses.dataclass(frozen=True)
class Report:
    """All that was looked at."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every check is good; a report without checks is not."""
        return bool(self.checks) and all(check.ok for check in self.checks)

    def to_json(self) -> str:
        """Return the report as programs read it."""
        return json.dumps({"ok": self.ok, "checks": [dataclasses.asdict(check) for check in self.checks]}, indent=2)


def parse(results: list[Mapping[str, Any]]) -> Report | None:
    """Return the report that the module slurm_smoke left in one of its results, or None if it did not come to that."""
    for result in results:
        if "checks" in result:
            fields = [field.name for field in dataclasses.fields(Check)]
            checks = ({name: check.get(name, "") for name in fields} for check in result["checks"])
            return Report(tuple(Check(**{**check, "ok": bool(check["ok"])}) for check in checks))
    return None


class _Progress(Progress):
    """Progress without the words of a task that fails only because of the report, which is printed for itself."""

    _reported = False

    def event(self, event: Event) -> None:
        if isinstance(event, HostEnded):
            self._reported = self._reported or "checks" in event.result
            if self._reported:
                event = dataclasses.replace(event, message="")
        super().event(event)


def run(console: Console, inventory: pathlib.Path, *, plain: bool = False) -> Report:
    """Test a cluster; what is tried is shown on `console` while it goes.

    :raises SteadError: the test itself could not be run
    """
    with _Progress(console, "smoke-test.yml") as progress:
        result = playbook.run(PLAYBOOKS / "smoke-test.yml", inventory, plain=plain, observer=progress)
    report = parse(result.results_of("slurm_smoke"))
    if report is not None:
        return report
    raise result.error or CheckFailed(f"{inventory} was not tested: the smoke test found no host to run on")


def print_report(console: Console, report: Report) -> None:
    """Print one line for each check, and for a failed one what to do."""
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
