# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Questions to addresses: is a machine there, does it speak ssh, with which host keys, is it a BMC. None logs in."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import socket
import time
from collections.abc import Iterable, Mapping, Sequence

from ansible.module_utils.slurmstead.power import web
from ansible.module_utils.slurmstead.power.model import Machine, PowerError
from ansible.module_utils.slurmstead.reach.commands import run

SECONDS = 2.0
"""Time limit of one question."""

SETTLES = 3.0
"""Seconds in which the kernel asks three times for the MAC of an address."""

SSH, HTTPS, IPMI = 22, 443, 623

KINDS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa")
"""Kinds of host keys; the first that a machine has is its identity."""

PING = bytes([6, 0, 255, 6, 0, 0, 0x11, 0xBE, 0x80, 0, 0, 0])
"""ASF's presence ping in an RMCP packet (IPMI 2.0, 13.2.3)."""

PONG, ENTITIES, SPEAKS_IPMI = 0x40, 20, 0x80
"""Type of the answer, place of its supported entities, and the bit for IPMI in them (IPMI 2.0, 13.2.4)."""

BMCD = b"no authorization header provided"
"""What bmcd 2.x answers to a request without credentials (turing-machines/bmcd, authentication_errors.rs)."""


def sweep(network: str) -> None:
    """Send an empty packet to each address of a network, so that the kernel asks for its MAC."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.setblocking(False)
        for number, address in enumerate(ipaddress.ip_network(network).hosts(), 1):
            # A firewall may refuse it, after the kernel has asked.
            with contextlib.suppress(OSError):
                link.sendto(b"", (str(address), 9))
            if number % 64 == 0:
                time.sleep(0.05)
    time.sleep(SETTLES)


def banner(address: str) -> str:
    """Return the first line of an ssh server; empty if nothing like that answers."""
    try:
        with socket.create_connection((address, SSH), SECONDS) as link:
            line = link.recv(256).split(b"\n")[0].decode(errors="replace").strip()
    except OSError:
        return ""
    return line if line.startswith("SSH-") and line.isprintable() else ""


def host_keys(addresses: Sequence[str]) -> dict[str, list[str]]:
    """Return the host keys of ssh servers by address, each as its kind and its text; the identity first."""
    if not addresses:
        return {}
    command = ("ssh-keyscan", "-T", "10", "-t", "ed25519,ecdsa,rsa", *addresses)
    _, out, _ = run(*command, seconds=60 + len(addresses))
    found: dict[str, list[str]] = {}
    for fields in map(str.split, out.splitlines()):
        if len(fields) == 3 and fields[1] in KINDS:
            found.setdefault(fields[0], []).append(f"{fields[1]} {fields[2]}")
    return {address: sorted(keys, key=lambda key: KINDS.index(key.split()[0])) for address, keys in found.items()}


def ipmi(addresses: Iterable[str]) -> set[str]:
    """Return the addresses that answer IPMI."""
    found = set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        for address in addresses:
            with contextlib.suppress(OSError):
                link.sendto(PING, (address, IPMI))
        end = time.monotonic() + SECONDS
        while (left := end - time.monotonic()) > 0:
            link.settimeout(left)
            # A closed port is reported by the next call.
            with contextlib.suppress(OSError):
                packet, (peer, _) = link.recvfrom(256)
                if is_pong(packet):
                    found.add(str(peer))
    return found


def is_pong(packet: bytes) -> bool:
    """Say whether a packet answers PING and promises IPMI."""
    return len(packet) > ENTITIES and packet[8] == PONG and bool(packet[ENTITIES] & SPEAKS_IPMI)


def web_bmc(address: str) -> str:
    """Return what BMC answers HTTPS without a login, `redfish` with its product or `turing_pi`; empty for others."""
    machine = Machine(name=address, method="redfish", address=address, seconds=SECONDS)
    root = _get(machine, "/redfish/v1/")
    if root is None:
        return ""
    with contextlib.suppress(ValueError):
        found = json.loads(root[1])
        if isinstance(found, Mapping) and "RedfishVersion" in found:
            words = [str(found.get(name) or "") for name in ("Vendor", "Product")]
            return " ".join(word for word in ["redfish", *words] if word.isprintable() and word)
    said = _get(machine, "/api/bmc?opt=get&type=about")
    return "turing_pi" if said and said[0] == 401 and BMCD in said[1] else ""


def _get(machine: Machine, path: str) -> tuple[int, bytes] | None:
    try:
        status, text, _ = web.exchange(machine, path)
    except PowerError:
        return None
    return status, text
