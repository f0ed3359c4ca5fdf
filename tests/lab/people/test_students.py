"""A course of 215 students, imported from a table: how much longer `up` takes, and that they can work.

STEAD_LAB=NAME pytest -s tests/lab/people/test_students.py
"""

from __future__ import annotations

import base64
import csv
import pathlib
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurmstead.errors import ExitCode
from slurmstead.paths import LAB_INVENTORY

STUDENTS = [f"student{number:03}" for number in range(1, 216)]
GROUPS = ("morning", "evening")
LIMIT = 120
"""Seconds that the import and `up` may take longer than without the students."""

BUSY = 2
"""On a computer with so much other work that it is more: how many times as long as `up` without them."""

COURSE = "shares_template: course\n"
REMOVE = f"""
for name in {" ".join(STUDENTS)}; do userdel $name; done 2>&1
for name in {" ".join(GROUPS)}; do groupdel $name; done 2>&1
rm -rf /srv/share/home/student[0-9][0-9][0-9]
"""
FORGET = f"""
sacctmgr --immediate remove user where name={",".join(STUDENTS)}
sacctmgr --immediate remove account where name={",".join(GROUPS)}
true
"""
RECORDED = "sacctmgr -nP show assoc format=Account,User | grep --count 'student[0-9]' || true"

Stead = Callable[..., subprocess.CompletedProcess[str]]


def key() -> str:
    """Return the line of a public key, another one for each student."""
    kind = b"ssh-ed25519"
    blob = len(kind).to_bytes(4, "big") + kind + (32).to_bytes(4, "big") + secrets.token_bytes(32)
    return f"{kind.decode()} {base64.b64encode(blob).decode()}"


@pytest.fixture(scope="module")
def site(lab: Any, stead: Stead, tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """The lab's inventory as a site of a course without people; `up` has nothing to change."""
    path = tmp_path_factory.mktemp("course") / "site"
    shutil.copytree(LAB_INVENTORY, path)
    (path / ".slurmstead").touch()
    variables = path / "group_vars/all.yml"
    variables.write_text(variables.read_text() + COURSE)
    lab.inventory, usual = path / "hosts.yml", lab.inventory
    done = stead("up", seconds=2400)
    assert done.returncode == ExitCode.OK, done.stdout
    yield path
    shutil.copy(LAB_INVENTORY / "group_vars/all.yml", variables)
    (path / "files/people.yml").write_text("people: []\n")
    try:
        run = lab.ansible("--tags", "os,accounts,accounting,slurm", seconds=2400)
    finally:
        lab.inventory = usual
    lab.root(lab.control, FORGET, seconds=600)
    lab.everywhere(lambda name: lab.root(name, REMOVE, seconds=600))
    assert run.code == 0, run.output[-5000:]


@pytest.fixture(scope="module")
def without(site: pathlib.Path, stead: Stead) -> float:
    """The seconds of an `up` without students that changes nothing."""
    started = time.monotonic()
    done = stead("up", seconds=2400)
    assert re.search(r"\b0 changes on 4 hosts", done.stdout), done.stdout
    return time.monotonic() - started


@pytest.fixture(scope="module")
def imported(lab: Any, site: pathlib.Path, without: float, stead: Stead, tmp_path_factory: Any) -> float:
    """The seconds that a cluster needed to get the students of a table, from the import on."""
    keys = [*(key() for _ in STUDENTS[1:]), (lab.directory / "key.pub").read_text().strip()]
    table = tmp_path_factory.mktemp("table") / "students.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "full_name", "email", "group", "key"])
        for number, name in enumerate(STUDENTS):
            words = (f"Student Number {number}", f"{name}@example.org")
            writer.writerow([name, *words, GROUPS[number % 2], keys[number]])
    started = time.monotonic()
    shown = stead("people", "import", str(table), "--yes")
    assert shown.returncode == ExitCode.OK, shown.stdout
    done = stead("up", seconds=2400)
    assert done.returncode == ExitCode.OK, done.stdout
    return time.monotonic() - started


def test_students_cost_at_most_two_minutes(without: float, imported: float) -> None:
    print(f"up without students {without:.0f} s, import and up with them {imported:.0f} s")

    assert imported - without < max(LIMIT, BUSY * without)


def test_a_second_run_changes_nothing(without: float, imported: float, stead: Stead) -> None:
    started = time.monotonic()
    done = stead("up", seconds=2400)
    took = time.monotonic() - started
    print(f"up without students {without:.0f} s, again with them {took:.0f} s")

    assert imported and re.search(r"\b0 changes on 4 hosts", done.stdout), done.stdout
    assert took - without < max(LIMIT, BUSY * without)


def test_they_have_the_same_numbers_everywhere_and_accounts(lab: Any, imported: float) -> None:
    numbers = lab.everywhere(lambda name: lab.root(name, f"id --user {STUDENTS[0]} && id --user {STUDENTS[-1]}"))
    first, last = numbers[lab.control].split()

    assert imported and set(numbers.values()) == {f"{first}\n{last}"}
    assert lab.root(lab.control, RECORDED) == str(len(STUDENTS))


def test_a_student_logs_in_and_submits(lab: Any, imported: float) -> None:
    job = lab.user("sbatch --parsable --mem=50 --output=/dev/null --wrap=true", name=STUDENTS[-1])
    submitted = lab.root(lab.control, f"squeue --noheader --states=all --jobs={job} --format='%u %a %q'")
    deadline = time.monotonic() + 120
    shown = ""
    while "COMPLETED" not in shown and time.monotonic() < deadline:
        shown = lab.root(lab.control, f"sacct -nPX -j {job} --format=User,Account,State")
        time.sleep(1)

    group = GROUPS[(len(STUDENTS) - 1) % 2]
    assert imported and submitted == f"{STUDENTS[-1]} {group} course"
    assert shown == f"{STUDENTS[-1]}|{group}|COMPLETED"
