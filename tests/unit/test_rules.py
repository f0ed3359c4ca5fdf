"""The rules of this repository that no linter knows. Each message says what to do."""

from __future__ import annotations

import ast
import functools
import pathlib
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import yaml

from slurmstead import role_docs

ROOT = pathlib.Path(__file__).resolve().parents[2]

MAX_TASK_LINES = 60
"""Lines of a task file."""
MAX_CONDITIONAL = 0.2
"""Part of all tasks that may have `when`."""


@functools.cache
def files() -> tuple[pathlib.Path, ...]:
    """All files that are tracked, or would be with the next `git add`, relative to the root."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = (pathlib.Path(name) for name in listing.stdout.split("\0") if name)
    return tuple(sorted(path for path in paths if (ROOT / path).is_file()))


def matching(*patterns: str) -> list[pathlib.Path]:
    """The files that match a pattern as a whole: `**` matches any number of directories, `*` no slash."""
    # Path.match treats `**` as `*`, and matches from the right.
    found = [re.compile(_expression(pattern)) for pattern in patterns]
    return [path for path in files() if any(one.fullmatch(path.as_posix()) for one in found)]


def _expression(pattern: str) -> str:
    words = {"**/": "(?:[^/]+/)*", "*": "[^/]*"}
    return "".join(words.get(part) or re.escape(part) for part in re.split(r"(\*\*/|\*)", pattern))


def text(path: pathlib.Path) -> str:
    return (ROOT / path).read_text(errors="replace")


def violations(search: Callable[[str], re.Match[str] | None], paths: Iterable[pathlib.Path]) -> dict[str, str]:
    """What a search finds first in the text of a file, by the file's path; only where it finds something."""
    found = {str(path): search(text(path)) for path in paths}
    return {path: match.group() for path, match in found.items() if match}


class Loader(yaml.CSafeLoader):
    """Reads `!vault` and the like as plain values."""


