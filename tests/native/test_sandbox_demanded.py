"""A partition or an account demands an image: slurmctld refuses other jobs, and says what to add."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.quiet import benchmark
from ansible.module_utils.slurmstead.smoke import commands as smoke
from slurmstead.paths import ROOT
from tests.native import conf
from tests.native.cluster import Cluster
from tests.native.sandbox import HOME, started

pytestmark = pytest.mark.slow

SCRIPT = ROOT / "tests/unit/golden/slurmctld/job_submit.lua"
IMAGE = "--container=/share/images/plain"
PARTITION = "partition course: jobs run in images only. Add --container=/share/images/NAME."


@pytest.fixture(scope="module")
def demanding(release: str) -> Iterator[Cluster]:
    """A cluster whose partition `course` and account `students` demand an image, switched on while it runs."""
    with started(release, partitions=f"{conf.PARTITIONS}\nPartitionName=course Nodes=ALL") as cluster:
        cluster.run("tee", "/etc/slurm/job_submit.lua", text=SCRIPT.read_text())
        cluster.run("tee", "-a", "/etc/slurm/slurm.conf", text="JobSubmitPlugins=lua\n")
        cluster.run("scontrol", "reconfigure")
        cluster.wait_until_idle()
        yield cluster


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["--partition=course"], PARTITION, id="partition"),
        pytest.param(["--partition=main,course"], PARTITION, id="one of two partitions"),
        pytest.param(["--account=students"], "account students: jobs run in images only.", id="account"),
        pytest.param(["--account=STUDENTS"], "account STUDENTS: jobs run in images only.", id="account in capitals"),
    ],
)
def test_a_job_without_an_image_is_refused(demanding: Cluster, words: list[str], said: str) -> None:
    for command in (["sbatch", "--wrap=true"], ["srun", "true"], ["salloc", "true"]):
        done = demanding.tried(command[0], "--mem=100", *words, *command[1:], user="alice")
        assert done.returncode != 0, command
        assert said in done.stderr


@pytest.mark.parametrize("path", ["/tmp/own", "/share/images/..", "/share/images/plain/rootfs"])
def test_a_bundle_of_the_users_own_is_refused(demanding: Cluster, path: str) -> None:
    for command in (["sbatch", "--wrap=true"], ["srun", "true"]):
        done = demanding.tried(command[0], "--mem=100", f"--container={path}", *command[1:], user="alice")
        assert done.returncode != 0, command
        assert f"{path} is not an image. The images are the directories of /share/images." in done.stderr


@pytest.mark.parametrize("words", [["--partition=course"], ["--account=students"]])
def test_a_job_in_an_image_runs(demanding: Cluster, words: list[str]) -> None:
    assert demanding.run("srun", "--mem=100", *words, IMAGE, "id", "-un", user="alice") == "alice"


def test_other_jobs_are_as_before(demanding: Cluster) -> None:
    assert demanding.run("srun", "--mem=100", "--account=others", "id", "-un", user="alice") == "alice"


@pytest.mark.parametrize("kind", ["host", "batch"])
def test_the_smoke_test_needs_no_image(demanding: Cluster, kind: str) -> None:
    options = smoke.ask(f"smoke-00ff00ff-{kind}", "course", 100, 1, 60)
    command = smoke.srun(options, ["node1"], ["true"]) if kind == "host" else smoke.sbatch(options, HOME)

    done = demanding.tried(*command, text="#!/bin/sh\ntrue\n", user="alice")
    others = demanding.tried(*command, text="#!/bin/sh\ntrue\n", user="bob")

    assert done.returncode == 0, done.stderr
    assert others.returncode != 0 and PARTITION in others.stderr
    demanding.wait_until_idle()


def test_a_measurement_of_a_quiet_node_needs_no_image(demanding: Cluster) -> None:
    command = benchmark.command("node1", f"quiet-{'0' * 8}", 1, 60)

    done = demanding.tried(
        *(word.replace("=quiet", "=course") if "partition" in word else word for word in command), user="alice"
    )

    assert done.returncode == 0, done.stderr


def update(cluster: Cluster, user: str, job: str, change: str) -> bool:
    """Return whether a user changed a job. Slurm 24.11 refuses a new partition at times, with the error of a socket."""
    for _ in range(20):
        done = cluster.tried("scontrol", "update", f"job={job}", change, user=user)
        if "Resource temporarily unavailable" not in done.stderr:
            break
    return done.returncode == 0


def test_a_waiting_job_cannot_be_moved_there(demanding: Cluster) -> None:
    submit = ("sbatch", "--parsable", "--hold", "--mem=100", "--output=/dev/null", "--wrap=true")
    plain, inside = (demanding.run(*submit, *words, user="alice") for words in ([], [IMAGE]))

    moved = [update(demanding, "alice", job, "partition=course") for job in (plain, inside)]
    kept = update(demanding, "alice", plain, "timelimit=7")
    by_root = update(demanding, "root", plain, "partition=course")
    demanding.run("scancel", plain, inside)

    assert [*moved, kept, by_root] == [False, True, True, True]


def test_a_step_without_an_image_is_not_refused(demanding: Cluster) -> None:
    # The page says so: slurmctld asks the script about jobs only.
    submit = ("sbatch", "--parsable", "--mem=100", "--output=/dev/null", "--partition=course", IMAGE)
    job = demanding.run(*submit, "--wrap=sleep 300", user="alice")
    demanding.wait_for(lambda: demanding.run("squeue", "--noheader", "--format=%T") == "RUNNING", 60, "the job runs")
    step = ("srun", f"--jobid={job}", "--overlap", "--mem=0", "sh", "-c", "test -e /share/images && echo outside")
    done = demanding.tried(*step, user="alice")
    demanding.run("scancel", job)
    program = "#!/bin/sh\ntest -e /share/images && echo print outside\n"
    demanding.run("sh", "-c", "cat >before && chmod +x before", text=program, user="alice")
    words = ("--mem=100", "--partition=course", IMAGE, f"--task-prolog={HOME}/before")
    before = demanding.run("srun", *words, "true", user="alice")

    assert (done.stdout, before) == ("outside\n", "outside"), done.stderr
