"""`stead replace-node`: another board takes the name of a dead one, and no other worker is touched."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurmstead.errors import ExitCode
from slurmstead.paths import PLAYBOOKS
from tests.lab.operations.nodes import BUSY, KnownHosts, Others, fingerprint

LESS = 896
"""MiB of memory of the other board."""


def real_memory(lab: Any, name: str) -> int:
    """Return the memory that slurm.conf gives a node, in MiB."""
    text = lab.root(lab.control, "cat /etc/slurm/slurm.conf")
    (found,) = re.findall(rf"^NodeName={name} .*\bRealMemory=(\d+)", text, re.MULTILINE)
    return int(found)


@pytest.fixture
def known_again(lab: Any, chosen: str) -> Iterator[None]:
    """A machine with the memory of the inventory, known by the key that it has, in the end."""
    yield
    known = lab.directory / chosen / "known_hosts"
    known.write_text(f"{chosen} {' '.join((lab.directory / chosen / 'host_key.pub').read_text().split()[:2])}\n")
    lab.cut_power(chosen)
    lab.boot(chosen)
    run = lab.ansible("--limit", f"{lab.control},{lab.server},{chosen}")
    assert run.code == 0, run.output
    lab.wait_until_idle(180)


def swap(lab: Any, chosen: str, known_hosts: KnownHosts) -> None:
    """Put another board in the place of a machine: blank disks, another key, less memory, the same address."""
    lab.cut_power(chosen)
    run = lab.ansible("--limit", chosen, str(PLAYBOOKS / "destroy-lab.yml"), plain=True)
    assert run.code == 0, run.output
    lab.boot(chosen, lab_memory=LESS)
    known_hosts.restore()


def test_a_node_that_nobody_replaced_stays_what_it_is(lab: Any, stead: Callable[..., Any], chosen: str) -> None:
    pids = lab.pids()

    done = stead("replace-node", chosen)

    assert done.returncode == ExitCode.TASK_FAILED
    assert f"{chosen} presents the host key that is already known, so it looks like the old machine" in done.stdout
    assert lab.pids() == pids
    assert lab.root(lab.control, f"sinfo --noheader --nodes={chosen} --format=%T") == "idle"


def test_a_node_with_a_job_is_not_replaced(
    lab: Any, stead: Callable[..., Any], chosen: str, submit: Callable[..., str], job_state: Any
) -> None:
    memory = real_memory(lab, chosen)
    job = submit(chosen, 900)

    done = stead("replace-node", chosen, "--host-key", fingerprint(lab, chosen))

    assert done.returncode == ExitCode.TASK_FAILED
    assert f"nothing was changed, because of job {job} (running on {chosen})" in done.stdout
    assert job_state(job) == "RUNNING"
    assert real_memory(lab, chosen) == memory
    assert lab.root(lab.control, f"sinfo --noheader --nodes={chosen} --format=%T") in BUSY


@pytest.mark.kernel  # A container has the memory of this computer.
def test_another_board_becomes_the_node_although_the_command_was_killed_on_the_way(
    lab: Any,
    stead: Callable[..., Any],
    chosen: str,
    known_again: None,
    submit: Callable[..., str],
    job_state: Any,
) -> None:
    known_hosts = KnownHosts(lab, chosen)
    job = submit(lab.workers[0], 7200)
    others = Others(lab, chosen)
    memory = real_memory(lab, chosen)
    swap(lab, chosen, known_hosts)
    key = fingerprint(lab, chosen)

    done = stead("replace-node", chosen)

    assert done.returncode == ExitCode.TASK_FAILED
    assert f"{chosen} presents a key that this computer does not know: {key}" in done.stdout
    assert known_hosts.path.read_text() == known_hosts.text
    assert "drain" not in lab.root(lab.control, f"sinfo --noheader --nodes={chosen} --format=%T")

    def kill(task: str, process: int) -> None:
        if task == "Measure its hardware":
            os.kill(process, signal.SIGKILL)

    variables = json.dumps({"replaced_node": chosen, "replaced_host_key": key})
    limit = f"{lab.control},{lab.server},{chosen}"
    run = lab.ansible(*("--limit", limit, "--extra-vars", variables, str(PLAYBOOKS / "replace-node.yml")), began=kill)
    assert run.code == -signal.SIGKILL, run.output
    assert real_memory(lab, chosen) == memory
    assert "stead replace-node" in lab.root(lab.control, f"sinfo --noheader --nodes={chosen} --format=%E")

    done = stead("replace-node", chosen, "--host-key", key, seconds=3000)

    assert done.returncode == ExitCode.OK, done.stdout
    others.assert_untouched()
    assert job_state(job) == "RUNNING"
    assert real_memory(lab, chosen) < memory
    assert lab.user(f"srun --nodelist={chosen} --mem=50 hostname") == chosen
