"""Runs scenarios on a separate lab, which is removed afterwards."""

import fcntl
import os
import sys
from collections.abc import Callable, Sequence
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.text import Text

from slurmstead.errors import UsageError
from slurmstead.lab import host, snapshots
from slurmstead.lab import machines as lab
from slurmstead.paths import ROOT, lab_directory
from slurmstead.runner import playbook
from slurmstead.testing import commands
from slurmstead.testing.outcome import Outcome, show
from slurmstead.testing.scenarios import FIRST, KERNEL, LAB_TESTS, Kind, Scenario

LAB_NAME = "test"
"""Tests use a separate lab, so that they do not disturb a developer's lab."""

STEAD = str(ROOT / "scripts" / "stead")
FREEZE = [STEAD, "lab", "freeze"]
THAW = [STEAD, "lab", "thaw"]


class TestLab:
    """A lab for the scenarios of one kind; it exists from the first scenario to the end of the block."""

    __test__ = False  # Not a class of tests for pytest.

    def __init__(self, console: Console, kind: Kind) -> None:
        self.console = console
        self.kind = kind
        self.configured = False

    def __enter__(self) -> "TestLab":
        own = os.environ.get("STEAD_LAB") or LAB_NAME
        self._before = {name: os.environ.get(name) for name in ("STEAD_LAB", *self.kind.settings)}
        os.environ.update(self.kind.settings)
        self.directory = lab_directory(lab.choose(own + self.kind.inventory.name.removeprefix("lab")))
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        self._lock = self.directory.with_suffix(".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise UsageError(
                f"another `stead test` uses the lab {self.directory.name}",
                "Wait until it has ended, or choose another lab: STEAD_LAB=NAME scripts/stead test",
            ) from None
        self._remove()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._remove()
        finally:
            self._lock.close()
            for name, value in self._before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})

    def _remove(self) -> None:
        if self.directory.exists():
            lab.down(self.console, self.kind.inventory)

    def run(self, scenario: Scenario) -> Outcome:
        """Run a scenario on the configured lab, print the result and return it."""
        self.console.print(Text(scenario.key, style="bold"))
        done = self._first(scenario) if scenario.name == FIRST else self._tests(scenario)
        # After a failed scenario, the state of the lab is unknown.
        self.configured = done.ok and not scenario.destroys
        show(self.console, done)
        return done

    def _first(self, scenario: Scenario) -> Outcome:
        """Create the lab and its cluster with molecule; the scenario `site` is the one without the accelerator."""
        command = ["molecule", "test", f"--scenario-name={FIRST}", "--destroy=never"]
        # What molecule remembers of an earlier lab at this path would make it skip the creation of this one.
        with TemporaryDirectory() as memory:
            settings = {"MOLECULE_EPHEMERAL_DIRECTORY": memory, **playbook.accelerator()}
            return commands.aloud(scenario.key, command, settings)

    def _tests(self, scenario: Scenario) -> Outcome:
        inventory = str(self.kind.inventory)
        native = ["--native"] if self.kind.native else []
        kernel = ["-m", f"not {KERNEL}"] if self.kind.native else []
        tests = [
            *(sys.executable, "-m", "pytest", "--quiet", "--color=no", "--durations=8", "--durations-min=20"),
            *(f"--ansible-inventory={inventory}", str(LAB_TESTS / scenario.name), *kernel, *scenario.options),
        ]
        up = [STEAD, "lab", "up", f"--inventory={inventory}", *native]
        configure = [[STEAD, "up", f"--inventory={inventory}"], *([FREEZE] if self.kind.freezes else [])]
        thawed = self.kind.freezes and snapshots.LABEL in snapshots.labels(self.directory)
        # New containers take a minute; machines are configured again, or thawed.
        if scenario.bare or (self.kind.native and not self.configured):
            self._remove()
        if scenario.bare:
            before = [[*up, "--clean"]]
        else:
            before = [] if self.configured else [THAW] if thawed else [up, *configure]
        done = [Outcome(scenario.key, True, 0, "")]
        for step in [*before, tests]:
            if done[-1].ok:
                done.append(commands.aloud(scenario.key, step, playbook.accelerator()))
        seconds = sum(outcome.seconds for outcome in done)
        return Outcome(scenario.key, done[-1].ok, seconds, "".join(outcome.output for outcome in done))


def run_scenarios(
    console: Console, kind: Kind, scenarios: Sequence[Scenario], ended: Callable[[Scenario, Outcome], None]
) -> list[Outcome]:
    """Run scenarios of one kind on one lab, and call `ended` after each; a failure does not stop the others."""
    host.ensure_packages(console, arm64=lab.needs_arm64(kind.inventory), native=kind.native)
    outcomes = []
    with TestLab(console, kind) as own:
        for scenario in scenarios:
            outcomes.append(own.run(scenario))
            ended(scenario, outcomes[-1])
    return outcomes
