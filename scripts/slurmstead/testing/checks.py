"""The checks of the tree that need no virtual machine."""

import concurrent.futures
import pathlib
import sys
import tempfile

import yaml
from rich.console import Console
from rich.text import Text

from slurmstead.paths import LAB_INVENTORY, ROOT
from slurmstead.runner import processes
from slurmstead.testing import commands
from slurmstead.testing.outcome import Outcome, show

LINTED = ["site.yml", "examples", "inventory", "molecule", "playbooks", "roles"]
"""Where Ansible's files are; ansible-lint would also read all of docs, plugins, scripts and tests."""


def write_roles_play(path: pathlib.Path) -> pathlib.Path:
    """Write a playbook that has all tasks of all roles, and return its path."""
    roles = sorted(directory.name for directory in (ROOT / "roles").iterdir() if (directory / "tasks").is_dir())
    tasks = [{"name": name, "ansible.builtin.import_role": {"name": name}} for name in roles]
    path.write_text(yaml.safe_dump([{"name": "Load all roles", "hosts": "localhost", "tasks": tasks}]))
    return path


def lint(modules: pathlib.Path) -> dict[str, list[str]]:
    """Return the commands that check the playbooks and roles by name.

    The start of a process costs more than the syntax check of a playbook, and ansible-lint starts 63 of them.
    """
    playbooks = [ROOT / "site.yml", *sorted((ROOT / "playbooks").glob("*.yml"))]
    playbooks += sorted(path for path in (ROOT / "molecule").glob("*/*.yml") if path.name != "molecule.yml")
    playbooks.append(write_roles_play(modules / "roles.yml"))
    return {
        # Its file, because PYTHONPATH is not passed on; -P, because files beside it have names of other modules.
        "ansible-lint": [
            *(sys.executable, "-P", str(ROOT / "scripts/slurmstead/testing/lint.py")),
            *("--offline", "--strict", "--nocolor", "-q", *LINTED),
        ],
        "ansible syntax": [sys.executable, "-m", "ansible.cli.playbook", "--syntax-check", *map(str, playbooks)],
    }


def local_checks(modules: pathlib.Path, *, slow: bool) -> dict[str, list[str]]:
    """Return the commands of the checks by name, the longest first.

    :param modules: a directory with this repository's module_utils under their import name
    :param slow: also run the tests that are marked as slow
    """
    marked = [] if slow else ["-m", "not slow"]
    plugins = [str(path) for path in sorted((ROOT / "plugins").iterdir()) if path.name != "module_utils"]
    # Slow tests mostly wait.
    processes_of_pytest = "--numprocesses=4" if slow else "--numprocesses=auto"
    pytest = [sys.executable, "-m", "pytest", "--quiet", "--color=no", processes_of_pytest, "--maxprocesses=4"]
    return {
        "pytest": [*pytest, *marked],
        **lint(modules),
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


def run_checks(console: Console, *, slow: bool) -> list[Outcome]:
    """Run all checks in parallel; print each result at once, with the output of failed checks."""
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
        # ansible.cfg names no inventory, and ansible-lint has no option for one.
        inventory = {"ANSIBLE_INVENTORY": str(LAB_INVENTORY)}
        settings = {"ansible-lint": inventory, "ansible syntax": inventory}
        checks = [
            pool.submit(commands.quietly, name, command, settings.get(name, {"MYPYPATH": str(modules)}))
            for name, command in local_checks(modules, slow=slow).items()
        ]
        for future in concurrent.futures.as_completed(checks):
            outcome = future.result()
            outcomes.append(outcome)
            show(console, outcome)
            if not outcome.ok:
                console.print(Text(outcome.output.rstrip()), soft_wrap=True)
    return outcomes
