"""The tree under test: its commit, and whether it has uncommitted changes."""

import pathlib
import subprocess

from slurmstead.paths import ROOT

TABLE = ROOT / "tests" / "passed.json"
"""The table of last passes. It is in the tree but no test reads it, so committing it changes no result."""

REST = ("--", ".", f":(exclude){TABLE.relative_to(ROOT)}")


def _git(root: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)


def commit(root: pathlib.Path = ROOT) -> str | None:
    """Return the commit of a tree; None without a repository, or if a file other than the table has changed."""
    head = _git(root, "rev-parse", "HEAD")
    status = _git(root, "status", "--porcelain", *REST)
    return head.stdout.strip() if head.returncode == status.returncode == 0 and not status.stdout else None


def same(one: str, other: str, root: pathlib.Path = ROOT) -> bool:
    """Whether two commits have the same files, except for the table."""
    return one == other or _git(root, "diff", "--quiet", one, other, *REST).returncode == 0
