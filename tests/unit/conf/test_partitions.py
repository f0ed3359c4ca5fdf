"""Which partitions a cluster with quiet nodes has."""

from __future__ import annotations

import pytest
import yaml

from ansible.module_utils.slurmstead.conf.partitions import partitions
from slurmstead.paths import ROOT

MAIN = yaml.safe_load((ROOT / "roles/slurm/vars/main.yml").read_text())["__slurm_partition_defaults"]
NODES = ["n1", "n2", "n10"]
QUIET = {"MaxTime": "INFINITE", "OverSubscribe": "EXCLUSIVE", "State": "UP"}


@pytest.mark.parametrize("quiet", [[], ["n9"]], ids=["none", "one that was never measured"])
def test_without_quiet_nodes_nothing_changes(quiet: list[str]) -> None:
    own = {"night": {"Nodes": "ALL"}, "quiet": {"Nodes": "n1"}}

    assert partitions({}, MAIN, quiet, NODES) == MAIN
    assert partitions(own, MAIN, quiet, NODES) == own


def test_quiet_nodes_leave_main() -> None:
    found = partitions({}, MAIN, ["n2"], NODES)

    assert found == {"main": {**MAIN["main"], "Nodes": "n[1,10]"}, "quiet": {**QUIET, "Nodes": "n2"}}


def test_keys_of_quiet_are_added_and_do_not_replace_main() -> None:
    found = partitions({"quiet": {"MaxTime": 60}, "DEFAULT": {"State": "UP"}}, MAIN, ["n2"], NODES)

    assert found["quiet"] == {**QUIET, "MaxTime": 60, "Nodes": "n2"}
    assert set(found) == {"DEFAULT", "main", "quiet"}


@pytest.mark.parametrize("keys", [None, {}], ids=["no keys", "empty"])
def test_a_sites_own_partitions_replace_main(keys: dict[str, str] | None) -> None:
    own = {"night": {"Nodes": "n1"}, "quiet": keys}

    assert partitions(own, MAIN, ["n2"], NODES) == {"night": own["night"], "quiet": {**QUIET, "Nodes": "n2"}}


def test_where_all_nodes_are_quiet_it_is_the_default() -> None:
    found = partitions({}, MAIN, NODES, NODES)

    assert found == {"quiet": {**QUIET, "Default": "YES", "Nodes": "n[1-2,10]"}}
