"""`stead people` changes people.yml of a site, or reports every mistake and writes nothing."""

import json

import pytest

from slurmstead.errors import ExitCode

HEADER = "name;full name;group;expires\r\n"


@pytest.fixture
def book(project):
    """Return the path of people.yml of an empty site."""
    project.write("hosts.yml", "all:\n")
    return project.path / "files/people.yml"


def test_a_list_is_imported_once_and_numbers_stay(project, book, stead, capsys):
    table = project.write("students.csv", f"\ufeff{HEADER}ann;Lee, Ann;course;\r\nbob;;course;2027-02-28\r\n")
    site = ("-i", project.path / "hosts.yml")

    assert stead("people", "import", table, "--yes", *site) == ExitCode.OK
    first = book.read_text()
    assert stead("people", "import", table, "--yes", *site) == ExitCode.OK
    assert book.read_text() == first
    assert stead("people", "remove", "bob", "--yes", *site) == ExitCode.OK
    assert stead("people", "add", "eve", "--yes", *site) == ExitCode.OK
    assert stead("people", "expire", "ann", "--on", "2020-01-01", "--yes", *site) == ExitCode.OK
    capsys.readouterr()
    assert stead("people", "list", "--json", *site) == ExitCode.OK
    found = {one["name"]: (one["uid"], one["active"]) for one in json.loads(capsys.readouterr().out)["people"]}
    assert found == {"ann": (10002, False), "bob": (10003, False), "eve": (10004, True)}


def test_a_wrong_row_imports_nothing(project, book, stead, capsys):
    table = project.write("students.csv", f"{HEADER}ann;;staff;\r\nroot;;;soon\r\n")

    assert stead("people", "import", table, "--yes", "-i", project.path / "hosts.yml") == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "students.csv:2: group: staff belongs to the system" in said
    assert "students.csv:3: name: root belongs to the system" in said
    assert 'students.csv:3: expires: "soon" is not a date' in said
    assert not book.exists()


def test_without_a_terminal_nothing_is_written_unless_told(project, book, stead, capsys):
    assert stead("people", "add", "ann", "-i", project.path / "hosts.yml") == ExitCode.USAGE
    assert "+ ann 10001" in capsys.readouterr().out
    assert not book.exists()


def test_a_person_who_comes_back_and_has_expired_is_named(project, book, stead, capsys):
    table = project.write("students.csv", f"{HEADER}ann;;course;\r\nbob;;course;\r\n")
    site = ("-i", project.path / "hosts.yml")
    for arguments in (["import", table], ["expire", "ann", "--on", "2020-01-01"], ["remove", "ann"]):
        assert stead("people", *arguments, "--yes", *site) == ExitCode.OK
    capsys.readouterr()

    assert stead("people", "add", "ann", "--yes", *site) == ExitCode.OK
    advice = "Give a later day, or run `stead people expire ann --on never`."
    assert f"ann stays locked, since 2020-01-01. {advice}" in capsys.readouterr().err
    assert stead("people", "import", table, "--yes", *site) == ExitCode.OK
    assert "ann stays locked" in capsys.readouterr().err
    assert stead("people", "add", "ann", "--expires", "2999-01-01", "--yes", *site) == ExitCode.OK
    assert "stays locked" not in capsys.readouterr().err

    assert stead("people", "expire", "ann", "--on", "never", "--yes", *site) == ExitCode.OK
    assert "ann 10002  expires: 2999-01-01 → none" in capsys.readouterr().out