def _untagged(loader: yaml.CSafeLoader, _suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    return loader.construct_sequence(node) if isinstance(node, yaml.SequenceNode) else None


Loader.add_multi_constructor("!", _untagged)


def load(path: pathlib.Path) -> Any:
    return yaml.load(text(path), Loader)


def spec(role: str) -> dict[str, Any]:
    """The options of a role; that they exist is a test of its own."""
    path = ROOT / "roles" / role
    return role_docs.options_of(path) if (path / "meta" / "argument_specs.yml").exists() else {}


def tasks_of(data: Any) -> Iterator[dict[str, Any]]:
    """All tasks and handlers of a task file or playbook, those in blocks and the blocks themselves included."""
    for item in data or []:
        if "hosts" in item:
            for section in ("pre_tasks", "tasks", "post_tasks", "handlers"):
                yield from tasks_of(item.get(section))
        elif not any(key.endswith("import_playbook") for key in item):
            yield item
            for section in ("block", "rescue", "always"):
                yield from tasks_of(item.get(section))


ROLES = sorted({path.parts[1] for path in files() if path.parts[0] == "roles"})
TASK_FILES = matching("roles/*/tasks/**/*.yml", "roles/*/handlers/**/*.yml")
PLAYBOOKS = matching("playbooks/*.yml", "molecule/*/*.yml", "site.yml")
PLAYBOOK_TASKS = matching("playbooks/tasks/**/*.yml")
TASKS = {
    f"{path} {number}: {task.get('name', 'without a name')}": (path, task)
    for path in TASK_FILES + PLAYBOOK_TASKS + [path for path in PLAYBOOKS if isinstance(load(path), list)]
    for number, task in enumerate(tasks_of(load(path)), start=1)
}
PYTHON = matching("**/*.py")
TESTS = [path for path in PYTHON if path.name.startswith("test_")]


def _id(path: object) -> str:
    return str(path)


# Roles


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_a_spec_for_its_entry_point(role: str) -> None:
    path = ROOT / "roles" / role / "meta" / "argument_specs.yml"

    assert path.exists(), f"Write {path.relative_to(ROOT)}: it is the interface of the role"
    assert load(path)["argument_specs"]["main"].get("short_description"), f"Say in {path} what the role achieves"


@pytest.mark.parametrize("role", ROLES)
def test_a_roles_defaults_are_those_of_its_spec(role: str) -> None:
    path = ROOT / "roles" / role / "defaults" / "main.yml"
    defaults = (load(path) if path.exists() else None) or {}
    specified = {name: option["default"] for name, option in spec(role).items() if "default" in option}

    assert defaults == specified, f"Make defaults/main.yml and meta/argument_specs.yml of the role {role} say the same"


@pytest.mark.parametrize("role", ROLES)
def test_a_roles_variables_have_its_prefix(role: str) -> None:
    others = {name for other in ROLES if other != role for name in spec(other) if name.startswith(f"{other}_")}
    strangers = [name for name in spec(role) if not name.startswith(f"{role}_") and name not in others]

    assert not strangers, f"Begin each with {role}_, or let its own role specify it"


@pytest.mark.parametrize("role", ROLES)
def test_every_option_says_its_type_and_meaning(role: str) -> None:
    silent = [name for name, option in spec(role).items() if not (option.get("type") and option.get("description"))]

    assert not silent, f"Give each a type and a description with its unit in roles/{role}/meta/argument_specs.yml"


@pytest.mark.parametrize("role", ROLES)
def test_a_roles_internals_begin_with_two_underscores(role: str) -> None:
    for path in matching(f"roles/{role}/vars/*.yml"):
        strangers = [name for name in load(path) or {} if not name.startswith(f"__{role}_")]

        assert not strangers, f"Begin each with __{role}_ in {path}: what users set belongs in defaults and spec"


@pytest.mark.parametrize("role", ROLES)
def test_a_roles_readme_has_an_example_and_the_table_of_its_spec(role: str) -> None:
    stale = role_docs.stale(ROOT / "roles" / role)

    assert stale is None, "Run: PYTHONPATH=scripts python -m slurmstead.role_docs"
    assert "```yaml" in (ROOT / "roles" / role / "README.md").read_text(), f"Add an example to roles/{role}/README.md"


@pytest.mark.parametrize("role", ROLES)
def test_a_role_pulls_in_no_other(role: str) -> None:
    path = ROOT / "roles" / role / "meta" / "main.yml"

    assert not path.exists() or not load(path).get("dependencies"), "Leave the order of roles to the playbook"


def test_a_role_knows_no_groups() -> None:
    groups = re.compile(r"\bgroup_names\b|\bgroups\s*\[|\bgroups\.\w+\s*[|\[}]|\bin groups\b")
    paths = matching("roles/**/*")

    assert paths
    assert violations(groups.search, paths) == {}, "Pass what it means as a variable; playbooks know the groups"


def test_a_template_says_who_manages_its_file() -> None:
    managed = re.compile(
        # What the kernel or cloud-init reads in the first line cannot move.
        r"((#!|#cloud-config).*\n)?\{\{ ansible_managed \| comment(\(.*\))? \}\}\n"
    )
    templates = matching("roles/*/templates/**/*")
    silent = [str(path) for path in templates if not managed.match(text(path))]

    assert templates
    assert not silent, "Begin each with {{ ansible_managed | comment }}"


# Tasks

FORBIDDEN = {
    "set_fact": "compute it in Python, or in a variable of the play or role",
    "shell": "use command, or a module of plugins/modules",
    "ignore_errors": "say with failed_when which failure is acceptable",
    "local_action": "use delegate_to: localhost, or an action plugin",
    "warn": "remove it: Ansible knows no such option any more",
}


def test_a_task_uses_nothing_forbidden() -> None:
    words = {
        name: {key.rpartition(".")[2] for key in [*task, *(task.get("args") or {})]}
        for name, (_, task) in TASKS.items()
    }
    found = {name: {word: FORBIDDEN[word] for word in used & set(FORBIDDEN)} for name, used in words.items()}

    assert {name: advice for name, advice in found.items() if advice} == {}


def test_the_groups_that_a_run_makes_are_internal() -> None:
    """Else they would be groups of the inventory for clustershell."""
    made = [value for _, task in TASKS.values() for value in (task.get("ansible.builtin.group_by") or {}).values()]

    assert made
    assert not [value for value in made if not re.match(r"__|\{\{ '__", value)]


GERUND_OR_OTHER = re.compile(r"\w+(?:ing|ed|[^s]s)")
VERBS_LIKE_THAT = {"Bring", "Feed", "Need", "Ping", "Seed"}


def _advice_on_name(path: pathlib.Path, name: str) -> str | None:
    """What to do about the name of a task in a file; None if it is right."""
    if "tasks" in path.parts and path.stem != "main":
        prefix, bar, name = name.partition(" | ")
        if (prefix, bar) != (path.stem, " | "):
            return f"Begin the name with `{path.stem} | `"
    verb = name.partition(" ")[0]
    if not re.match(r"[A-Z][a-z]+", verb):
        return "Give the task a name that begins with a verb and a capital letter"
    if verb not in VERBS_LIKE_THAT and GERUND_OR_OTHER.fullmatch(verb):
        return f"Write the imperative, not {verb!r}"
    return "Remove the full stop from the task's name" if name.endswith(".") else None


def test_a_tasks_name_is_an_imperative() -> None:
    advice = {label: _advice_on_name(path, str(task.get("name") or "")) for label, (path, task) in TASKS.items()}

    assert {label: words for label, words in advice.items() if words} == {}


SECRET = re.compile(
    r"\b\w*(?:munge_key|password|passphrase|private_key|secret|token)\b"  # variables
    r"|munge\.key|slurm\.key|jwks|jwt_\w+\.key|slurmdbd\.conf",  # files
)


def _values(data: Any) -> Iterator[str]:
    """All single values in a task; a password's key in the place of the password."""
    if isinstance(data, dict):
        for key, value in data.items():
            # ! and * are no passwords: they lock an account (shadow(5)).
            yield from ["password"] if key in ("password", "passphrase") and value not in ("!", "*") else _values(value)
    elif isinstance(data, list):
        for value in data:
            yield from _values(value)
    else:
        yield str(data)


PATH_ONLY = {"command", "stat", "file"}
"""Modules that are told where a secret is but do not read it."""


def _secret(task: dict[str, Any]) -> re.Match[str] | None:
    """The first secret that a task reads."""
    if "block" in task or PATH_ONLY & {key.rpartition(".")[2] for key in task}:
        return None
    return SECRET.search("\n".join(_values({key: value for key, value in task.items() if key != "name"})))


def test_a_task_with_a_secret_shows_nothing() -> None:
    reading = {name: (task, found[0]) for name, (_, task) in TASKS.items() if (found := _secret(task))}
    showing = {
        name: secret
        for name, (task, secret) in reading.items()
        if not (task.get("no_log") is True and task.get("diff") is False)
    }

    assert reading
    assert showing == {}, "Set no_log: true and diff: false, because the task uses that secret"


def test_few_tasks_have_a_condition() -> None:
    conditional = [name for name, (_, task) in TASKS.items() if "when" in task]

    assert len(conditional) <= MAX_CONDITIONAL * len(TASKS), f"Choose hosts, not conditions, in some of {conditional}"


def test_a_task_file_is_short() -> None:
    long = [str(path) for path in TASK_FILES if len(text(path).splitlines()) > MAX_TASK_LINES]

    assert TASK_FILES
    assert not long, "Split each, and import the parts in main.yml"


def test_a_playbook_is_called_by_what_it_does() -> None:
    paths = matching("playbooks/*.yml")
    wrong = [str(path) for path in paths if not re.fullmatch(r"[a-z]+(-[a-z]+)+", path.stem)]

    assert paths
    assert not wrong, "Name it <verb>-<noun>.yml"


def test_a_play_of_control_ends_the_run_if_control_is_unreachable() -> None:
    """With any_errors_fatal, ansible-core 2.19 goes on with the next play: see shut-down-cluster.yml."""
    plays = [(path, play) for path in PLAYBOOKS for play in load(path) if "any_errors_fatal" in play]
    wrong = [path for path, play in plays if re.match(r"(\W*')?(control|nfs_server)\b(?!:)", play["hosts"])]

    assert plays
    assert not wrong, "Remove any_errors_fatal: a play of one host ends the run by itself"


# Modules


def _constants(path: pathlib.Path) -> dict[str, str]:
    """The string constants at the top of a Python file, by name."""
    assignments = (node for node in ast.parse(text(path)).body if isinstance(node, ast.Assign))
    return {
        target.id: node.value.value
        for node in assignments
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }


def _calls(path: pathlib.Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The called functions as written, and their constant keyword arguments."""
    for node in ast.walk(ast.parse(text(path))):
        if isinstance(node, ast.Call):
            constants = {
                word.arg: word.value.value
                for word in node.keywords
                if word.arg and isinstance(word.value, ast.Constant)
            }
            yield ast.unparse(node.func), constants


@pytest.mark.parametrize("path", matching("plugins/modules/*.py"), ids=_id)
def test_a_module_is_documented_and_can_check(path: pathlib.Path) -> None:
    constants = _constants(path)
    documents = {name: yaml.safe_load(constants.get(name, "")) for name in ("DOCUMENTATION", "EXAMPLES", "RETURN")}
    checks = [words.get("supports_check_mode") for name, words in _calls(path) if name == "AnsibleModule"]

    assert all(documents.values()), f"Add {[name for name, content in documents.items() if not content]} to {path}"
    assert documents["DOCUMENTATION"]["module"] == path.stem, "Give `module` the name of the file"
    described_only = not checks and (ROOT / "plugins" / "action" / path.name).exists()
    assert described_only or checks == [True], "Pass supports_check_mode=True to AnsibleModule"


# Python


def test_python_runs_no_shell() -> None:
    paths = [path for path in PYTHON if "shell" in text(path)]
    wrong = [str(path) for path in paths if any(words.get("shell") is True for _, words in _calls(path))]

    assert paths
    assert not wrong, "Pass a list of arguments"


OURS = matching("scripts/**/*.py", "plugins/**/*.py", "roles/*/files/**/*.py")
"""What is not a test or an example."""
PRINTING = matching(
    "scripts/slurmstead/cli/*.py",
    "scripts/slurmstead/client/verbs.py",
    # Programs of their own, which run on nodes.
    "scripts/slurmstead/client/remote/job.py",
    "roles/*/files/*.py",
)


def test_only_the_command_prints() -> None:
    paths = [path for path in OURS if path not in PRINTING and "print" in text(path)]
    wrong = [str(path) for path in paths if "print" in dict(_calls(path))]

    assert paths
    assert not wrong, "Return it, and print it in scripts/slurmstead/cli"


def _undocumented(path: str, body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                yield f"{path}:{node.lineno} {node.name}"
            if isinstance(node, ast.ClassDef):
                yield from _undocumented(path, node.body)


def test_what_is_public_has_a_docstring() -> None:
    trees = {str(path): ast.parse(text(path)) for path in OURS}
    modules = [path for path, tree in trees.items() if not ast.get_docstring(tree) and not _is_plugin(path)]
    silent = [name for path, tree in trees.items() for name in _undocumented(path, tree.body)]

    assert modules + silent == [], "Say in one sentence what it does or is; with errors and units if it has some"


def _is_plugin(path: str) -> bool:
    """Whether Ansible's DOCUMENTATION replaces the docstring, or the plugin of that name has it."""
    return path.startswith(("plugins/modules/", "plugins/action/"))


def _test_functions(path: pathlib.Path) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(text(path))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


def _asserts(function: ast.FunctionDef) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("raises", "warns", "fail") or name.startswith("assert_"):
                return True
    return False


def test_a_test_can_fail() -> None:
    functions = {str(path): list(_test_functions(path)) for path in TESTS}
    empty = [path for path, found in functions.items() if not found]
    silent = [
        f"{path}:{one.lineno} {one.name}" for path, found in functions.items() for one in found if not _asserts(one)
    ]

    assert not empty, "Add a test, or remove the file"
    assert not silent, "Let each assert what it expects"


def test_no_test_is_skipped() -> None:
    skips = re.compile(r"\bpytest\." + r"(mark\.)?(skip|skipif|xfail|importorskip)\b")

    assert violations(skips.search, TESTS) == {}, "Let the test fail where it cannot run, or run it elsewhere"


# All files

REGISTRIES = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("deb", "debian", "org"),
            ("security", "debian", "org"),
            ("archive", "ubuntu", "com"),
            ("ports", "ubuntu", "com"),
            ("galaxy", "ansible", "com"),
            ("registry", "npmjs", "org"),
            ("docker", "io"),
            ("ghcr", "io"),
            ("quay", "io"),
        )
    )
)
PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{40}")


def test_no_file_knows_a_registry() -> None:
    assert violations(REGISTRIES.search, files()) == {}, "Take it from the configuration of the machine instead"


def test_no_file_knows_a_developers_machine() -> None:
    own = {str(ROOT), str(pathlib.Path.home())} - {"/root", "/"}
    places = re.compile("|".join(rf"{re.escape(place)}\b" for place in sorted(own)) or r"(?!)")

    assert violations(places.search, files()) == {}, "Write the path relative to the repository, or compute it"


def test_no_file_holds_a_private_key() -> None:
    # The match itself is not printed: it is the key.
    assert list(violations(PRIVATE_KEY.search, files())) == [], "Remove it, and replace the key wherever it is used"


WAIVER = re.compile(r"\bno" + r"qa\b")


def test_no_file_waives_a_rule() -> None:
    assert violations(WAIVER.search, files()) == {}, "Follow the rule, or change its configuration for all files"
