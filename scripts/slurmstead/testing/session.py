"""The runs of `stead test`: CI's part, the fast part of that, and everything."""

import datetime
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console

from slurmstead.errors import CheckFailed, Interrupted
from slurmstead.lab import host
from slurmstead.testing import checks, commands, record, table, tree
from slurmstead.testing.labs import run_scenarios
from slurmstead.testing.outcome import Outcome, show, show_all
from slurmstead.testing.scenarios import CHECKS, NATIVE, NATIVE_TESTS, SCENARIOS, Scenario, by_kind, choose
from slurmstead.wording import count, duration

CI = ("site bookworm native", "default bookworm")
"""The scenarios that CI runs, after the checks and tests/native; the kinds of disks are also in tests/native/disks."""

CI_MINUTES = 45
"""Time limit of CI's part, on a machine on which `stead demo` takes 8 minutes."""


def now() -> datetime.datetime:
    """Return the time, in UTC."""
    return datetime.datetime.now(datetime.UTC)


def _end(console: Console, outcomes: list[Outcome], started: float) -> None:
    show_all(console, outcomes)
    console.print(f"{count(len(outcomes), 'check')} in {duration(time.monotonic() - started)}")
    failed = [outcome.name for outcome in outcomes if not outcome.ok]
    if failed:
        raise CheckFailed(f"failed: {', '.join(failed)}", "See their output above.")


def run_fast(console: Console) -> None:
    """Run the checks that need no virtual machine, without the tests marked as slow.

    :raises CheckFailed: a check failed
    """
    started = time.monotonic()
    host.ensure_packages(console, lab=False, tests=True)
    _end(console, checks.run_checks(console, slow=False), started)


def _left_out() -> str:
    keys = [scenario.key for scenario in SCENARIOS if scenario.key not in CI]
    keys += [
        f"{CHECKS} with the unit tests that are marked as slow",
        f"{NATIVE} with hundreds of nodes, with systemd and with Debian 13",
    ]
    return f"Left out: {', '.join(keys)}. Run one: scripts/stead test NAME; run everything: scripts/stead test --all"


def _possible(console: Console, scenarios: Iterable[Scenario]) -> list[Scenario]:
    """Return the scenarios that this user can run; containers need root."""
    chosen = list(scenarios)
    native = [scenario.key for scenario in chosen if scenario.kind.native and os.geteuid() != 0]
    if native:
        console.print(f"Left out, because containers need root: {', '.join(native)}", soft_wrap=True)
    return [scenario for scenario in chosen if scenario.key not in native]


def _run_checks(console: Console) -> Outcome:
    """Return the outcome of all checks, as one line of the table."""
    started = time.monotonic()
    found = checks.run_checks(console, slow=True)
    output = "".join(f"{outcome.output}\n" for outcome in found)
    return Outcome(CHECKS, all(outcome.ok for outcome in found), time.monotonic() - started, output)


def _run_native(console: Console, *, slow: bool) -> Outcome:
    # Tests mostly wait for daemons: four processes are not too many for two cores. One that is done takes from others.
    spread = ("--numprocesses=4", "--dist=worksteal")
    command = [sys.executable, "-m", "pytest", "--quiet", "--color=no", "--durations=8", *spread]
    marked = [] if slow else ["-m", "not slow"]
    outcome = commands.aloud(NATIVE, [*command, *marked, str(NATIVE_TESTS)], {})
    show(console, outcome)
    return outcome


def _note(key: str, outcome: Outcome, commit: str | None) -> None:
    """Record a pass, unless the tree had uncommitted changes or has changed during the run."""
    if outcome.ok and commit and tree.commit() == commit:
        record.note(tree.TABLE, key, outcome, commit, now())


