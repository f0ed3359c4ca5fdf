"""clush on the head node, with the key of a person who forwards an agent."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.lab.run import as_person

Say = Callable[[str], str]


@pytest.fixture(scope="module")
def agent(lab: Any) -> Iterator[dict[str, str]]:
    """An environment with an agent that has the key, in a process below this one, which ends also if we are ended."""
    with subprocess.Popen(["ssh-agent", "-D", "-s"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = {**os.environ, **dict(re.findall(r"(SSH_AUTH_SOCK)=([^;]+);", process.stdout.readline()))}
            subprocess.run(["ssh-add", "-q", str(lab.directory / "key")], env=found, check=True, timeout=60)
            yield found
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def say(lab: Any, agent: dict[str, str]) -> Iterator[Say]:
    """Return what a command line on the head node prints, standard error included, with the agent."""

    def run(command: str) -> str:
        ssh = ["ssh", "-F", str(lab.directory / "ssh_config"), "-o", "ControlPath=none", "-A"]
        return as_person([*ssh, f"debian@{lab.control}", command], 120, env=agent).stdout

    yield run
    run("rm -f .ssh/known_hosts")


def test_groups_are_those_of_the_inventory(lab: Any, say: Say) -> None:
    assert sorted(say("nodeset -e @workers").split()) == sorted(lab.workers)
    assert sorted(say("nodeset -e @all").split()) == sorted(lab.names)


def test_states_are_those_of_slurm(lab: Any, say: Say) -> None:
    lab.user(f"sbatch --output=/dev/null --nodelist={lab.workers[0]} --wrap='sleep 600'")
    try:
        lab.user("until squeue --noheader --me --states=running | grep -q .; do sleep 1; done")
        assert sorted(say("nodeset -e @state:idle").split()) == sorted(lab.workers[1:])
        # Jobs are private: others see nothing of them.
        assert not say("nodeset -e @user:alice").split()
        assert say("sudo nodeset -e @user:alice").split() == [lab.workers[0]]
    finally:
        lab.user("scancel --user=alice")
        lab.wait_until_idle(120)


def test_a_person_with_an_agent_becomes_root_on_all_workers(lab: Any, say: Say) -> None:
    said = say("clush -g workers -q 'echo $(sudo whoami) on $(hostname)'")

    assert {line for line in said.splitlines() if " on " in line} == {f"{name}: root on {name}" for name in lab.workers}


def test_without_an_agent_no_node_lets_anybody_in(lab: Any, say: Say) -> None:
    said = say("SSH_AUTH_SOCK= clush -g workers -q whoami")

    assert said.count("Permission denied") == len(lab.workers)
