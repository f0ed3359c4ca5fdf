"""A run that would lock itself out is refused before anything is changed."""

from __future__ import annotations

import types
from collections.abc import Callable

import pytest

from ansible.module_utils.slurmstead.firewall.sshd import Connection
from ansible.module_utils.slurmstead.firewall.table import Openings

HERE = Connection("192.168.1.7", 22)


@pytest.mark.parametrize("places", [[], ["192.168.1.0/24"], ["192.168.1.7"], ["10.0.0.0/8", "192.168.0.0/16"]], ids=str)
def test_a_run_from_an_accepted_address_is_not_refused(
    load_module: Callable[[str], types.ModuleType], places: list[str]
) -> None:
    assert load_module("firewall").refusal(Openings(cluster=[], ssh_from=places), HERE) == ""


def test_a_run_from_a_machine_of_the_cluster_is_not_refused(load_module: Callable[[str], types.ModuleType]) -> None:
    openings = Openings(cluster=["192.168.1.7"], ssh_from=["10.0.0.0/8"])

    assert load_module("firewall").refusal(openings, HERE) == ""


def test_a_run_from_an_excluded_address_is_refused_with_what_to_add(
    load_module: Callable[[str], types.ModuleType],
) -> None:
    said = load_module("firewall").refusal(Openings(cluster=["10.0.0.1"], ssh_from=["10.0.0.0/8"]), HERE)

    assert "firewall_ssh_from is 10.0.0.0/8, which excludes 192.168.1.7" in said
    assert "Add 192.168.1.7 or its network to firewall_ssh_from" in said


@pytest.mark.parametrize(
    ("ports", "interface", "passes"), [([22], "stead-vpn", True), ([22], "eth0", False), ([443], "stead-vpn", False)]
)
def test_a_run_through_the_vpn_needs_only_a_port_for_its_peers(
    load_module: Callable[[str], types.ModuleType], ports: list[int], interface: str, passes: bool
) -> None:
    openings = Openings(cluster=[], ssh_from=["10.0.0.0/8"], vpn=ports)

    assert (load_module("firewall").refusal(openings, HERE, interface) == "") is passes


def test_a_run_on_the_machine_itself_needs_no_ssh(load_module: Callable[[str], types.ModuleType]) -> None:
    assert load_module("firewall").refusal(Openings(cluster=[], ssh_from=["10.0.0.0/8"]), None) == ""
