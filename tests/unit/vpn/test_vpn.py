"""The peers of a VPN, and the texts that wg and nft get."""

from __future__ import annotations

import pathlib

import pytest

from ansible.module_utils.slurmstead.inventory import vpn as checks
from ansible.module_utils.slurmstead.inventory.model import Inventory
from ansible.module_utils.slurmstead.vpn import peers, text

KEY = "A" * 42 + "E="
OTHER = "B" * 42 + "E="
LAPTOP = f"{{name: laptop, key: {KEY}, address: 10.79.0.2}}"


def test_a_file_that_does_not_exist_has_no_peers(tmp_path: pathlib.Path) -> None:
    assert peers.read(tmp_path / "vpn.yml") == ()


def test_a_peer_may_use_its_own_address_only() -> None:
    written = text.peers(peers.parse(f"peers: [{LAPTOP}]"), 51820)

    assert f"PublicKey = {KEY}\nAllowedIPs = 10.79.0.2/32\n" in written


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("peers: [", "is not YAML"),
        ("laptop: {}", "has not the one key `peers`"),
        ("peers: [{name: laptop}]", "a peer has name, key and address"),
        ("peers: [{name: My Laptop, key: x, address: x}]", "'My Laptop' is not a peer's name"),
        ("peers: [{name: laptop, key: abc, address: x}]", "the key of laptop is not a public key"),
        (f"peers: [{{name: laptop, key: {KEY}, address: 10.79.0}}]", "is '10.79.0', which is not an IPv4 address"),
        (f"peers: [{LAPTOP}, {LAPTOP}]", "two peers have the name laptop"),
        (f"peers: [{LAPTOP}, {{name: desk, key: {KEY}, address: 10.79.0.3}}]", f"two peers have the key {KEY}"),
        (f"peers: [{LAPTOP}, {{name: desk, key: {OTHER}, address: 10.79.0.2}}]", "the address 10.79.0.2"),
    ],
)
def test_a_mistake_is_named(content: str, words: str) -> None:
    with pytest.raises(peers.PeersError) as caught:
        peers.parse(content)

    assert words in str(caught.value)


@pytest.mark.parametrize("address", ["10.79.0.0", "10.79.0.1", "10.79.0.255", "10.80.0.2"])
def test_an_address_that_is_not_free_for_a_peer_is_refused(address: str) -> None:
    found = list(peers.faults((peers.Peer("laptop", KEY, address),), "10.79.0.0/24"))

    assert len(found) == 1 and address in found[0]


@pytest.mark.parametrize(("content", "words"), [("peers: [", "is not YAML"), (f"peers: [{LAPTOP}]", "")])
def test_the_inventorys_check_reads_the_file(tmp_path: pathlib.Path, content: str, words: str) -> None:
    (tmp_path / "vpn.yml").write_text(content)
    inventory = Inventory(hosts={"node1": {}}, groups={"control": ["node1"]})
    found = [str(problem) for problem in checks.problems(inventory, str(tmp_path), "control")]

    assert (words in found[0]) if words else not found


def test_peers_reach_the_ports_and_nothing_is_forwarded() -> None:
    table = text.table("10.79.0.0/24", [443, 22])

    assert "tcp dport { 22, 443 } accept" in table
    assert 'iifname "stead-vpn" counter drop' in table and 'oifname "stead-vpn" counter drop' in table
