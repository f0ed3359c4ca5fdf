"""The table of what last passed: written by runs of a clean tree, read by CI."""

import datetime
import io
import json
import re
import subprocess

import pytest
from rich.console import Console

from slurmstead.errors import CheckFailed
from slurmstead.testing import record, table, tree
from slurmstead.testing.outcome import Outcome
from slurmstead.testing.record import Passed
from slurmstead.testing.scenarios import LAB_TESTS, NATIVE

NOW = datetime.datetime(2026, 11, 24, 8, 30, tzinfo=datetime.UTC)
GOOD = Outcome("smoke bookworm", True, 61.4, "7 passed in 60.1s\n")
COMMIT = "a" * 40


@pytest.fixture
def path(tmp_path):
    """A table with one line."""
    record.note(tmp_path / "passed.json", "smoke bookworm", GOOD, COMMIT, NOW)
    return tmp_path / "passed.json"


def test_a_line_says_when_at_which_commit_how_long_and_how_many_tests(path):
    assert record.load(path) == {"smoke bookworm": Passed("2026-11-24T08:30+00:00", COMMIT, 61, 7)}


def test_each_scenario_is_one_line_of_the_file_and_they_are_sorted(path):
    record.note(path, "gate bookworm", GOOD, COMMIT, NOW)
    lines = path.read_text().splitlines()
    assert [line.partition(":")[0] for line in lines] == ["{", '"gate bookworm"', '"smoke bookworm"', "}"]


def test_a_line_of_a_scenario_that_no_longer_exists_goes(path):
    old = record.load(path) | {"gone bookworm": record.load(path)["smoke bookworm"]}
    path.write_text(record.to_text(old))
    record.note(path, "gate bookworm", GOOD, COMMIT, NOW)
    assert list(record.load(path)) == ["gate bookworm", "smoke bookworm"]


def test_a_table_with_a_conflict_is_named(path):
    path.write_text("<<<<<<< HEAD\n" + path.read_text())
    with pytest.raises(CheckFailed, match="expected the table of passed scenarios in .*passed.json, found"):
        record.load(path)


@pytest.mark.parametrize(("days", "late"), [(29.9, False), (30.1, True)])
def test_a_scenario_that_passed_more_than_30_days_ago_is_overdue(path, days, late):
    found = record.overdue(record.load(path), NOW + datetime.timedelta(days=days))
    assert ("smoke bookworm" in found) is late
    assert found["gate bookworm native"] == "never passed"


def test_the_table_is_printed_with_a_line_for_each_scenario(path):
    console = Console(file=io.StringIO())
    table.print_table(console, record.load(path), NOW)
    lines = console.file.getvalue().splitlines()
    assert len(lines) == len(record.keys()) + 1
    (line,) = (line for line in lines if line.startswith("smoke") and "bookworm" in line)
    assert line.split() == ["smoke", "bookworm", "2026-11-24", "08:30", "aaaaaaa", "1:01", "min", "7"]


def test_programs_read_the_table_as_json(path):
    found = json.loads(table.to_json(record.load(path), NOW))
    by_name = {(line["scenario"], line["lab"]): line for line in found["scenarios"]}
    assert by_name["smoke", "bookworm"]["passed"]["tests"] == 7
    assert by_name["gate", "bookworm native"] == {
        "scenario": "gate",
        "lab": "bookworm native",
        "passed": None,
        "overdue": True,
    }
    assert found["ok"] is False


@pytest.fixture
def repository(tmp_path):
    """A repository with a file, a table and one commit; runs git in it."""

    def git(*arguments):
        identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
        return subprocess.run(
            ["git", "-C", tmp_path, *identity, *arguments], check=True, capture_output=True, text=True
        )

    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "passed.json").write_text("{}\n")
    (tmp_path / "file").write_text("one\n")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message=one")
    git.path = tmp_path
    return git


def test_a_tree_with_a_change_has_no_commit(repository):
    head = repository("rev-parse", "HEAD").stdout.strip()
    assert tree.commit(repository.path) == head
    (repository.path / "tests" / "passed.json").write_text("{ }\n")
    assert tree.commit(repository.path) == head
    (repository.path / "new").touch()
    assert tree.commit(repository.path) is None


NATIVE_CLUSTER, COURSE, SMOKE, FAULTS, GATE = LINES = (
    "native", "course bookworm native", "smoke bookworm", "faults bookworm", "gate trixie native",
)  # fmt: skip


@pytest.fixture
def change(repository):
    """Change a file in a commit; say which of some lines of the table have to run again, the checks left out."""

    def commit(path):
        before = tree.commit(repository.path)
        file = repository.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("changed\n")
        repository("add", ".")
        repository("commit", "--quiet", f"--message={path}")
        after = tree.commit(repository.path)
        assert after != before
        assert tree.same(before, after, "checks", repository.path) == (path == "tests/passed.json")
        again, removed = (
            [key for key in LINES if not tree.same(*commits, key, repository.path)]
            for commits in ((before, after), (after, before))
        )
        assert removed == again
        return again

    return commit


@pytest.mark.parametrize(
    ("path", "again"),
    [
        ("tests/passed.json", []),
        ("file", [*LINES]),
        ("tests/lab/conftest.py", [*LINES]),
        ("tests/lab/smoke/test_smoke.py", [SMOKE]),
        ("tests/lab/doctor/faults.py", [FAULTS]),
        ("tests/native/test_size.py", [NATIVE_CLUSTER]),
        ("plugins/modules/lab_container.py", [NATIVE_CLUSTER, COURSE, GATE]),
        ("examples/ray/main.py", []),
        ("scripts/slurmstead/client/api.py", [NATIVE_CLUSTER, FAULTS]),
        ("docs/course.md", [COURSE]),
        ("docs/figures/notebook.png", [COURSE]),
        ("roles/os/README.md", [COURSE]),
        ("tests/unit/test_golden.py", []),
    ],
)
def test_a_line_is_run_again_if_a_file_changed_that_it_depends_on(change, path, again):
    assert change(path) == again


def test_each_scenario_that_imports_the_client_depends_on_it():
    imports = re.compile(r"^from (tests import client|tests\.client import|slurmstead\.client\b)", re.MULTILINE)
    found = {path.parent.name for path in LAB_TESTS.glob("*/*.py") if imports.search(path.read_text())}
    assert found == tree.CLIENTS - {NATIVE}


def test_only_native_tests_import_native_tests():
    imports = re.compile(r"^(from|import) tests\.native\b", re.MULTILINE)
    assert not [path for path in LAB_TESTS.glob("**/*.py") if imports.search(path.read_text())]


def test_a_commit_that_the_repository_does_not_have_is_another_tree(repository):
    assert not tree.same("b" * 40, tree.commit(repository.path), "checks", repository.path)


def test_a_directory_outside_a_repository_has_no_commit(tmp_path):
    assert tree.commit(tmp_path) is None
