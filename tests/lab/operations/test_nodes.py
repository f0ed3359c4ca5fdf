"""`stead remove-node` and `add-node`: jobs go on, and no other worker is touched."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurmstead.errors import ExitCode
from slurmstead.paths import PLAYBOOKS
from tests.lab.operations.nodes import BUSY, KnownHosts, Others, fingerprint


@pytest.fixture
def known_hosts(lab: Any, chosen: str) -> Iterator[KnownHosts]:
    """What is known of the chosen worker; in the end it is known as before."""
    found = KnownHosts(lab, chosen)
    yield found
    found.restore()


def named_in(lab: Any, name: str) -> list[str]:
    """Return the files of the controller, which also has the share, that name a machine; containers export nothing."""
    paths = ("/etc/hosts", "/etc/exports.d/slurmstead.exports", "/etc/slurm/slurm.conf")
    known = re.compile(rf"\b{name}\b|\b{re.escape(lab.address(name))}\b")
    return [path for path in paths if known.search(lab.root(lab.control, f"cat {path} || true"))]


def remove_from_a_partition(lab: Any, name: str) -> Any:
    """Try to remove a node that a partition names."""
    variables = {"removed_node": name, "slurm_partitions": {"long": {"Nodes": name}}}
    limit = f"{lab.control},{lab.server},{name}"
    return lab.ansible("--limit", limit, "--extra-vars", json.dumps(variables), str(PLAYBOOKS / "remove-node.yml"))


def test_a_node_with_a_job_is_not_removed(
    lab: Any, stead: Callable[..., Any], chosen: str, submit: Callable[..., str], job_state: Any
) -> None:
    pids = lab.pids()
    job = submit(chosen, 600)

    done = stead("remove-node", chosen)

    assert done.returncode == ExitCode.TASK_FAILED
    assert f"nothing was changed, because of job {job} (running on {chosen})" in done.stdout
    assert job_state(job) == "RUNNING"
    assert lab.pids() == pids
    assert lab.root(lab.control, f"sinfo --noheader --nodes={chosen} --format=%T") in BUSY


def test_a_node_that_a_partition_names_is_not_removed_and_takes_jobs_as_before(lab: Any, chosen: str) -> None:
    pids = lab.pids()

    run = remove_from_a_partition(lab, chosen)

    assert run.code != 0
    assert f"{chosen} stays a worker: Nothing was changed" in run.output
    assert lab.pids() == pids
    assert lab.root(lab.control, f"sinfo --noheader --nodes={chosen} --format=%T") == "idle"


def test_a_node_leaves_and_comes_back_and_no_other_worker_is_touched(
    lab: Any,
    stead: Callable[..., Any],
    chosen: str,
    known_hosts: KnownHosts,
    submit: Callable[..., str],
    job_state: Any,
) -> None:
    job = submit(lab.workers[0], 1200)
    others = Others(lab, chosen)
    key = fingerprint(lab, chosen)
    lab.root(chosen, "install -D --mode=0400 /dev/null /etc/slurmstead/celery/ann.json")

    done = stead("remove-node", chosen)

    assert done.returncode == ExitCode.OK, done.stdout
    others.assert_untouched()
    assert job_state(job) == "RUNNING"
    assert named_in(lab, chosen) == []
    assert known_hosts.path.read_text() == ""
    assert not pathlib.Path(lab.directory, "hardware", f"{chosen}.yml").exists()
    known_hosts.restore()
    assert lab.root(chosen, "! test -e /etc/slurmstead/celery") == ""
    assert lab.root(chosen, "! test -e /etc/munge/munge.key && ! pidof slurmd munged && ! mountpoint -q /share") == ""
    assert "enabled" not in lab.root(chosen, "systemctl is-enabled slurmd munge share.automount || true").split()
    known_hosts.forget()

    done = stead("add-node", chosen)

    assert done.returncode == ExitCode.TASK_FAILED
    assert f"{chosen} presents a key that this computer does not know: {key}" in done.stdout

    done = stead("add-node", chosen, "--host-key", key)

    assert done.returncode == ExitCode.OK, done.stdout
    others.assert_untouched()
    assert job_state(job) == "RUNNING"
    assert lab.user(f"srun --nodelist={chosen} --mem=50 hostname") == chosen


def test_a_node_that_is_off_leaves_and_it_is_said_that_it_has_the_key(
    lab: Any, stead: Callable[..., Any], chosen: str
) -> None:
    lab.cut_power(chosen)
    try:
        silent = f"sinfo --noheader --nodes={chosen} --format=%T | grep --fixed-strings --regexp='*' --regexp=down"
        lab.insist(lab.control, silent, 400)
        refused = remove_from_a_partition(lab, chosen)

        assert refused.code != 0
        assert f"{chosen} stays a worker: Nothing was changed" in refused.output

        done = stead("remove-node", chosen)

        assert done.returncode == ExitCode.UNREACHABLE, done.stdout
        assert "`stead rotate-key` to invalidate its MUNGE key" in done.stdout
        assert named_in(lab, chosen) == []
    finally:
        lab.boot(chosen)
        back = stead("add-node", chosen)
    assert back.returncode == ExitCode.OK, back.stdout
