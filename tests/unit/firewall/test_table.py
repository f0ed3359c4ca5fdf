"""The text of the firewall's table. tests/native/test_firewall.py loads it into real kernels."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.firewall import table
from ansible.module_utils.slurmstead.firewall.table import Openings
from ansible.module_utils.slurmstead.vpn.text import INTERFACE

BOTH = ["10.0.0.2", "fd00::7", "10.0.0.1"]


def test_the_sets_are_sorted_and_each_has_one_version_of_ip() -> None:
    text = table.text(Openings(cluster=BOTH))

    assert "elements = { 10.0.0.1, 10.0.0.2 }" in text
    assert "elements = { fd00::7 }" in text
    assert "ip saddr @cluster4 accept" in text and "ip6 saddr @cluster6 accept" in text


def test_the_order_of_the_inventory_does_not_matter() -> None:
    one = Openings(cluster=BOTH, tcp=[80, 443], udp=[9, 7])
    other = Openings(cluster=BOTH[::-1], tcp=[443, 80, 80], udp=[7, 9])

    assert table.text(one) == table.text(other)


def test_a_set_without_elements_is_left_out() -> None:
    text = table.text(Openings(cluster=["10.0.0.1"]))

    assert "cluster6" not in text and "@ssh" not in text


def test_only_our_table_is_replaced() -> None:
    text = table.text(Openings(cluster=BOTH))

    assert text.startswith("table inet slurmstead\ndelete table inet slurmstead\ntable inet slurmstead {\n")
    assert "flush" not in text


def test_ssh_is_open_to_all_unless_it_is_narrowed() -> None:
    everywhere = table.text(Openings(cluster=BOTH, ssh_ports=[2222, 22]))
    narrow = table.text(Openings(cluster=BOTH, ssh_from=["192.168.1.0/24"]))

    assert "\n        tcp dport { 22, 2222 } accept\n" in everywhere
    assert "\n        ip saddr @ssh4 tcp dport 22 accept\n" in narrow
    assert "\n        tcp dport" not in narrow


def test_what_is_not_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match="node1"):
        table.text(Openings(cluster=["node1"]))


def test_no_rule_needs_the_names_of_the_package_netbase() -> None:
    """A minimal Debian has no /etc/protocols and no /etc/services, and nft then refuses names."""
    assert "icmp" not in table.text(Openings(cluster=BOTH))


def test_peers_of_the_vpn_reach_its_ports_from_wherever_ssh_is_open() -> None:
    text = table.text(Openings(cluster=["10.0.0.1"], ssh_from=["192.168.1.0/24"], vpn=[443, 22]))

    assert f'iifname "{INTERFACE}" tcp dport {{ 22, 443 }} accept' in text


def test_only_the_users_of_the_daemons_answer_from_slurms_ports() -> None:
    text = table.text(Openings(cluster=BOTH, slurm=["6818", "6817-6820"], daemons=[64030, 0]))

    assert "meta l4proto != tcp accept" in text
    assert "tcp sport != { 6817, 6818, 6819, 6820 } accept" in text
    assert "meta skuid { 0, 64030 } accept" in text
    assert "output" not in table.text(Openings(cluster=BOTH))


@pytest.mark.parametrize("port", ["ctld", "6817-", "-1", ""])
def test_what_is_not_a_port_of_slurm_is_refused(port: str) -> None:
    with pytest.raises(ValueError, match=f"slurm_config: '{port}' is not a port"):
        table.text(Openings(cluster=BOTH, slurm=[port]))
