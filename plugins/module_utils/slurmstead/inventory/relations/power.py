# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for what a method of switching a machine needs."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.slurmstead.inventory.model import HostViolation, Violation, shown
from ansible.module_utils.slurmstead.inventory.relations.addresses import used_twice
from ansible.module_utils.slurmstead.network.plan import MAC
from ansible.module_utils.slurmstead.power import address, ipmi, times

_CERTIFICATE = re.compile(r"[0-9A-Fa-f]{64}|[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){31}")

WITH_PASSWORD = ("ipmi", "redfish", "turing_pi")
PORTS = {"ipmi": ipmi.PORT, "plug": 80, "redfish": 443, "turing_pi": 443}
"""Where devices listen whose address has no port."""


def _is_address(text: str) -> bool:
    try:
        address.split(text, port=1)
    except ValueError:
        return False
    return True


def power_has_an_address(power_method: str, power_address: str) -> Iterator[Violation]:
    """What is reached over the network has an address, and a port if it needs one; a URL is not one."""
    if power_method in PORTS and not power_address:
        yield "power_address", f"is empty, but power_method is {power_method}", "Write the address of its BMC or plug"
    elif power_address and not _is_address(power_address):
        yield (
            "power_address",
            f"is {shown(power_address)}, which is not an address",
            "Write it as in 192.168.2.11, [fd00::9] or 192.168.2.11:8443",
        )


def power_has_credentials(power_method: str, power_user: str, power_password: str) -> Iterator[Violation]:
    """A BMC wants a user and a password."""
    if power_method in WITH_PASSWORD:
        for name, value in (("power_user", power_user), ("power_password", power_password)):
            if not value:
                yield name, f"is empty, but power_method is {power_method}", "Write it; keep a password in a vault"


def devices_differ(
    power_method: Mapping[str, str],
    power_address: Mapping[str, str],
    power_slot: Mapping[str, int],
) -> Iterator[HostViolation]:
    """Where two machines have one device, a command for one would cut, or overwrite, the other."""
    devices = {}
    for host, method in power_method.items():
        if method in PORTS and _is_address(power_address.get(host, "")):
            name, port = address.split(power_address[host], PORTS[method])
            slot = "" if method == "ipmi" else f" slot {power_slot.get(host)}"
            devices[host] = f"{name.lower()} port {port}{slot}"
    advice = "Give each host its own power_address, or on a shared device its own power_slot"
    yield from used_twice("power_address", devices, advice)


def power_slot_exists(power_method: str, power_slot: int) -> Iterator[Violation]:
    """A Turing Pi has four slots."""
    if power_slot < 1 or (power_method == "turing_pi" and power_slot > 4):
        yield "power_slot", f"is {power_slot}", "Write a number from 1 (on a Turing Pi, to 4)"


def power_card_is_known(power_method: str, power_mac: str) -> Iterator[Violation]:
    """Wake-on-LAN needs a MAC address."""
    if (power_method == "wake_on_lan" or power_mac) and not MAC.fullmatch(power_mac):
        yield (
            "power_mac",
            f"is {shown(power_mac)}, which is not a MAC address",
            'Write it in quotes, as in "52:54:00:12:34:56"; without them, YAML reads some addresses as numbers',
        )


def power_broadcast_is_an_address(power_broadcast: str) -> Iterator[Violation]:
    """A magic packet goes to an address, so that no name must be found first."""
    try:
        ipaddress.IPv4Address(address.split(power_broadcast, port=1)[0])
    except ValueError:
        yield (
            "power_broadcast",
            f"is {shown(power_broadcast)}, which is not an IPv4 address",
            "Write it as in 192.168.1.255 or 192.168.1.255:7",
        )


def power_plug_has_a_kind(power_method: str, power_plug: str) -> Iterator[Violation]:
    """The kinds of plugs have different protocols."""
    if power_method == "plug" and not power_plug:
        yield "power_plug", "is empty, but power_method is plug", "Write tasmota, shelly_1 or shelly_2"


def power_commands_are_complete(power_method: str, power_commands: Mapping[str, Any]) -> Iterator[Violation]:
    """`on` and `off` are lists of words; no shell reads them."""
    if power_method != "command":
        return
    if {True, False} & power_commands.keys():
        wrong = "has true or false as a name, because YAML reads on and off so"
        yield "power_commands", wrong, 'Write "on" and "off" in quotes, as words of the commands too'
        return
    for verb in ("on", "off"):
        if verb not in power_commands:
            yield "power_commands", f"has no {verb}", f'Add one, as in "{verb}": [/usr/local/bin/switch, "{verb}"]'
    for verb, words in power_commands.items():
        if verb not in ("on", "off", "status", "shut_down"):
            yield "power_commands", f"has {shown(verb)}", "Its commands are on, off, status and shut_down"
        elif not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            yield "power_commands", f"has {shown(words)} as {verb}", "Write a list of words, the program first"


def power_idle_is_a_time(power_method: str, power_idle: str) -> Iterator[Violation]:
    """A machine that sleeps must be woken, and soon enough to be of use."""
    if not power_idle:
        return
    if not times.TIME.fullmatch(power_idle):
        yield "power_idle", f"is {shown(power_idle)}, which is not a time", "Write it as in 20min or 2h"
    if not power_method:
        yield "power_idle", "is set, but the machine has no power_method", "Set power_method, or remove power_idle"


def only_workers_sleep(
    power_idle: Mapping[str, str],
    control_names: Sequence[str],
    nfs_server_names: Sequence[str],
    login_names: Sequence[str],
    worker_names: Sequence[str],
) -> Iterator[HostViolation]:
    """A worker that other machines or users need while it runs no job stays on; other machines never sleep."""
    for names, what in ((control_names, "slurmctld"), (nfs_server_names, "the share"), (login_names, "logins")):
        if hosts := tuple(host for host in names if host in worker_names and power_idle.get(host)):
            wrong = f"is {power_idle[hosts[0]]}, but {what} must stay available here while no job runs"
            yield hosts, "power_idle", wrong, 'Set power_idle: "" for this host'


def power_figures_are_possible(power_watts: int, power_keep: int, power_price: float) -> Iterator[Violation]:
    """None can be less than nothing."""
    for name, value in (("power_watts", power_watts), ("power_keep", power_keep), ("power_price", power_price)):
        if value < 0:
            yield name, f"is {value}", "Write 0 or more"


def power_certificate_is_a_hash(power_certificate: str) -> Iterator[Violation]:
    """SHA-256 has 64 hexadecimal digits."""
    if power_certificate and not _CERTIFICATE.fullmatch(power_certificate):
        yield (
            "power_certificate",
            f"is {shown(power_certificate)}, which is not a SHA-256",
            "Write what `openssl x509 -noout -fingerprint -sha256` prints after the equals sign",
        )
