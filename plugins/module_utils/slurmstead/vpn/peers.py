# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The peers of the VPN in vpn.yml: names, public keys and addresses. No secret is in it."""

from __future__ import annotations

import base64
import dataclasses
import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

NAME = "vpn.yml"
HEADER = "# Computers outside that may use the VPN. `stead vpn` changes this file; it contains no secret.\n"
PEER_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
FIELDS = ("name", "key", "address")

Fault = tuple[str, str]
"""What is wrong, and what to do: two parts of a message."""


class PeersError(ValueError):
    """The mistakes of a file."""

    def __init__(self, name: str, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(f"{name}: {wrong}. {advice}" for wrong, advice in self.faults))


@dataclasses.dataclass(frozen=True)
class Peer:
    """A computer outside that may use the VPN."""

    name: str
    key: str
    """its public key"""
    address: str
    """in the network of the VPN"""


def is_key(text: object) -> bool:
    """Return whether a text is a key of WireGuard: 32 bytes in base64, in the one form that wg accepts.

    >>> is_key("A" * 42 + "E="), is_key("A" * 42 + "F="), is_key("A" * 20), is_key(7)
    (True, False, False, False)
    """
    try:
        key = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except ValueError:
        return False
    return len(key) == 32 and base64.b64encode(key).decode() == text


def read(path: Path, name: str = "") -> tuple[Peer, ...]:
    """Return the peers of a file; none if it does not exist.

    :raises PeersError: the file has mistakes, or is a link to none
    """
    name = name or str(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        if path.is_symlink():
            wrong = f"is a link to {path.readlink()}, which does not exist"
            raise PeersError(name, [(wrong, "Bring the file back: without it, all peers would be removed")]) from None
        return ()
    except (OSError, UnicodeDecodeError):
        raise PeersError(name, [("cannot be read", "Restore it, for example with git")]) from None
    return parse(text, name)


def parse(text: str, name: str = NAME) -> tuple[Peer, ...]:
    """Return the peers of a text.

    :raises PeersError: the text has mistakes
    """
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:
        raise PeersError(name, [("is not YAML", "Correct it, or restore it with git")]) from None
    listed = content["peers"] if isinstance(content, dict) and set(content) == {"peers"} else None
    if not isinstance(listed, list):
        advice = "Write it as docs/vpn.md shows, or `peers: []` without any"
        raise PeersError(name, [("has not the one key `peers` with a list", advice)])
    faults = [fault for entry in listed for fault in _faults(entry)]
    if not faults:
        faults = list(_repeated(listed))
    if faults:
        raise PeersError(name, faults)
    return tuple(Peer(entry["name"], entry["key"], str(entry["address"])) for entry in listed)


def _faults(entry: Any) -> Iterator[Fault]:
    if not isinstance(entry, dict) or set(entry) != set(FIELDS):
        yield f"an entry is {entry!r:.60}", "Write name, key and address of each peer, and nothing else"
        return
    name, key, address = (entry[field] for field in FIELDS)
    if not isinstance(name, str) or not PEER_NAME.fullmatch(name):
        yield f"{name!r:.80} is not a peer's name", "Use small letters, digits and hyphens"
    if not is_key(key):
        yield f"the key of {name} is not a public key of WireGuard", "`wg pubkey` prints it"
    try:
        ipaddress.IPv4Address(str(address))
    except ValueError:
        yield f"the address of {name} is {address!r:.40}, which is not an IPv4 address", "Write one of vpn_network"


def _repeated(listed: Sequence[dict[str, Any]]) -> Iterator[Fault]:
    for field in FIELDS:
        values = [str(entry[field]) for entry in listed]
        for value in sorted({value for value in values if values.count(value) > 1}):
            yield f"two peers have the {field} {value}", "Give each its own"


def _free(network: str) -> tuple[ipaddress.IPv4Network, set[ipaddress.IPv4Address]]:
    """Return a network, and the addresses that no peer can have; the first one is control's."""
    own = ipaddress.IPv4Network(network)
    return own, {own[0], own[1], own[-1]}


def faults(peers: Iterable[Peer], network: str) -> Iterator[Fault]:
    """Yield what is wrong with the peers' addresses in a network."""
    own, taken = _free(network)
    for peer in peers:
        address = ipaddress.IPv4Address(peer.address)
        if address not in own or address in taken:
            yield (
                f"{peer.name} has the address {peer.address}, which is not free for a peer in vpn_network ({network})",
                f"Choose one from {own[2]} to {own[-2]}",
            )


def free_address(peers: Iterable[Peer], network: str) -> str:
    """Return the first address of a network that is free for another peer.

    :raises ValueError: the network has no free address

    >>> free_address([Peer("laptop", "", "10.79.0.2")], "10.79.0.0/24")
    '10.79.0.3'
    """
    own, taken = _free(network)
    taken |= {ipaddress.IPv4Address(peer.address) for peer in peers}
    for address in own:
        if address not in taken:
            return str(address)
    raise ValueError(f"vpn_network ({network}) has no free address")


def entry(peer: Peer) -> str:
    """Return the lines of a peer in the file."""
    # A name such as `no` or `1e3` has another meaning without quotes.
    name = peer.name if yaml.safe_load(peer.name) == peer.name else f'"{peer.name}"'
    return f"- name: {name}\n  key: {peer.key}\n  address: {peer.address}\n"


def edit(text: str, new: Sequence[Peer]) -> str:
    """Return a file's text with other peers: entries that stay keep their lines, order and comments.

    :raises ValueError: the file is in a form that only its author can change
    """
    rendered = f"---\n{HEADER}peers:{'' if new else ' []'}\n{''.join(map(entry, new))}"
    if not text.strip():
        return rendered
    for attempt in (_edited(text, new), "" if "#" in text.replace(HEADER, "") else rendered):
        try:
            if attempt and parse(attempt) == tuple(new):
                return attempt
        except PeersError:
            continue
    raise ValueError("it is written in a form that this command cannot change without losing comments")


def _edited(text: str, new: Sequence[Peer]) -> str:
    """Return the text without the lines of removed entries, and with those of new ones."""
    lines = text.splitlines(keepends=True)
    if not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    old, kept = parse(text), {peer.name for peer in new}
    fresh = "".join(entry(peer) for peer in new if peer not in old)
    root = yaml.compose("".join(lines), yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        return ""
    key, listed = root.value[0]
    if not old:
        # `peers: []` in one line.
        first = int(key.start_mark.line)
        if "#" in lines[first] or int(listed.end_mark.line) > first:
            return ""
        lines[first] = f"peers:\n{fresh}"
        return "".join(lines)
    if listed.flow_style:
        return ""
    margin, end = " " * int(listed.start_mark.column), _end(listed.value[-1])
    lines.insert(end, "".join(f"{margin}{line}" for line in fresh.splitlines(keepends=True)))
    for node, peer in reversed(list(zip(listed.value, old, strict=True))):
        if peer.name not in kept:
            del lines[int(node.start_mark.line) : _end(node)]
    if not new:
        lines[int(key.start_mark.line)] = lines[int(key.start_mark.line)].replace("peers:", "peers: []", 1)
    return "".join(lines)


def _end(node: Any) -> int:
    """Return the line after an entry."""
    last = node.value[-1][1] if not node.flow_style else node
    return int(last.end_mark.line) + int(last.end_mark.column > 0)
