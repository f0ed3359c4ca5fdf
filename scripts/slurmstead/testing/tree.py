"""The tree under test: its commit, whether it has uncommitted changes, and which files a scenario depends on."""

import pathlib
import subprocess

from slurmstead.paths import ROOT
from slurmstead.testing.scenarios import CHECKS, NATIVE, SCENARIOS

TABLE = ROOT / "tests" / "passed.json"
"""The table of last passes. It is in the tree but no test reads it, so committing it changes no result."""

REST = ("--", ".", f":(exclude){TABLE.relative_to(ROOT)}")

UNREAD = ("docs", "*.md", "LICENSE", ".ci", "tests/unit", "scripts/slurmstead/testing/checks.py")
"""Only the checks read these: a change there does not change the result of another line."""


def _git(root: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)


def commit(root: pathlib.Path = ROOT) -> str | None:
    """Return the commit of a tree; None without a repository, or if a file other than the table has changed."""
    head = _git(root, "rev-parse", "HEAD")
    status = _git(root, "status", "--porcelain", *REST)
    return head.stdout.strip() if head.returncode == status.returncode == 0 and not status.stdout else None


def _unread(key: str) -> list[str]:
    """Return the git pathspecs of the files that cannot change the result of a line of the table."""
    name = key.partition(" ")[0]
    if name == CHECKS:
        return []
    tests = [f"tests/lab/{other}/test_*.py" for other in sorted({scenario.name for scenario in SCENARIOS} - {name})]
    native = [] if name == NATIVE else ["tests/native"]
    return [f":(exclude){path}" for path in (*UNREAD, *tests, *native)]


def same(one: str, other: str, key: str, root: pathlib.Path = ROOT) -> bool:
    """Whether two commits have the same files, except for the table and for what the line `key` does not depend on."""
    return one == other or _git(root, "diff", "--quiet", one, other, *REST, *_unread(key)).returncode == 0
