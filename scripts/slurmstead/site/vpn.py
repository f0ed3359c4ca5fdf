"""Changes vpn.yml of a site, and makes what a computer outside needs. A private key is returned and never stored."""

import base64
import dataclasses
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from slurmstead import rooms
from slurmstead.errors import InventoryError, UsageError
from slurmstead.site import file


@dataclasses.dataclass(frozen=True)
class Book:
    """The peers of a site: the path of the file, its content as text, and as peers."""

    path: pathlib.Path
    text: str
    peers: tuple[Any, ...]

    def find(self, name: str) -> Any:
        """Return the peer of a name, or None."""
        return next((peer for peer in self.peers if peer.name == name), None)


def read(inventory: pathlib.Path) -> Book:
    """Return the peers of an inventory; none if it has no vpn.yml.

    :raises InventoryError: the file has mistakes; the message lists all of them
    """
    room = rooms.module("vpn.peers")
    path = file.beside(inventory, room.NAME)
    try:
        return Book(path, file.read(path), room.read(path))
    except room.PeersError as error:
        raise InventoryError(str(error), "Correct the file, then run the command again.") from None


def check_new(book: Book, name: str, key: str) -> None:
    """Check that a peer can be added.

    :param key: its public key; empty if it has none yet
    :raises UsageError: the name or the key is wrong or in use
    """
    room = rooms.module("vpn.peers")
    if not room.PEER_NAME.fullmatch(name):
        raise UsageError(f"{name} is not a peer's name", "Use small letters, digits and inner hyphens.")
    if book.find(name):
        raise UsageError(
            f"{name} is already in {book.path}", f"For new keys: scripts/stead vpn remove {name}, then add it again."
        )
    if key and not room.is_key(key):
        raise UsageError(f"--key {key[:60]} is not a public key of WireGuard", "`wg pubkey` prints it.")
    same = [peer.name for peer in book.peers if peer.key == key]
    if same:
        raise UsageError(f"{same[0]} has this key", "Make another one, with `wg genkey`.")


def make_keys() -> tuple[str, str]:
    """Return a private and a public key, as `wg genkey` and `wg pubkey` print them."""
    # Its import takes a tenth of a second.
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    raw = bytearray(os.urandom(32))
    # The bits that every X25519 key has (RFC 7748, section 5): `wg show` then prints the same text.
    raw[0] &= 248
    raw[31] = (raw[31] & 127) | 64
    public = X25519PrivateKey.from_private_bytes(bytes(raw)).public_key().public_bytes_raw()
    return base64.b64encode(raw).decode(), base64.b64encode(public).decode()


def add(book: Book, name: str, key: str, network: str) -> Any:
    """Write another peer with the next free address to the file; return it.

    :raises UsageError: there is no free address, or the file cannot be written
    """
    room = rooms.module("vpn.peers")
    try:
        peer = room.Peer(name, key, room.free_address(book.peers, network))
    except ValueError as error:
        raise UsageError(str(error), "Remove a peer, or make vpn_network larger.") from None
    _write(book, [*book.peers, peer])
    return peer


def remove(book: Book, names: Sequence[str]) -> None:
    """Remove peers from the file.

    :raises UsageError: a name is not in it, or the file cannot be written
    """
    unknown = [name for name in names if not book.find(name)]
    if unknown:
        known = ", ".join(peer.name for peer in book.peers) or "no peer"
        raise UsageError(
            f"{unknown[0]} is not in {book.path}",
            f"Its peers: {known}. Nothing was changed. "
            "If an earlier `vpn remove` was interrupted, make control follow the file: scripts/stead up --tags vpn",
        )
    _write(book, [peer for peer in book.peers if peer.name not in names])


def _write(book: Book, new: Sequence[Any]) -> None:
    try:
        text = rooms.module("vpn.peers").edit(book.text, new)
    except ValueError as error:
        raise UsageError(f"{book.path} cannot be changed: {error}", "Edit it yourself, one entry per peer.") from None
    file.replace(book.path, book.text, text)


def endpoint(place: str, port: int) -> str:
    """Return where computers outside reach control, with a port.

    :raises InventoryError: `vpn_endpoint` is not set, or is not an address or name
    """
    try:
        return str(rooms.module("vpn.text").endpoint(place, port))
    except ValueError:
        wrong = f"vpn_endpoint: {place} is not an address or name" if place else "vpn_endpoint is not set"
        raise InventoryError(
            wrong,
            "Write the address or name under which computers outside reach control in group_vars/control.yml, "
            "as in vpn_endpoint: home.example.org",
        ) from None


def configuration(private: str, address: str, control: str, place: str, network: str) -> str:
    """Return the configuration of a computer outside, see vpn/text.py."""
    return str(rooms.module("vpn.text").configuration(private, address, control, place, network))


def head(network: str) -> str:
    """Return the address of control in the VPN."""
    return str(rooms.module("vpn.text").own_address(network).partition("/")[0])
