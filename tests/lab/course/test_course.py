"""docs/course.md, command by command: a list of 215 students, a cluster, and a student's plot in a browser.

STEAD_LAB=NAME pytest tests/lab/course

With UPDATE_GOLDEN=1 the pictures of the page are replaced by those of this run.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from slurmstead.paths import ROOT
from tests.lab.course import page
from tests.lab.run import as_person

STUDENTS = [f"student{number:03}" for number in range(1, 216)]
STUDENT, PASSWORD = STUDENTS[0], "correct horse battery"
PICTURES = ("course-invitation", "course-plot")
CLOSED = "login_only_with_jobs: true"
"""It needs control groups, which these containers do not have; tests/lab/login makes them some."""
FUSE = "test -e /dev/fuse || { mknod /dev/fuse c 10 229 && chmod 0666 /dev/fuse; }"
"""Containers have no udev, which makes it on machines."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Where the site will be; the name of a cluster that has run is that of its directory."""
    return tmp_path_factory.mktemp("of") / "lab"


@pytest.fixture(scope="module")
def run(site: pathlib.Path) -> Callable[..., str]:
    """Run a command of the page in the clone; return its output. An `export` is for the commands after it."""
    environment = {name: value for name, value in os.environ.items() if name != "STEAD_SITE"}

    def call(line: str, *more: str) -> str:
        words = [*shlex.split(line), *more]
        if words[0] == "export":
            environment.update([words[1].split("=")])
            return ""
        done = as_person(words, 3600, env=environment)
        assert done.returncode == 0, f"{line}: {done.returncode}\n{done.stdout[-8000:]}"
        return done.stdout

    return call


def given(lab: Any, site: pathlib.Path, table: pathlib.Path, command: str) -> tuple[str, list[str]]:
    """Return a command of the page with this test's paths, machines and people, and options instead of questions."""
    if " init " in command:
        workers = " ".join(f"--worker {name}={lab.address(name)}" for name in lab.workers)
        machines = f"--control {lab.control}={lab.address(lab.control)} {workers}"
        command = re.sub(r"--control .*", machines, command)
        return command.replace("~/course", str(site)), ["--user=teacher", f"--key={lab.directory}/key.pub"]
    replaced = {"~/course": str(site), "students.csv": str(table)}
    for old, new in replaced.items():
        command = command.replace(old, new)
    if " people import " in command:
        return command, ["--yes"]
    if "bootstrap-hosts" in command:
        return command.partition(" --ask-pass")[0], ["--extra-vars=bootstrap_login_user=debian"]
    return command, []


@pytest.fixture(scope="module")
def link(lab: Any, site: pathlib.Path, run: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the commands of the page lead to: the link for a student."""
    table = tmp_path_factory.mktemp("table") / "students.csv"
    columns = page.block("csv").splitlines()[0]
    rows = [f"{name},Student {name[-3:]},cs2026,{name}@example.org" for name in STUDENTS]
    table.write_text("\n".join([columns, *rows, ""]))
    for command in page.commands():
        own, more = given(lab, site, table, command)
        said = run(own, *more)
        if " init " in command:
            lab.reach(site)
            if lab.of_containers:
                settings = site / "group_vars/all.yml"
                settings.write_text(settings.read_text().replace(CLOSED, CLOSED.replace("true", "false")))
            lab.everywhere(lambda name: lab.root(name, FUSE), lab.workers)
    lab.wait_until_idle(180)
    links = dict(re.findall(r"^(student\d+)  (https://\S+)$", said, re.MULTILINE))
    assert list(links) == STUDENTS
    return str(links[STUDENT])


@pytest.fixture(scope="module")
def printed(lab: Any, link: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the page's cell printed for a student in Chromium, which is in the network of a worker."""
    assert shutil.which("chromedriver"), "install the packages chromium and chromium-driver of Debian"
    pictures = tmp_path_factory.mktemp("pictures")
    network = ["nsenter", f"--net={lab.directory}/{lab.workers[0]}/network"]
    student = [sys.executable, "-m", "tests.lab.course.student", link, STUDENT, PASSWORD, str(pictures)]
    done = subprocess.run(
        [*network, *student],
        cwd=ROOT,
        input=page.block("python").rstrip(),
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, f"{done.stderr}\nsee {pictures}\n{hub_log(lab)}"
    *seen, said = done.stdout.splitlines()
    assert seen == list(PICTURES)
    if os.environ.get("UPDATE_GOLDEN"):
        for name in PICTURES:
            shutil.copy(pictures / f"{name}.png", ROOT / "docs/figures")
    return str(json.loads(said))


def hub_log(lab: Any) -> str:
    """Return the end of the hub's journal."""
    return str(lab.root(lab.control, "journalctl --no-pager -n 40 -u slurmstead-jupyterhub"))


def test_each_student_has_an_account_on_each_machine_and_in_slurm(lab: Any, link: str) -> None:
    assert link
    count = "getent passwd | grep -c ^student"
    assert set(lab.everywhere(lambda name: lab.root(name, count)).values()) == {str(len(STUDENTS))}
    users = lab.root(lab.control, "sacctmgr --noheader --parsable2 show assoc format=User,Account").splitlines()
    assert {line for line in users if line.startswith("student")} == {f"{name}|cs2026" for name in STUDENTS}


def test_a_student_gets_a_plot_from_a_quiet_node_inside_a_sandbox(lab: Any, printed: str) -> None:
    assert "Error" not in printed
    fields = "JobName,Partition,NodeList,Container,State"
    shown = lab.root(lab.control, f"sacct -nXP --user={STUDENT} --format={fields}").splitlines()
    jobs = {line.split("|")[0]: line.split("|")[1:] for line in shown}

    quiet = lab.workers[-1]
    assert jobs["caches"] == ["quiet", quiet, "/share/images/course", "COMPLETED"]
    partition, node, container, state = jobs["notebook"]
    assert (partition, container, state) == ("main", "", "RUNNING")
    assert node in lab.workers and node != quiet


def test_an_experiment_without_an_image_is_refused(lab: Any, link: str) -> None:
    assert link
    said = lab.without_login(lab.control, STUDENT, "sbatch --chdir=/tmp --partition=quiet --wrap=id 2>&1 || true")

    assert "partition quiet: jobs run in images only. Add --container=/share/images/NAME." in said


def test_a_second_run_changes_nothing_and_ends_no_notebook(lab: Any, printed: str, run: Callable[..., str]) -> None:
    assert printed is not None
    before = lab.root(lab.control, "squeue --noheader --format='%i %u %j %T'")
    assert "notebook RUNNING" in before

    assert re.search(rf"\b0 changes on {len(lab.names)} hosts", run("scripts/stead up"))
    assert lab.root(lab.control, "squeue --noheader --format='%i %u %j %T'") == before
    assert lab.root(lab.control, f"getent shadow {STUDENT}").split(":")[1].startswith("$")
