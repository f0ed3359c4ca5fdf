"""Prolog, TaskProlog and Epilog of the role scratch; they run here as they stand, with a configuration of the test."""

from __future__ import annotations

import os
import pathlib
import pwd
import subprocess

import pytest

FILES = pathlib.Path(__file__).resolve().parents[2] / "roles" / "scratch" / "files"
CONFIGURATION = "/etc/default/slurmstead-scratch"
BUNDLES = "/run/slurmstead-oci"
DROP_INS = "/usr/local/lib/slurmstead/"
TEMPORARY = "/dev/shm /tmp /var/tmp"
SCRIPTS = ("prolog", "task-prolog", "epilog")
LOGIN = {name: "/given" for name in ("HOME", "LOGNAME", "PATH", "SHELL", "USER")} | {"PATH": "/usr/bin:/bin"}
"""What a task gets from the shell in which its job was submitted, unless `--export` says otherwise."""


class Node:
    """A node with the role applied; `job` is the directory of job 42."""

    def __init__(self, root: pathlib.Path, mounted: str = "no") -> None:
        self.scratch = root / "scratch"
        self.scratch.mkdir()
        self.job = self.scratch / "job-42"
        self.configuration = root / "configuration"
        self.configuration.write_text(f"scratch_path={self.scratch}\nscratch_is_mounted={mounted}\n")
        self.temporary = [root / name for name in ("shm", "tmp", "var-tmp")]
        self.scripts = {name: root / name for name in SCRIPTS}
        for name, script in self.scripts.items():
            text = (FILES / name).read_text()
            assert CONFIGURATION in text
            text = text.replace(CONFIGURATION, str(self.configuration)).replace(BUNDLES, f"{root}/bundles")
            text = text.replace(TEMPORARY, " ".join(map(str, self.temporary))).replace("\nPATH=", f"\nPATH={root}/bin:")
            # The user who runs the tests may be root.
            script.write_text(text.replace(DROP_INS, f"{root}/").replace("-ge 1000", "-ge 0"))
            script.chmod(0o755)

    def run(self, name: str, status: int = 0, login: dict[str, str] = LOGIN, **environment: str) -> str:
        """Run a script as Slurm does for job 42; returns what it prints."""
        given = {**login, "SLURM_JOB_ID": "42", "SLURM_JOB_UID": str(os.geteuid()), **environment}
        done = subprocess.run(
            [str(self.scripts[name])], env=given, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == status, done.stderr
        return done.stdout

    def drop_in(self, name: str, script: str, mode: int = 0o755) -> None:
        """Put a drop-in in place."""
        path = self.scratch.parent / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(mode)


@pytest.fixture
def node(tmp_path: pathlib.Path) -> Node:
    """A node without an extra disk."""
    return Node(tmp_path)


def test_a_job_gets_a_directory_of_its_own(node: Node) -> None:
    node.run("prolog")
    assert node.job.stat().st_mode & 0o7777 == 0o700
    assert node.job.stat().st_uid == os.geteuid()


def test_a_task_learns_its_directory(node: Node) -> None:
    node.run("prolog")
    assert node.run("task-prolog") == f"export SCRATCH={node.job}\nexport TMPDIR={node.job}\n"


def test_a_task_without_a_directory_keeps_its_environment(node: Node) -> None:
    assert node.run("task-prolog") == ""


def test_a_task_without_the_variables_of_a_login_gets_them(node: Node) -> None:
    me = pwd.getpwuid(os.getuid())
    told = [f"HOME={me.pw_dir}", f"LOGNAME={me.pw_name}", "PATH=/usr/local/bin:/usr/bin:/bin", f"SHELL={me.pw_shell}"]

    assert node.run("task-prolog", login={"USER": "/given"}) == "".join(f"export {word}\n" for word in told)


def test_a_task_keeps_the_variables_of_a_login_that_it_has(node: Node) -> None:
    login = {"HOME": "/a", "LOGNAME": "b", "PATH": "/opt/of/the/user", "SHELL": "/c", "USER": "d"}

    assert node.run("task-prolog", login=login) == ""


def test_the_directory_goes_with_the_job(node: Node) -> None:
    node.run("prolog")
    (node.job / "a b").mkdir()
    (node.job / "a b" / "file").write_text("x")
    (node.scratch / "job-421").mkdir()
    node.run("epilog")
    assert [path.name for path in node.scratch.iterdir()] == ["job-421"]


def test_the_directories_of_its_tasks_in_images_go_too(node: Node, tmp_path: pathlib.Path) -> None:
    for name in ("42-0", "42-4294967291", "421-0"):
        (tmp_path / "bundles" / name / "task-0").mkdir(parents=True)
        (tmp_path / "bundles" / name / "task-0" / "config.json").write_text("{}")
    node.run("epilog")
    assert [path.name for path in (tmp_path / "bundles").iterdir()] == ["421-0"]


@pytest.fixture
def closed(node: Node) -> Node:
    """A node that is closed to users without a job, with a file in each temporary directory; see `left`."""
    with node.configuration.open("a") as file:
        file.write("scratch_remove_temporary=yes\n")
    for directory in node.temporary:
        (directory / "a b").mkdir(parents=True)
        (directory / "a b" / "file").write_text("x")
    answers(node, processes="", jobs="")
    return node


def answers(node: Node, processes: str, jobs: str, status: int = 0) -> None:
    """Let pgrep and squeue answer; squeue writes down its words."""
    node.drop_in("bin/pgrep", f"echo '{processes}'; test -n '{processes}'")
    node.drop_in("bin/squeue", f"echo \"$@\" >>{node.scratch.parent}/asked; echo '{jobs}'; exit {status}")


def left(node: Node) -> list[str]:
    """Return the names in the temporary directories."""
    return [path.name for directory in node.temporary for path in directory.iterdir()]


def test_the_last_job_of_a_user_removes_temporary_files(closed: Node) -> None:
    closed.run("epilog", SLURMD_NODENAME="node1")

    assert left(closed) == []
    assert all(directory.is_dir() for directory in closed.temporary)
    asked = (closed.scratch.parent / "asked").read_text()
    assert f"--user={os.geteuid()} --nodelist=node1 " in asked
    assert "COMPLETING" not in asked, "of two jobs that end together, each would leave it to the other"


@pytest.mark.parametrize(
    "told", [{"processes": "7", "jobs": ""}, {"processes": "", "jobs": "43 RUNNING"}], ids=["process", "job"]
)
def test_another_job_of_the_user_keeps_them(closed: Node, told: dict[str, str]) -> None:
    answers(closed, **told)
    closed.run("epilog", SLURMD_NODENAME="node1")
    assert left(closed) == ["a b"] * 3


def test_a_slurmctld_that_does_not_answer_keeps_them_and_drains_no_node(closed: Node) -> None:
    answers(closed, "", "", status=1)
    closed.run("epilog", SLURMD_NODENAME="node1")
    assert left(closed) == ["a b"] * 3


def test_files_of_a_job_that_starts_meanwhile_stay(closed: Node) -> None:
    closed.drop_in("bin/squeue", f"sleep 0.1; echo x >{closed.temporary[0]}/new")
    closed.run("epilog", SLURMD_NODENAME="node1")
    assert left(closed) == ["new"]


def test_temporary_files_of_others_stay(closed: Node) -> None:
    closed.run("epilog", SLURM_JOB_UID=str(os.geteuid() + 1), SLURMD_NODENAME="node1")
    assert left(closed) == ["a b"] * 3
    assert not (closed.scratch.parent / "asked").exists(), "slurmctld need not answer each node at the end of each job"


def test_an_open_node_keeps_temporary_files(closed: Node) -> None:
    closed.configuration.write_text(closed.configuration.read_text().replace("temporary=yes", "temporary=no"))
    closed.run("epilog", SLURMD_NODENAME="node1")
    assert left(closed) == ["a b"] * 3


def test_a_link_in_a_temporary_directory_is_not_followed(closed: Node, tmp_path: pathlib.Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    (closed.temporary[0] / "link").symlink_to(tmp_path / "precious")
    closed.run("epilog", SLURMD_NODENAME="node1")
    assert left(closed) == []
    assert (tmp_path / "precious" / "file").read_text() == "x"


def test_a_link_in_the_directory_is_not_followed(node: Node, tmp_path: pathlib.Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    node.run("prolog")
    (node.job / "link").symlink_to(tmp_path / "precious")
    node.run("epilog")
    assert (tmp_path / "precious" / "file").read_text() == "x"
    assert not node.job.exists()


def test_a_requeued_job_starts_with_its_directory(node: Node) -> None:
    node.run("prolog")
    node.run("prolog")
    assert node.job.is_dir()


@pytest.mark.parametrize("name", ["prolog", "epilog"])
@pytest.mark.parametrize("job", ["", "../other", "4*", "42 43", "-rf"])
def test_what_is_no_job_number_is_left_alone(node: Node, name: str, job: str) -> None:
    (node.scratch / "job-4").mkdir()
    (node.scratch.parent / "other").mkdir()
    node.run(name, SLURM_JOB_ID=job)
    assert [path.name for path in node.scratch.iterdir()] == ["job-4"]
    assert (node.scratch.parent / "other").is_dir()


def test_a_user_without_a_number_gets_no_directory(node: Node) -> None:
    node.run("prolog", SLURM_JOB_UID="")
    assert not node.job.exists()


def test_a_missing_disk_does_not_fill_the_root_file_system(tmp_path: pathlib.Path) -> None:
    node = Node(tmp_path, mounted="yes")
    node.run("prolog")
    assert not node.job.exists()


def test_a_mounted_disk_is_seen(tmp_path: pathlib.Path) -> None:
    node = Node(tmp_path, mounted="yes")
    mounts = tmp_path / "mounts"
    mounts.write_text(f"proc /proc proc rw 0 0\n/dev/mapper/scratch-scratch {node.scratch} ext4 rw 0 0\n")
    script = node.scripts["prolog"]
    script.write_text(script.read_text().replace("/proc/self/mounts", str(mounts)))
    node.run("prolog")
    assert node.job.is_dir()


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_node_without_scratch_runs_jobs(node: Node, name: str) -> None:
    node.scratch.rmdir()
    assert node.run(name) == ""


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_node_without_the_configuration_runs_jobs(node: Node, name: str) -> None:
    node.configuration.unlink()
    node.run(name)
    assert not node.job.exists()


@pytest.mark.parametrize("name", ["prolog", "epilog"])
def test_drop_ins_run_in_the_order_of_their_names(node: Node, name: str) -> None:
    for drop_in in ("20-b", "10-a", "30-c"):
        node.drop_in(f"{name}.d/{drop_in}", 'echo "${0##*/} $SLURM_JOB_ID"')
    # What the role is about to write.
    node.drop_in(f"{name}.d/.40-d.x1y2", "echo hidden")
    node.drop_in(f"{name}.d/50-e", "echo not executable", 0o644)

    assert node.run(name).split("\n")[:-1] == ["10-a 42", "20-b 42", "30-c 42"]


def test_drop_ins_find_the_directory_before_and_after_the_job(node: Node) -> None:
    for name in ("prolog", "epilog"):
        node.drop_in(f"{name}.d/own", f"[ -d {node.job} ]")
        node.run(name)

    assert not node.job.exists()


def test_no_job_starts_where_a_drop_in_of_the_prolog_fails(node: Node) -> None:
    node.drop_in("prolog.d/10-a", "exit 3")
    node.drop_in("prolog.d/20-b", "echo not run")

    assert node.run("prolog", status=3) == ""


def test_a_drop_in_of_the_epilog_that_fails_keeps_no_other_from_its_work(node: Node) -> None:
    node.run("prolog")
    node.drop_in("epilog.d/10-a", "exit 3")
    node.drop_in("epilog.d/20-b", "echo run")

    assert node.run("epilog", status=3) == "run\n"
    assert not node.job.exists()


@pytest.mark.parametrize("name", ["prolog", "epilog"])
def test_drop_ins_run_on_a_node_without_scratch(node: Node, name: str) -> None:
    node.configuration.unlink()
    node.drop_in(f"{name}.d/own", "echo run")

    assert node.run(name) == "run\n"
