"""All that CI runs: first what needs no machine, then the scenarios of molecule/ on one lab."""

import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from slurmstead.errors import CheckFailed
from slurmstead.lab import host
from slurmstead.lab import machines as lab
from slurmstead.paths import LAB_INVENTORY, ROOT, lab_directory
from slurmstead.runner import playbook, processes
from slurmstead.wording import count, duration

LAB_NAME = "test"
"""Tests have a lab of their own, so that they leave alone the one that somebody works with."""

FIRST_SCENARIO = "default"
"""It boots the lab; the others find it running."""

LEFT_OUT = {"engines", "rk3588"}
"""Scenarios that take longer than CI has: `molecule test -s NAME` runs them."""

INVENTORY = re.compile(r"--inventory=\$\{MOLECULE_PROJECT_DIRECTORY\}/(\S+)")
"""How molecule.yml names the inventory of a scenario that has a lab of its own."""

PYTEST_CLOSING = re.compile(r"^(=+ )?\d+ (passed|failed|errors?|skipped)\b.* in [0-9.]+s")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a check ended; `closing` are the last lines of the pytest runs in it."""

    name: str
    ok: bool
    seconds: float
    output: str

    @property
    def closing(self) -> list[str]:
        """Return the lines in which pytest sums up."""
        # molecule draws a border before each line.
        lines = (line.strip(" │") for line in COLOUR.sub("", self.output).splitlines())
        return [line for line in lines if PYTEST_CLOSING.match(line)]


def scenarios(directory: pathlib.Path) -> list[str]:
    """Return the scenarios below a directory in the order in which they run.

    :raises CheckFailed: there is none, so nothing would be tested
    """
    names = {path.parent.name for path in directory.glob("*/molecule.yml")} - LEFT_OUT
    if FIRST_SCENARIO not in names:
        raise CheckFailed(f"expected {directory} to hold the scenario {FIRST_SCENARIO}, seen: {sorted(names)}")
    return sorted(names, key=lambda name: (name != FIRST_SCENARIO, name))


def local_checks(modules: pathlib.Path, *, fast: bool) -> dict[str, list[str]]:
    """Return the commands that need no virtual machine, by name, the longest first.

    :param modules: a directory that holds this repository's module_utils under the name by which modules import them
    :param fast: leave out the tests that are marked as slow
    """
    marked = ["-m", "not slow"] if fast else []
    plugins = [str(path) for path in sorted((ROOT / "plugins").iterdir()) if path.name != "module_utils"]
    return {
        "pytest": [
            sys.executable,
            "-m",
            "pytest",
            "--quiet",
            "--color=no",
            "--numprocesses=auto",
            "--maxprocesses=4",
            *marked,
        ],
        "ansible-lint": ["ansible-lint", "--offline", "--strict", "--nocolor", "-q"],
        "mypy plugins": [
            "mypy",
            "--python-version=3.10",
            "--explicit-package-bases",
            str(modules / "ansible"),
            *plugins,
            *(str(path) for path in sorted((ROOT / "roles").glob("*/files/*.py"))),
        ],
        "mypy scripts": ["mypy", "scripts/slurmstead"],
        "yamllint": ["yamllint", "--strict", "."],
        "ruff check": ["ruff", "check", "--quiet", "."],
        "ruff format": ["ruff", "format", "--check", "--quiet", "--diff", "."],
    }


def _run_local(console: Console, *, fast: bool) -> list[Outcome]:
    def check(name: str, command: list[str]) -> Outcome:
        started = time.monotonic()
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "MYPYPATH": str(modules)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Outcome(name, done.returncode == 0, time.monotonic() - started, done.stdout)

    outcomes = []
    with (
        tempfile.TemporaryDirectory(prefix="stead-") as directory,
        concurrent.futures.ThreadPoolExecutor(max_workers=16) as pool,
        processes.children_end_with_us(),
    ):
        modules = pathlib.Path(directory)
        utilities = modules / "ansible" / "module_utils"
        utilities.mkdir(parents=True)
        (utilities / "slurmstead").symlink_to(ROOT / "plugins" / "module_utils" / "slurmstead")
        checks = [pool.submit(check, name, command) for name, command in local_checks(modules, fast=fast).items()]
        for future in concurrent.futures.as_completed(checks):
            outcome = future.result()
            outcomes.append(outcome)
            _print_outcome(console, outcome)
            if not outcome.ok:
                console.print(Text(outcome.output.rstrip()), soft_wrap=True)
    return outcomes


def labs(directory: pathlib.Path) -> dict[pathlib.Path, list[str]]:
    """Return the scenarios below a directory by the inventory of their lab, in the order in which they run.

    :raises CheckFailed: there is none, so nothing would be tested
    """
    found: dict[pathlib.Path, list[str]] = {LAB_INVENTORY: []}
    for name in scenarios(directory):
        written = INVENTORY.search((directory / name / "molecule.yml").read_text())
        found.setdefault(ROOT / written[1] if written else LAB_INVENTORY, []).append(name)
    return found


def _run_scenarios(console: Console, found: Mapping[pathlib.Path, list[str]]) -> list[Outcome]:
    own = os.environ.get("STEAD_LAB") or LAB_NAME
    return [
        outcome
        for inventory, names in found.items()
        for outcome in _run_on_one_lab(console, inventory, names, own + inventory.name.removeprefix("lab"))
    ]


def _run_on_one_lab(console: Console, inventory: pathlib.Path, names: list[str], lab_name: str) -> list[Outcome]:
    directory = lab_directory(lab.choose(lab_name))
    outcomes: list[Outcome] = []
    try:
        for name in names:
            console.print(Text(f"molecule {name}", style="bold"))
            # The first one shows that nothing needs the accelerator.
            settings = {} if name == FIRST_SCENARIO else playbook.accelerator()
            # The lab outlives a scenario, also one that failed: the next finds it, and it is ended below.
            command = ["molecule", "test", "--scenario-name", name, "--destroy=never"]
            if outcomes and all(outcome.ok for outcome in outcomes):
                # The lab is as a good scenario left it: converged.
                command = ["molecule", "verify", "--scenario-name", name]
            outcomes.append(_stream(f"molecule {name}", command, settings))
            _print_outcome(console, outcomes[-1])
    finally:
        _stream("molecule destroy", ["molecule", "destroy", "--scenario-name", names[0]], {})
        if directory.exists():
            lab.down(console, inventory)
    return outcomes


def _stream(name: str, command: list[str], settings: Mapping[str, str]) -> Outcome:
    started = time.monotonic()
    lines = []
    with (
        subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
        processes.children_end_with_us(),
    ):
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            sys.stdout.write(line)
            sys.stdout.flush()
    return Outcome(name, process.returncode == 0, time.monotonic() - started, "".join(lines))


def _print_outcome(console: Console, outcome: Outcome) -> None:
    mark = Text("ok    ", style="green") if outcome.ok else Text("FAILED", style="bold red")
    console.print(Text.assemble(mark, f"  {outcome.name:<24} {duration(outcome.seconds):>10}"))


def run(console: Console, *, fast: bool) -> None:
    """Run the checks; a failed one does not stop the others, but the lab is not booted after it.

    :raises CheckFailed: a check failed
    """
    started = time.monotonic()
    found = {} if fast else labs(ROOT / "molecule")
    host.ensure_packages(console, lab=bool(found), arm64=any(lab.needs_arm64(inventory) for inventory in found))
    outcomes = _run_local(console, fast=fast)
    if all(outcome.ok for outcome in outcomes):
        outcomes += _run_scenarios(console, found)
    console.print()
    for outcome in outcomes:
        _print_outcome(console, outcome)
    for outcome in outcomes:
        for line in outcome.closing:
            console.print(Text(f"{outcome.name}: {line.strip('= ')}"), soft_wrap=True)
    console.print(f"{count(len(outcomes), 'check')} in {duration(time.monotonic() - started)}")
    failed = [outcome.name for outcome in outcomes if not outcome.ok]
    if failed:
        raise CheckFailed(f"failed: {', '.join(failed)}")
