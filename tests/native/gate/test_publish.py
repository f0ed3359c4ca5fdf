"""A change reaches the daemons and no job notices, or everything is as it was."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.native.cluster import Cluster
from tests.native.gate.conftest import queue
from tests.native.gate.program import run

CONF = "/etc/slurm/slurm.conf"


def published(cluster: Cluster, *arguments: str, **keys: Any) -> dict[str, Any]:
    """Bring the configuration with other keys to the cluster; return what is said."""
    said: dict[str, Any] = json.loads(run(cluster, "publish", json.dumps(keys), *arguments))
    return said


@pytest.fixture(autouse=True)
def as_before(busy: Cluster) -> Iterator[None]:
    """The first configuration after each test, and the same jobs on the same nodes."""
    published(busy)
    before = queue(busy)
    yield
    assert published(busy)["error"] == ""
    assert queue(busy) == before


def told(cluster: Cluster, key: str) -> str:
    """Return what slurmctld has for a key."""
    match = re.search(rf"^{key} *= (.*)$", cluster.run("scontrol", "show", "config"), re.MULTILINE)
    assert match
    return match[1]


def seen(cluster: Cluster) -> list[str]:
    """Return what no refusal may change: the processes and the file."""
    return [cluster.daemon(), cluster.run("cat", CONF)]


def test_a_change_arrives_and_no_job_notices(busy: Cluster) -> None:
    before = queue(busy)

    assert published(busy, MaxJobCount=25001)["error"] == ""

    assert (told(busy, "MaxJobCount"), queue(busy)) == ("25001", before)


def test_the_workers_get_what_was_published(busy: Cluster) -> None:
    published(busy, KillWait=47)

    # From their own copies: they have no file in /etc/slurm.
    busy.wait_for(lambda: "KillWait=47" in busy.run("cat", "/run/slurm/conf/slurm.conf", on="node4"), 30, "it arrives")
    assert busy.tried("ls", CONF, on="node4").returncode != 0


def test_a_dry_run_says_what_it_would_do(busy: Cluster) -> None:
    before = seen(busy)

    said = published(busy, "check", MaxJobCount=25001)

    assert re.search(r"MaxJobCount: 1000000 → 25001: (restart slurmctld|reconfigure)", "\n".join(said["plan"]))
    assert seen(busy) == before


def test_what_makes_slurmctld_ill_is_taken_back(busy: Cluster) -> None:
    before, started = queue(busy), time.monotonic()

    said = published(busy, JobCompType="jobcomp/filetxt", JobCompLoc="/nonexistent/a/b")["error"]

    assert "/nonexistent/a/b: No such file or directory" in said
    assert "The last good configuration is active again, and slurmctld runs with it" in said
    assert " is UP" in busy.run("scontrol", "ping")
    assert queue(busy) == before
    assert time.monotonic() - started < 90


def test_what_hurts_jobs_is_refused(busy: Cluster) -> None:
    before = seen(busy)

    said = published(busy, SlurmdSpoolDir="/var/lib/slurm/elsewhere")["error"]

    assert "refused while jobs run there: job " in said
    assert seen(busy) == before


def test_fewer_jobs_than_there_are_end_none(busy: Cluster) -> None:
    before = queue(busy)

    said = published(busy, MaxJobCount=5)

    # 22.05 keeps all jobs, and accepts no new ones.
    assert ("would be forgotten" in said["error"], queue(busy)) == (busy.release == "trixie", before)


def test_an_edit_by_hand_is_put_right_and_said(busy: Cluster) -> None:
    before = busy.run("cat", CONF)
    busy.run("tee", "--append", CONF, text="MaxJobCount=7\n")

    said = published(busy)

    assert "the files found are in /etc/slurm/slurmstead/" in "\n".join(said["warnings"])
    assert busy.run("cat", CONF) == before


def test_images_are_not_taken_from_jobs(busy: Cluster) -> None:
    published(busy, "images")
    before = seen(busy)
    submit = ("sbatch", "--parsable", "--hold", "--output=/dev/null", "--container=/share/images/plain")
    job = busy.run(*submit, "--job-name=a\nb", "--wrap=true", user="alice")

    said = published(busy)["error"]
    after = seen(busy)
    busy.run("scancel", job)

    assert "oci.conf: RunTimeRun: " in said
    assert f"refused while any job runs or waits: job {job} (pending); they would run without their images" in said
    assert after == before
    assert published(busy)["error"] == ""
    assert busy.tried("ls", "/etc/slurm/oci.conf").returncode != 0
