"""The peers of a VPN, and the texts that wg and nft get."""

from __future__ import annotations

import pathlib

import pytest

from ansible.module_utils.slurmstead.inventory import vpn as checks
from ansible.module_utils.slurmstead.inventory.model import Inventory, Variable
from ansible.module_utils.slurmstead.vpn import peers, text

KEY = "A" * 42 + "E="
OTHER = "B" * 42 + "E="
LAPTOP = f"{{name: laptop, key: {KEY}, address: 10.79.0.2}}"


def test_a_file_that_does_not_exist_has_no_peers(tmp_path: pathlib.Path) -> None:
    assert peers.read(tmp_path / "vpn.yml") == ()


def test_a_link_to_a_missing_file_is_not_an_empty_list(tmp_path: pathlib.Path) -> None:
    (tmp_path / "vpn.yml").symlink_to("/nowhere/vpn.yml")

    with pytest.raises(peers.PeersError, match=r"is a link to /nowhere/vpn\.yml, which does not exist"):
        peers.read(tmp_path / "vpn.yml")


def test_a_peer_may_use_its_own_address_only() -> None:
    written = text.peers(peers.parse(f"peers: [{LAPTOP}]"), 51820)

    assert f"PublicKey = {KEY}\nAllowedIPs = 10.79.0.2/32\n" in written


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("peers: [", "is not YAML"),
        ("laptop: {}", "has not the one key `peers`"),
        *((text, "or `peers: []` without any") for text in ("", "---\n# All of them.\n", "peers:\n")),
        ("peers: [{name: laptop}]", "Write name, key and address"),
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


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(peers.PeersError) as caught:
        peers.parse("peers: [{name: My Laptop, key: x, address: x}, {name: desk}]")

    assert len(caught.value.faults) == 4


@pytest.mark.parametrize("address", ["10.79.0.0", "10.79.0.1", "10.79.0.255", "10.80.0.2"])
def test_an_address_that_is_not_free_for_a_peer_is_refused(address: str) -> None:
    ((wrong, advice),) = peers.faults((peers.Peer("laptop", KEY, address),), "10.79.0.0/24")

    assert address in wrong
    assert advice == "Choose one from 10.79.0.2 to 10.79.0.254"


def test_a_new_peer_gets_the_first_free_address() -> None:
    taken = [peers.Peer(name, KEY, f"10.79.0.{name}") for name in ("2", "4")]

    assert peers.free_address(taken, "10.79.0.0/29") == "10.79.0.3"
    with pytest.raises(ValueError, match="has no free address"):
        peers.free_address(taken[:1], "10.79.0.0/30")


@pytest.mark.parametrize(("content", "count"), [("peers: [", 1), ("peers: [1, 2]", 2), (f"peers: [{LAPTOP}]", 0)])
def test_the_inventorys_check_reads_the_file(tmp_path: pathlib.Path, content: str, count: int) -> None:
    (tmp_path / "vpn.yml").write_text(content)
    inventory = Inventory(hosts={"node1": {}}, groups={"control": ["node1"]})

    assert len(list(checks.problems(inventory, str(tmp_path), "control", "10.79.0.0/24"))) == count


def test_the_inventorys_check_compares_with_the_network(tmp_path: pathlib.Path) -> None:
    (tmp_path / "vpn.yml").write_text(f"peers: [{LAPTOP}]")
    inventory = Inventory(hosts={"node1": {"vpn_network": Variable("10.9.0.0/24")}}, groups={"control": ["node1"]})
    (problem,) = checks.problems(inventory, str(tmp_path), "control", "10.79.0.0/24")

    assert "not free for a peer in vpn_network (10.9.0.0/24). Choose one from 10.9.0.2 to 10.9.0.254." in str(problem)


FILE = f"""\
# Ours.
peers:
  # Ann's
  - {{name: laptop, key: {KEY}, address: 10.79.0.2}}   # since May
  - name: desk
    key: {OTHER}
    address: 10.79.0.3

# The end.
"""
NEW = peers.Peer("phone", "C" * 42 + "E=", "10.79.0.4")


def test_a_peer_is_added_and_removed_without_touching_other_lines() -> None:
    old = peers.parse(FILE)
    longer = peers.edit(FILE, [*old, NEW])
    added = "".join(f"  {line}\n" for line in peers.entry(NEW).splitlines())

    assert longer == FILE.replace("\n\n# The end.", f"\n{added}\n# The end.")
    assert peers.edit(longer, old) == FILE
    shorter = peers.edit(FILE, old[1:])
    assert "laptop" not in shorter and "# Ann's" in shorter and "# The end." in shorter


def test_the_last_peer_leaves_an_empty_list_and_the_first_one_fills_it() -> None:
    empty = peers.edit(FILE, [])

    assert peers.parse(empty) == ()
    assert peers.parse(peers.edit(empty, [NEW])) == (NEW,)
    assert "# The end." in peers.edit(empty, [NEW])


@pytest.mark.parametrize("text", ["---\npeers: []\n", f"peers: [{LAPTOP}]\n"])
def test_a_file_without_comments_can_have_any_form(text: str) -> None:
    old = peers.parse(text)

    assert peers.parse(peers.edit(text, [*old, NEW])) == (*old, NEW)


def test_a_name_that_yaml_reads_as_another_word_is_quoted() -> None:
    odd = [peers.Peer(name, KEY.replace("A", letter), f"10.79.0.{n}") for n, (name, letter) in enumerate(ODD, 2)]

    assert peers.parse(peers.edit("", odd)) == tuple(odd)


ODD = (("no", "B"), ("1e3", "C"), ("12", "D"), ("null", "F"))


def test_a_file_that_would_lose_comments_is_refused() -> None:
    with pytest.raises(ValueError, match="without losing comments"):
        peers.edit(f"peers: [{LAPTOP}] # ours\n", [NEW])


@pytest.mark.parametrize(
    "place", ["", "home example", "[::g]", "[1.2.3]", "1.2.3", "home:0", "home:70000", "2001:db8::1"]
)
def test_what_is_not_a_place_is_refused(place: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        text.endpoint(place, 51820)


def test_peers_reach_the_ports_and_nothing_is_forwarded() -> None:
    table = text.table("10.79.0.0/24", [443, 22])

    assert "tcp dport { 22, 443 } accept" in table
    assert 'iifname "stead-vpn" counter drop' in table and 'oifname "stead-vpn" counter drop' in table
