"""Runs the measures of tests/bench, whose clusters are those of the native tests."""

import os
import subprocess
import sys

from slurmstead.errors import CheckFailed, UsageError
from slurmstead.paths import ROOT

CONTROLLER = ("validate", "render", "arguments", "judge")
NATIVE = ("start", "job", "publish", "health", "jobs500", "jobs25000")
MEASURES = (*CONTROLLER, *NATIVE)
"""As in tests/bench/scale.py."""

RELEASES = ("bookworm", "trixie")
"""As in tests/native/root.py."""

LARGEST = 5000
"""Nodes."""


def words(sizes: str, measures: str, release: str, minutes: float, as_json: bool) -> list[str]:
    """Return the arguments of tests/bench.

    :raises UsageError: a size, measure or release is unknown
    """
    chosen = measures.split(",") if measures else list(MEASURES)
    if unknown := [name for name in chosen if name not in MEASURES]:
        raise UsageError(f"unknown measure: {', '.join(unknown)}", f"Choose from {','.join(MEASURES)}.")
    if wrong := [size for size in sizes.split(",") if not size.isdecimal() or not 0 < int(size) <= LARGEST]:
        raise UsageError(f"--sizes: {', '.join(wrong)}", f"Write numbers of nodes from 1 to {LARGEST}, such as 4,64.")
    if release not in RELEASES:
        raise UsageError(f"unknown release: {release}", f"Choose from {','.join(RELEASES)}.")
    asked = [f"--sizes={sizes}", f"--measures={','.join(chosen)}", f"--release={release}", f"--minutes={minutes}"]
    return [*asked, *(["--json"] if as_json else [])]


def run(arguments: list[str]) -> None:
    """Measure and print.

    :raises CheckFailed: the program failed
    """
    paths = os.pathsep.join([str(ROOT / "scripts"), str(ROOT)])
    command = [sys.executable, "-m", "tests.bench", *arguments]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, check=False)
    if done.returncode:
        raise CheckFailed("the measures failed", "See the error above.")
