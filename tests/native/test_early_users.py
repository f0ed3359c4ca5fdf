"""slurmctld learns of users before control has their accounts; one run later, their jobs are accepted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.native.cluster import Cluster
from tests.native.gate.test_publish import published

ENFORCED = {"AccountingStorageEnforce": "associations,limits,qos,safe"}
EARLY, LATER, NEVER = {"ann": 2101}, {"ann": 2102}, "zoe"


@pytest.fixture(scope="module")
def enforced(release: str) -> Iterator[Cluster]:
    """A cluster that refuses users whom it does not know; it knows alice and bob."""
    with Cluster(release, 1, ENFORCED, database=True) as cluster:
        cluster.run("sacctmgr", "-i", "add", "account", "home")
        cluster.run("sacctmgr", "-i", "add", "user", "alice,bob", "account=home")
        published(cluster)
        yield cluster


def give_account(cluster: Cluster, users: dict[str, int]) -> None:
    """Give users accounts on control, in place of those that they have."""
    for name, number in users.items():
        cluster.run("sed", "-i", f"/^{name}:/d", "/etc/passwd", "/etc/group")
        cluster.run("tee", "-a", "/etc/passwd", text=f"{name}:x:{number}:{number}::/:/bin/sh\n")
        cluster.run("tee", "-a", "/etc/group", text=f"{name}:x:{number}:\n")


def can_submit(cluster: Cluster, *users: str) -> list[bool]:
    """Say for each user whether slurmctld accepts a job."""
    job = ("sbatch", "--test-only", "--mem=10", "--wrap=true")
    cluster.wait_until_idle()
    return [cluster.tried(*job, user=user).returncode == 0 for user in users]


def test_a_user_who_was_added_before_the_account_can_submit_after_a_run(enforced: Cluster) -> None:
    enforced.run("sacctmgr", "-i", "add", "user", f"ann,{NEVER}", "account=home")
    give_account(enforced, EARLY)
    before, daemon = can_submit(enforced, "ann"), enforced.daemon()

    checked = published(enforced, "check")
    unchanged = enforced.daemon() == daemon
    done = published(enforced)

    assert before == [False] and unchanged
    assert (
        checked["plan"]
        == done["plan"]
        == ["slurmctld does not know the user ann as this machine does: restart slurmctld"]
    )
    assert can_submit(enforced, "ann", "bob") == [True, True]
    assert published(enforced)["plan"] == []


def test_a_user_who_was_looked_up_again_and_has_no_default_account_can_submit(enforced: Cluster) -> None:
    enforced.run("sacctmgr", "-i", "add", "user", "eve", "account=home")
    give_account(enforced, {"eve": 2103})
    # slurmctld does the same each hour; 24.11 then knows everything.
    enforced.run("scontrol", "reconfigure")

    published(enforced)

    assert can_submit(enforced, "eve") == [True]
    assert published(enforced)["plan"] == []


@pytest.mark.slow
def test_a_user_who_comes_back_with_another_number_can_submit(enforced: Cluster) -> None:
    give_account(enforced, LATER)
    before = can_submit(enforced, "ann")

    published(enforced)

    assert before == [False]
    assert can_submit(enforced, "ann") == [True]


@pytest.mark.slow
def test_a_user_without_an_account_of_slurm_is_no_reason_to_restart(enforced: Cluster) -> None:
    enforced.run("sacctmgr", "-i", "remove", "user", "bob")

    assert published(enforced)["plan"] == []
