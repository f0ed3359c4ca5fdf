"""The tree under test: its commit, whether it has uncommitted changes, and which files a scenario depends on."""

import pathlib
import re
import subprocess

from slurmstead.paths import ROOT
from slurmstead.testing.scenarios import CHECKS, LAB_TESTS, NATIVE

TABLE = ROOT / "tests" / "passed.json"
"""The table of last passes. It is in the tree but no test reads it, so committing it changes no result."""

REST = ("--", ".", f":(exclude){TABLE.relative_to(ROOT)}")

PROGRAMS = tuple(
    f"scripts/slurmstead/testing/{name}.py" for name in ("checks", "lint", "record", "session", "table", "tree")
)
UNREAD = ("LICENSE", ".ci", "tests/unit", *PROGRAMS)
"""A change of these does not change the result of a line other than the checks."""

CONTAINERS = ("plugins/modules/lab_container.py", "plugins/module_utils/slurmstead/lab/container.py")
"""A lab of virtual machines does not read these."""

IMPORT = re.compile(r"^from tests\.lab\.(\w+)\.(\w+) import ", re.MULTILINE)

CLIENTS = {NATIVE, "engines", "faults", "rk3588", "router", "submit"}
"""Scenarios that submit work with scripts/stead."""

SWITCHED = {NATIVE, "install", "power"}
"""Scenarios whose inventories have variables of power."""

READ_BY = {
    "*.md": {"course"},
    "docs": {"course"},
    "examples/*/*": {"engines"},
    "plugins/module_utils/slurmstead/inventory/relations/power.py": SWITCHED,
    "plugins/module_utils/slurmstead/power/decide.py": {NATIVE, "power"},
    "roles/install/files": {NATIVE, "install"},
    "scripts/slurmstead/client": CLIENTS,
    "tests/client.py": CLIENTS,
    "tests/native": {NATIVE},
}
"""Files that only these scenarios read."""


def _git(root: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)


def commit(root: pathlib.Path = ROOT) -> str | None:
    """Return the commit of a tree; None without a repository, or if a file other than the table has changed."""
    head = _git(root, "rev-parse", "HEAD")
    status = _git(root, "status", "--porcelain", *REST)
    return head.stdout.strip() if head.returncode == status.returncode == 0 and not status.stdout else None


def _imported_by(directory: pathlib.Path) -> set[pathlib.Path]:
    """Return the modules of other scenarios that the tests in a directory import, also through each other."""
    found: set[pathlib.Path] = set()
    left = list(directory.glob("*.py"))
    while left:
        named = {LAB_TESTS / other / f"{module}.py" for other, module in IMPORT.findall(left.pop().read_text())}
        left += named - found
        found |= named
    return found


def _own(name: str) -> list[str]:
    """Return the tests of a scenario, and the modules of other scenarios that they import."""
    directory = LAB_TESTS / name
    return [str(path.relative_to(ROOT)) for path in (directory, *_imported_by(directory))]


def _unread(key: str) -> list[str]:
    """Return the git pathspecs of the files that cannot change the result of a line of the table, or are its own."""
    name = key.partition(" ")[0]
    if name == CHECKS:
        return []
    paths = [*UNREAD, "tests/lab/*/*.py", *(path for path, readers in READ_BY.items() if name not in readers)]
    if not key.endswith(NATIVE):
        paths += CONTAINERS
    return [f":(exclude){path}" for path in paths]


def same(one: str, other: str, key: str, root: pathlib.Path = ROOT) -> bool:
    """Whether two commits have the same files, except for the table and for what the line `key` does not depend on."""
    read = ((*REST, *_unread(key)), ("--", *_own(key.partition(" ")[0])))
    return one == other or all(_git(root, "diff", "--quiet", one, other, *paths).returncode == 0 for paths in read)
