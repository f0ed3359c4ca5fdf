"""Which partitions a cluster with quiet nodes has."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ansible.module_utils.slurmstead.conf.partitions import default_names, names, partitions
from slurmstead.paths import ROOT

MAIN = yaml.safe_load((ROOT / "roles/slurm/vars/main.yml").read_text())["__slurm_partition_defaults"]
NODES = ["n1", "n2", "n10"]
QUIET = {"MaxTime": "INFINITE", "OverSubscribe": "EXCLUSIVE", "State": "UP"}


@pytest.mark.parametrize("quiet", [[], ["n9"]], ids=["none", "one that was never measured"])
def test_without_quiet_nodes_nothing_changes(quiet: list[str]) -> None:
    own = {"night": {"Nodes": "ALL"}, "quiet": {"Nodes": "n1"}}

    assert partitions({}, MAIN, quiet, NODES) == MAIN
    assert partitions(own, MAIN, quiet, NODES) == own


@pytest.mark.parametrize("quiet", [[], ["n9"]], ids=["none", "one that was never measured"])
@pytest.mark.parametrize("keys", [{"MaxTime": 60}, {"MaxTime": 60, "Nodes": None}, {}, None])
def test_without_quiet_nodes_keys_of_quiet_are_no_partition(keys: dict[str, Any] | None, quiet: list[str]) -> None:
    night, default = {"night": {"Nodes": "ALL"}}, {"DEFAULT": {"State": "UP"}}

    assert partitions({"quiet": keys}, MAIN, quiet, NODES) == MAIN
    assert list(partitions({"quiet": keys, **default}, MAIN, quiet, NODES).items()) == [*default.items(), *MAIN.items()]
    assert partitions({"quiet": keys, **night}, MAIN, quiet, NODES) == night


@pytest.mark.parametrize("own", [{}, {"quiet": {"MaxTime": 60}}, {"DEFAULT": {"State": "UP"}, "quiet": None}])
def test_main_is_known_while_no_partition_replaces_it(own: dict[str, Any]) -> None:
    assert set(partitions(own, MAIN, ["n2"], NODES)) - {"DEFAULT"} == set(names(own)) == {"main", "quiet"}
    assert default_names(own) == ["main"]


def test_quiet_may_be_the_default() -> None:
    assert default_names({"quiet": {"Default": True}}) == ["quiet"]
    assert default_names({"night": None, "quiet": None}) == []


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