def run_ci(console: Console) -> None:
    """Run the checks, then the scenarios of CI, and record those that pass; after a failed check no lab is created.

    A slow machine leaves out the labs for which no time is left: a run that is ended for its time has shown nothing.

    :raises CheckFailed: a check or a scenario failed
    """
    started, commit = time.monotonic(), tree.commit()

    def minutes() -> float:
        return (time.monotonic() - started) / 60

    console.print(_left_out(), soft_wrap=True)
    host.ensure_packages(console, tests=True)

    def passed(scenario: Scenario, outcome: Outcome) -> None:
        _note(scenario.key, outcome, commit)

    outcomes = [*checks.run_checks(console, slow=False), _run_native(console, slow=False)]
    if all(outcome.ok for outcome in outcomes):
        # The containers first: they need minutes, the virtual machines half an hour.
        for kind, scenarios in reversed(by_kind(_possible(console, choose(CI)))):
            if minutes() > CI_MINUTES:
                keys = ", ".join(scenario.key for scenario in scenarios)
                console.print(f"Left out, because {CI_MINUTES} minutes have passed: {keys}", soft_wrap=True)
            else:
                outcomes += run_scenarios(console, kind, scenarios, passed)
    console.print()
    console.print(_left_out(), soft_wrap=True)
    table.print_overdue(console, record.load(tree.TABLE), now())
    if (took := minutes()) > CI_MINUTES:
        console.print(
            f"This took {took:.0f} minutes, expected at most {CI_MINUTES}."
            " Remove a scenario from CI in scripts/slurmstead/testing/session.py.",
            soft_wrap=True,
        )
    _end(console, outcomes, started)


class Everything:
    """A run of chosen lines of the table, which records each pass."""

    def __init__(self, console: Console, names: Sequence[str], *, again: bool) -> None:
        """Choose the lines; those that passed with this tree are left out, unless `again`.

        :raises UsageError: no scenario has that name
        """
        self.console = console
        self.names = names
        self.commit = tree.commit()
        self.chosen = choose(names)
        done = {} if again or not self.commit else record.load(tree.TABLE)
        self.done = {key for key, line in done.items() if tree.same(line.commit, str(self.commit), key)}

    def _is_chosen(self, key: str) -> bool:
        return not self.names or bool({key, key.partition(" ")[0]} & set(self.names))

    def _wants(self, key: str) -> bool:
        return self._is_chosen(key) and key not in self.done

    def _local(self) -> Iterator[Outcome]:
        if self._wants(CHECKS):
            whole = _run_checks(self.console)
            _note(CHECKS, whole, self.commit)
            yield whole
        if self._wants(NATIVE):
            whole = _run_native(self.console, slow=True)
            _note(NATIVE, whole, self.commit)
            yield whole

    def run(self) -> None:
        """Run the chosen lines; a failure does not stop the others.

        :raises CheckFailed: a line failed, or this user cannot run it
        """
        started = time.monotonic()
        if self.commit is None:
            self.console.print(
                "This tree has uncommitted changes: passes are not recorded in tests/passed.json.", soft_wrap=True
            )
        skipped = [key for key in record.keys() if key in self.done and self._is_chosen(key)]
        if skipped:
            self.console.print(
                f"Passed with this tree, not run again: {', '.join(skipped)} (--again runs them).", soft_wrap=True
            )
        host.ensure_packages(self.console, tests=True)
        try:
            outcomes = list(self._local())
            wanted = [scenario for scenario in self.chosen if scenario.key not in self.done]
            possible = _possible(self.console, wanted)
            for kind, scenarios in by_kind(possible):
                outcomes += run_scenarios(self.console, kind, scenarios, self._scenario_ended)
        except Interrupted as error:
            raise Interrupted(error.signal_number, "Run the same command again to continue with the rest.") from None
        table.print_table(self.console, record.load(tree.TABLE), now())
        _end(self.console, outcomes, started)
        if left := [scenario.key for scenario in wanted if scenario not in possible]:
            raise CheckFailed(f"not run: {', '.join(left)}", "Run the same command as root.")

    def _scenario_ended(self, scenario: Scenario, outcome: Outcome) -> None:
        _note(scenario.key, outcome, self.commit)
