"""The tree under test: its commit, whether it has uncommitted changes, and which files a scenario depends on."""

import pathlib
import subprocess

from slurmstead.paths import ROOT
from slurmstead.testing.scenarios import CHECKS, NATIVE, SCENARIOS

TABLE = ROOT / "tests" / "passed.json"
"""The table of last passes. It is in the tree but no test reads it, so committing it changes no result."""

REST = ("--", ".", f":(exclude){TABLE.relative_to(ROOT)}")

CHECK_PROGRAMS = ("scripts/slurmstead/testing/checks.py", "scripts/slurmstead/testing/lint.py")
UNREAD = ("docs", "*.md", "LICENSE", ".ci", "tests/unit", *CHECK_PROGRAMS)
"""Only the checks read these: a change there does not change the result of another line."""

CONTAINERS = ("plugins/modules/lab_container.py", "plugins/module_utils/slurmstead/lab/container.py")
"""A lab of virtual machines does not read these."""

EXAMPLES, ENGINES = "examples/*/*", "engines"
"""The programs in these directories are run by one scenario only."""


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
    others = sorted({scenario.name for scenario in SCENARIOS} - {name})
    paths = [*UNREAD, *(f"tests/lab/{other}/test_*.py" for other in others)]
    if name != ENGINES:
        paths.append(EXAMPLES)
    if name != NATIVE:
        paths.append("tests/native")
        paths += [] if key.endswith(NATIVE) else CONTAINERS
    return [f":(exclude){path}" for path in paths]


def same(one: str, other: str, key: str, root: pathlib.Path = ROOT) -> bool:
    """Whether two commits have the same files, except for the table and for what the line `key` does not depend on."""
    return one == other or _git(root, "diff", "--quiet", one, other, *REST, *_unread(key)).returncode == 0
