# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Ask a network for an address, to find the DHCP servers that answer. Nothing is accepted, so no lease is taken.

Run as a program with an interface, it exits with 1 if a server answers that is not this machine. It needs nothing
but Python, because the router's unit runs a copy of it before dnsmasq, with dnsmasq's configuration.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import time

BOOTREQUEST, BOOTREPLY, ETHERNET = 1, 2, 1
BROADCAST = 0x8000
COOKIE = b"\x63\x82\x53\x63"
PAD, MESSAGE, SERVER, END = 0, 53, 54, 255
DISCOVER, OFFER = 1, 2
HEADER = struct.Struct("!BBBBIHH16s16s192s")
"""op, htype, hlen, hops, xid, secs, flags; four addresses; chaddr; sname and file (RFC 2131)"""

SECONDS = 6.0
"""dnsmasq pings an address for 3 s before it offers it, others for 1 s."""


def discover(xid: int, mac: bytes) -> bytes:
    """Return a DHCPDISCOVER whose answer is broadcast.

    >>> len(discover(1, b"abcdef")) >= 240
    True
    """
    header = HEADER.pack(BOOTREQUEST, ETHERNET, len(mac), 0, xid, 0, BROADCAST, b"", mac, b"")
    options = COOKIE + bytes([MESSAGE, 1, DISCOVER, END])
    return (header + options).ljust(300, b"\0")


def server_of(packet: bytes, xid: int) -> str:
    """Return the address of the server that answers this question with an offer; empty for any other packet."""
    start = HEADER.size + len(COOKIE)
    if len(packet) < start or packet[0] != BOOTREPLY or packet[HEADER.size : start] != COOKIE:
        return ""
    if HEADER.unpack(packet[: HEADER.size])[4] != xid:
        return ""
    options = _options(packet[start:])
    server = options.get(SERVER, b"")
    return socket.inet_ntoa(server) if options.get(MESSAGE) == bytes([OFFER]) and len(server) == 4 else ""


def _options(data: bytes) -> dict[int, bytes]:
    """Return the options by code; of a truncated list those before the cut."""
    found: dict[int, bytes] = {}
    at = 0
    while at < len(data) and data[at] != END:
        if data[at] == PAD:
            at += 1
            continue
        if at + 2 > len(data):
            break
        found[data[at]] = data[at + 2 : at + 2 + data[at + 1]]
        at += 2 + data[at + 1]
    return found


def own_addresses() -> set[str]:
    """Return this machine's IPv4 addresses."""
    done = subprocess.run(["ip", "-4", "-oneline", "address"], stdout=subprocess.PIPE, text=True, check=True)
    return {line.split()[3].partition("/")[0] for line in done.stdout.splitlines()}


def others(interface: str, seconds: float = SECONDS) -> list[str]:
    """Return the addresses of the DHCP servers that answer on an interface, without this machine's own.

    :raises OSError: the interface does not exist, or this is not root
    """
    xid = int.from_bytes(os.urandom(4), "big")
    # A MAC of our own (locally administered), so that no server gives its answer to a machine's lease.
    question = discover(xid, b"\x02" + os.urandom(5))
    found = set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        link.bind(("", 68))
        end = time.monotonic() + seconds
        asked = -1.0
        while (now := time.monotonic()) < end:
            if now >= asked + 1:
                # Without a cable there is no other server either.
                with contextlib.suppress(OSError):
                    link.sendto(question, ("255.255.255.255", 67))
                asked = now
            link.settimeout(max(0.01, min(0.5, end - now)))
            with contextlib.suppress(TimeoutError):
                found.add(server_of(link.recv(2048), xid))
    return sorted(found - {""} - own_addresses())


def forget(configuration: pathlib.Path) -> None:
    """Remove the leases of addresses that belong to other cards now: dnsmasq would refuse them until they expire."""
    text = configuration.read_text()
    cards = {address: mac for mac, address in re.findall(r"^dhcp-host=([^,]+),([^,]+)", text, re.MULTILINE)}
    for name in re.findall(r"^dhcp-leasefile=(.+)$", text, re.MULTILINE):
        # dnsmasq starts also if this does not work.
        with contextlib.suppress(OSError):
            before = pathlib.Path(name).read_text("latin-1").splitlines(keepends=True)
            left = [line for line in before if len(at := line.split()) < 3 or cards.get(at[2], at[1]) == at[1]]
            if left != before:
                pathlib.Path(name).write_text("".join(left), "latin-1")


def main() -> str | None:
    """Run the program: `dhcp.py INTERFACE [CONFIGURATION]`; return what is wrong."""
    found = others(sys.argv[1])
    if found:
        return f"another DHCP server answers on {sys.argv[1]}: {', '.join(found)}; switch it off"
    for name in sys.argv[2:]:
        forget(pathlib.Path(name))
    return None


if __name__ == "__main__":
    sys.exit(main())
