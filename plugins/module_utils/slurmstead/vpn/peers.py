# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The peers of the VPN in vpn.yml: names, public keys and addresses. No secret is in it."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import ipaddress
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

NAME = "vpn.yml"
PEER_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class PeersError(ValueError):
    """A mistake in the file; the text names it, and what to do."""


@dataclasses.dataclass(frozen=True)
class Peer:
    """A computer outside that may use the VPN."""

    name: str
    key: str
    """its public key"""
    address: str
    """in the network of the VPN"""


def is_key(text: object) -> bool:
    """Return whether a text is a key of WireGuard: 32 bytes in base64.

    >>> is_key("A" * 42 + "E="), is_key("A" * 20), is_key(7)
    (True, False, False)
    """
    try:
        return isinstance(text, str) and len(text) == 44 and len(base64.b64decode(text, validate=True)) == 32
    except binascii.Error:
        return False


def read(path: Path, name: str = "") -> tuple[Peer, ...]:
    """Return the peers of a file; none if it does not exist.

    :raises PeersError: the file has a mistake
    """
    name = name or str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError):
        raise PeersError(f"{name}: cannot be read. Restore it, for example with git") from None
    return parse(text, name)


def parse(text: str, name: str = NAME) -> tuple[Peer, ...]:
    """Return the peers of a text.

    :raises PeersError: the text has a mistake
    """
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:
        raise PeersError(f"{name}: is not YAML. Correct it, or restore it with git") from None
    listed = content.get("peers") if isinstance(content, dict) and set(content) == {"peers"} else None
    if content is None:
        return ()
    if not isinstance(listed, list):
        raise PeersError(f"{name}: has not the one key `peers` with a list. Write it as docs/vpn.md shows")
    found: list[Peer] = []
    for entry in listed:
        peer = _peer(entry, name)
        for field in ("name", "key", "address"):
            value = getattr(peer, field)
            if value in (getattr(other, field) for other in found):
                raise PeersError(f"{name}: two peers have the {field} {value}. Give each its own")
        found.append(peer)
    return tuple(found)


def _peer(entry: Any, name: str) -> Peer:
    if not isinstance(entry, dict) or set(entry) != {"name", "key", "address"}:
        raise PeersError(f"{name}: a peer has name, key and address, and nothing else. It is not {entry!r:.60}")
    if not isinstance(entry["name"], str) or not PEER_NAME.fullmatch(entry["name"]):
        raise PeersError(f"{name}: {entry['name']!r:.80} is not a peer's name. Use small letters, digits and hyphens")
    if not is_key(entry["key"]):
        raise PeersError(f"{name}: the key of {entry['name']} is not a public key of WireGuard. `wg pubkey` prints it")
    try:
        address = str(ipaddress.IPv4Address(str(entry["address"])))
    except ValueError:
        raise PeersError(
            f"{name}: the address of {entry['name']} is {entry['address']!r:.40}, which is not an IPv4 address"
        ) from None
    return Peer(entry["name"], entry["key"], address)


def faults(peers: tuple[Peer, ...], network: str) -> Iterator[str]:
    """Yield what is wrong with the peers' addresses in a network; the first address is control's."""
    own = ipaddress.IPv4Network(network)
    taken = (own[0], own[1], own[-1])
    for peer in peers:
        address = ipaddress.IPv4Address(peer.address)
        if address not in own or address in taken:
            yield (
                f"{peer.name} has the address {peer.address}, which is not free for a peer in vpn_network ({network}). "
                f"Choose one from {own[2]} to {own[-2]}"
            )
