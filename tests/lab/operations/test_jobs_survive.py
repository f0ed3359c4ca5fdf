"""Jobs outlive, one after the other, all that is done to a cluster in a year.

STEAD_LAB=NAME pytest -s tests/lab/operations/test_jobs_survive.py

Newer packages have a test of their own, test_upgrade.py, and so has a node that comes, test_nodes.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from slurmstead.paths import PLAYBOOKS, ROOT
from tests.lab.backup.survivors import key_of, shown, states
from tests.lab.faults.cluster import failures

CONF = "/etc/slurm/slurm.conf"
DEFAULTS = yaml.safe_load((ROOT / "roles/slurm/vars/main.yml").read_text())
PARTITIONS = {"slurm_partitions": {**DEFAULTS["__slurm_partition_defaults"], "night": {"Nodes": "ALL"}}}

WAITING = 20
LESS = 100
"""MiB by which a node is declared smaller."""

FIELDS = ("JobState", "Restarts", "SubmitTime")
OF_RUNNING = ("StartTime", "BatchHost")

PROCESSES = """
scontrol listpids {} | awk 'NR > 1 {{ print $1 }}' | while read pid; do
    grep --files-with-matches --line-regexp sleep /proc/$pid/comm
done | sort --unique | grep .
"""


def configure(lab: Any, **variables: Any) -> None:
    """Run site.yml with variables that are not in the inventory."""
    run = lab.ansible("--extra-vars", json.dumps(variables))
    assert run.code == 0, failures(run)


def run_site_again(lab: Any) -> None:
    """Bring what the inventory says, which is there."""
    configure(lab)


def add_a_partition(lab: Any) -> None:
    """Bring another partition beside the one that has the jobs."""
    configure(lab, **PARTITIONS)
    assert "PartitionName=night" in lab.root(lab.control, "scontrol show partition night")


def declare_less_memory(lab: Any) -> None:
    """Make a node smaller on which a job runs."""

    def memory() -> int:
        said = lab.root(lab.control, f"scontrol --oneliner show node {name}")
        return int(re.search(r" RealMemory=(\d+)", said)[1])

    name = lab.workers[-1]
    less = memory() - LESS
    configure(lab, **PARTITIONS, slurm_nodes={name: {"RealMemory": less}})
    assert memory() == less


def restart_slurmctld(lab: Any) -> None:
    """Start another slurmctld, and wait until it answers."""
    before = lab.pids([lab.control])[lab.control]["slurmctld"]
    lab.root(lab.control, "systemctl restart slurmctld")
    lab.insist(lab.control, "scontrol ping | grep 'is UP'")
    assert lab.pids([lab.control])[lab.control]["slurmctld"] != before


def rotate_the_key(lab: Any) -> None:
    """Give all machines another key."""
    before = key_of(lab, lab.control)
    run = lab.ansible(str(PLAYBOOKS / "rotate-key.yml"))
    assert run.code == 0, failures(run)
    assert before not in lab.everywhere(lambda name: key_of(lab, name)).values()


STEPS = (
    run_site_again,
    add_a_partition,
    declare_less_memory,
    restart_slurmctld,
    rotate_the_key,
    # It takes back what the second and third brought.
    run_site_again,
)


class Jobs:
    """One job that fills each worker, and some that wait for them."""

    def __init__(self, lab: Any, running: list[str], pending: list[str]) -> None:
        self.lab, self.running, self.pending = lab, running, pending
        self.before = self._seen()

    def _seen(self) -> dict[str, Any]:
        """Return what may not change of each job, and the process of each that runs, by worker."""
        now = shown(self.lab)
        wanted = {**dict.fromkeys(self.running, (*FIELDS, *OF_RUNNING)), **dict.fromkeys(self.pending, FIELDS)}
        fields = {job: {key: now.get(job, {}).get(key) for key in keys} for job, keys in wanted.items()}
        jobs = dict(zip(self.lab.workers, self.running, strict=True))
        # For slurmctld a job runs before its prolog has ended.
        processes = self.lab.everywhere(lambda name: self.lab.insist(name, PROCESSES.format(jobs[name]), 60), jobs)
        return {**fields, **processes}

    def tell(self, when: str) -> None:
        """Print the queue."""
        print(f"\n--- {when}\n{self.lab.user('squeue')}")

    def assert_undisturbed(self) -> None:
        """No job is lost, killed, started again or held up."""
        assert self._seen() == self.before


@pytest.fixture
def configuration(lab: Any) -> Iterator[str]:
    """The text of slurm.conf; in the end it is that again."""

    def text() -> str:
        return str(lab.root(lab.control, f"cat {CONF}"))

    lab.wait_until_idle(180)
    before = text()
    yield before
    lab.wait_until_idle(240)
    if text() != before:
        configure(lab)


@pytest.fixture
def jobs(lab: Any, configuration: str, submit: Callable[..., str]) -> Jobs:
    """The jobs, which go before the configuration is looked at."""
    running = [submit(name, 1800, "--exclusive", "--requeue") for name in lab.workers]
    one = "sbatch --parsable --mem=50 --output=/dev/null --wrap='sleep 1800'"
    pending = lab.user(f"for i in $(seq {WAITING}); do {one}; done", seconds=240).split()
    assert states(lab, running + pending) == ["RUNNING"] * len(running) + ["PENDING"] * WAITING
    return Jobs(lab, running, pending)


def test_no_job_notices_what_is_done_to_the_cluster(
    lab: Any, configuration: str, jobs: Jobs, submit: Callable[..., str]
) -> None:
    for step in STEPS:
        jobs.tell(f"before: {step.__name__}")

        step(lab)

        jobs.tell(f"after: {step.__name__}")
        jobs.assert_undisturbed()

    assert lab.root(lab.control, f"cat {CONF}") == configuration
    following = submit(lab.workers[0], 0, wait=False)
    assert int(following) == int(jobs.pending[-1]) + 1
