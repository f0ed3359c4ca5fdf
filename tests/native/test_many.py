"""Ten thousand people: the role `shares`, run by the real ansible-playbook against a real slurmdbd."""

from __future__ import annotations

import json
import os
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from slurmstead.paths import ROOT
from tests.lab.run import Run, play
from tests.native.cluster import CONTROL, Cluster

pytestmark = pytest.mark.slow

NUMBER = 10_000
NAMES = [f"u{number:05}" for number in range(NUMBER)]
PEOPLE = [{"name": name, "account": f"group{name[-1]}"} for name in NAMES]
ACCOUNTS = 11
"""One for each group, and that of people without a group."""

FIRST, LATER = 150, 60
"""Seconds that a run may use the CPUs, Ansible and daemons together; the first one writes everything.

Each waits for the other, so on an idle computer it takes less time than that: docs/shares.md.
"""

SSH = ROOT / "tests/native/submit/ssh"
PLAY = """
- hosts: control
  roles:
    - role: shares
      shares_cluster: native
      shares_address: control
      shares_template: lab
"""
WRITTEN = """
SELECT COUNT(*), COALESCE(MAX(id), 0) FROM slurm_acct_db.txn_table;
SELECT COUNT(*), MAX(mod_time) FROM slurm_acct_db.native_assoc_table;
SELECT COUNT(*), MAX(mod_time) FROM slurm_acct_db.user_table;
"""
"""slurmdbd writes what it changes as transactions, and the time in each row that it changes."""

ENFORCED = {"AccountingStorageEnforce": "associations,limits,qos,safe"}
COUNT = ("mariadb", "-N", "-e", "SELECT COUNT(*) FROM slurm_acct_db.txn_table")


class Took(NamedTuple):
    """A run, and the seconds for which it and the daemons of control used a CPU."""

    run: Run
    cpu: float


Set = Callable[..., Took]


def used(cluster: Cluster) -> float:
    """Return the seconds for which the daemons of control, and all that ended here, used a CPU."""
    daemons = cluster.run("ps", "-C", "mariadbd,slurmdbd,slurmctld", "-o", "cputimes=").split()
    ended = os.times()
    return sum(map(int, daemons)) + ended.children_user + ended.children_system


@pytest.fixture(scope="module")
def many(release: str) -> Iterator[Cluster]:
    """A cluster with ten thousand users who can log in; slurmdbd knows none of them."""
    with Cluster(release, 1, ENFORCED, database=True) as cluster:
        numbers = dict(enumerate(NAMES, 10_001))
        for file, line in {"passwd": "{0}:x:{1}:{1}::/:/bin/sh\n", "group": "{0}:x:{1}:\n"}.items():
            lines = "".join(line.format(name, number) for number, name in numbers.items())
            cluster.run("tee", "-a", f"/etc/{file}", text=lines)
        yield cluster


@pytest.fixture(scope="module")
def set_shares(many: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Set:
    """Run the role as `stead up` does, with variables; a failure fails the test."""
    place = tmp_path_factory.mktemp("shares")
    (place / "play.yml").write_text(PLAY)
    (place / "hosts.yml").write_text(json.dumps({"all": {"hosts": {CONTROL: {}}}}))
    words = ["-i", str(place / "hosts.yml"), "--diff", str(place / "play.yml")]
    settings = {
        "ANSIBLE_SSH_EXECUTABLE": str(SSH),
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
        "STEAD_ENTER": json.dumps(many.command("sh", "-c", seconds=900)),
    }

    def run(**variables: Any) -> Took:
        given = place / "variables.json"
        given.write_text(json.dumps(variables))
        before = used(many)
        done = play([*words, "-e", f"@{given}"], settings, 900)
        took = Took(done, used(many) - before)
        assert done.code == 0, done.output[-5000:]
        how = "changed" if done.changed else "unchanged"
        print(f"{many.release}: {done.seconds:.1f} s, of them {took.cpu:.1f} s on a CPU, {how}")
        return took

    return run


@pytest.fixture(scope="module")
def first(set_shares: Set) -> Took:
    """The run that writes everything."""
    return set_shares(shares_people=PEOPLE)


def test_the_first_run_writes_everything(many: Cluster, first: Took) -> None:
    shown = many.run("sacctmgr", "-nP", "show", "assoc", "where", "cluster=native", "format=Account,User").splitlines()

    assert {f"{person['account']}|{person['name']}" for person in PEOPLE} <= set(shown)
    assert first.run.changed
    assert first.cpu < FIRST


def test_people_with_the_same_limits_are_one_command(first: Took) -> None:
    commands = [line for line in first.run.output.splitlines() if line.startswith(("+ ", "~ "))]

    assert sum(line.startswith("+ users ") for line in commands) == ACCOUNTS
    assert len(commands) < 3 * ACCOUNTS, commands


def test_the_second_run_writes_nothing(many: Cluster, first: Took, set_shares: Set) -> None:
    before = many.run("mariadb", "-N", text=WRITTEN)

    second = set_shares(shares_people=PEOPLE)

    assert first.run.changed and second.run.changed == {}
    assert many.run("mariadb", "-N", text=WRITTEN) == before
    assert second.cpu < LATER


def test_one_difference_is_one_transaction(many: Cluster, first: Took, set_shares: Set) -> None:
    before = int(many.run(*COUNT))

    later = set_shares(shares_people=PEOPLE, shares_users={NAMES[-1]: {"MaxJobs": 3}})

    assert first.run.changed and set(later.run.changed) == {CONTROL}
    assert int(many.run(*COUNT)) == before + 1
    shown = many.run("sacctmgr", "-nP", "show", "assoc", f"user={NAMES[-1]}", "format=Account,User,MaxJobs")
    assert shown == f"group9|{NAMES[-1]}|3"
    assert later.cpu < LATER


def test_each_of_them_can_submit(many: Cluster, first: Took) -> None:
    users = (NAMES[0], NAMES[NUMBER // 2], NAMES[-1], "bob")
    tried = {user: many.tried("sbatch", "--test-only", "--mem=10", "--wrap=true", user=user) for user in users}

    assert first.run.changed
    assert {user: done.returncode for user, done in tried.items()} == dict.fromkeys(users, 0), [
        done.stderr for done in tried.values()
    ]
