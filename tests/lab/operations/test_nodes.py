"""`stead remove-node` and `add-node`: jobs go on, and no other worker is touched."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurmstead.errors import ExitCode
from slurmstead.paths import PLAYBOOKS


class Others:
    """The workers that an operation on one of them has to leave alone, and a job on the first of them."""

    def __init__(self, lab: Any, chosen: str, job: str, job_state: Callable[[str], str]) -> None:
        self.lab, self.job, self.job_state = lab, job, job_state
        self.names = [name for name in lab.workers if name != chosen]
        self.before = self._seen()

    def _seen(self) -> dict[str, Any]:
        """Return what each has in /etc and /usr/local, and the processes of its daemons."""
        pids = self.lab.pids(self.names)
        return {n: (tree, pids[n]) for n, tree in self.lab.everywhere(self.lab.tree, self.names).items()}

    def assert_untouched(self) -> None:
        """Files, daemons and the job are as before."""
        assert self._seen() == self.before
        assert self.job_state(self.job) == "RUNNING"


class KnownHosts:
    """The file that holds the host key of a machine of the lab."""

    def __init__(self, lab: Any, name: str) -> None:
        self.path = pathlib.Path(lab.directory / name / "known_hosts")
        self.text = self.path.read_text()

    def restore(self) -> None:
        """Know the machine by the key that it had when this began."""
        self.path.write_text(self.text)


@pytest.fixture
def chosen(lab: Any) -> str:
    """The worker that leaves and comes back."""
    return str(lab.workers[-1])


@pytest.fixture
def known_hosts(lab: Any, chosen: str) -> Iterator[KnownHosts]:
    """What is known of the chosen worker; in the end it is known as before."""
    found = KnownHosts(lab, chosen)
    yield found
    found.restore()


def fingerprint(lab: Any, name: str) -> str:
    """Return the fingerprint of the host key that a machine was made with."""
    command = ["ssh-keygen", "-l", "-f", str(lab.directory / name / "host_key.pub")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[1]


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
    assert lab.root(lab.control, f"sinfo --noheader --nodes={chosen} --format=%T") == "mixed"


def test_a_node_that_a_partition_names_is_not_removed_and_takes_jobs_as_before(lab: Any, chosen: str) -> None:
    pids = lab.pids()
    variables = {"removed_node": chosen, "slurm_partitions": {"long": {"Nodes": chosen}}}
    limit = f"{lab.control},{lab.server},{chosen}"

    run = lab.ansible("--limit", limit, "--extra-vars", json.dumps(variables), str(PLAYBOOKS / "remove-node.yml"))

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
    others = Others(lab, chosen, submit(lab.workers[0], 1200), job_state)
    key = fingerprint(lab, chosen)

    done = stead("remove-node", chosen)

    assert done.returncode == ExitCode.OK, done.stdout
    others.assert_untouched()
    for path in ("/etc/hosts", "/etc/exports.d/slurmstead.exports", "/etc/slurm/slurm.conf"):
        text = lab.root(lab.control, f"cat {path}")
        assert not re.search(rf"\b{chosen}\b|\b{re.escape(lab.address(chosen))}\b", text), path
    assert known_hosts.path.read_text() == ""
    assert not pathlib.Path(lab.directory, "hardware", f"{chosen}.yml").exists()
    known_hosts.restore()
    assert lab.root(chosen, "! test -e /etc/munge/munge.key && ! pidof slurmd munged && ! mountpoint -q /share") == ""
    assert "enabled" not in lab.root(chosen, "systemctl is-enabled slurmd munge share.automount || true").split()
    known_hosts.path.write_text("")

    done = stead("add-node", chosen)

    assert done.returncode == ExitCode.TASK_FAILED
    assert f"{chosen} presents a key that this computer does not know: {key}" in done.stdout

    done = stead("add-node", chosen, "--host-key", key)

    assert done.returncode == ExitCode.OK, done.stdout
    others.assert_untouched()
    assert lab.user(f"srun --nodelist={chosen} --mem=50 hostname") == chosen
