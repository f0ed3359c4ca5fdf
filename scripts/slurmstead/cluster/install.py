"""A blank machine that is installed over the network: what it needs in the inventory, and what it reported."""

import dataclasses
import ipaddress
import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from slurmstead import rooms
from slurmstead.cluster import operations
from slurmstead.errors import CheckFailed, UsageError
from slurmstead.runner.outcome import Result

SEE = "See docs/install.md."


@dataclasses.dataclass(frozen=True)
class Installed:
    """What a machine reported: its serial, the disk that was written, the fingerprint of its host key."""

    serial: str
    disk: str
    host_key: str


def check(name: str, groups: operations.Groups, listed: Mapping[str, Any], *, restart: bool) -> None:
    """Check that the inventory has what an installation needs.

    :param listed: `ansible-inventory --list`
    :param restart: whether the machine's power is to be cut first
    :raises UsageError: it has not
    """
    hosts = listed.get("_meta", {}).get("hostvars", {})
    own, router = hosts.get(name, {}), hosts.get(groups["control"][0], {}) if groups["control"] else {}
    if not router.get("router_interface") or not router.get("router_network"):
        raise UsageError("control is not a router, so no machine can boot from it", "See docs/network.md.")
    wanted = {
        "router_mac": "the MAC of its network card",
        "install_disk": "the serial of its disk",
        "bootstrap_authorized_keys": "your public ssh keys",
    }
    for variable, words in wanted.items():
        if not own.get(variable):
            raise UsageError(f"{name} has no {variable} ({words})", SEE)
    method = own.get("power_method")
    if restart and not (method and rooms.module("power.model").Machine(name, method).cuts):
        raise UsageError(
            f"--restart cannot cut the power of {name}: its power_method is {method or 'not set'}",
            "Restart the machine by hand when the command waits for it, and leave --restart out.",
        )
    try:
        inside = ipaddress.ip_address(str(own.get("os_address"))) in ipaddress.ip_network(router["router_network"])
    except ValueError:
        return  # validate_inventory reports it
    if not inside:
        raise UsageError(f"os_address of {name} is not in router_network ({router['router_network']})", SEE)


def run(
    out: Console,
    messages: Console,
    inventory: pathlib.Path,
    name: str,
    groups: operations.Groups,
    *,
    deadline: int,
    restart: bool,
    plain: bool,
) -> Installed:
    """Install a machine.

    :param deadline: minutes until it has booted over the network
    :param restart: cut its power first if it is on
    :raises SteadError: it was not installed
    """
    result = operations.run(
        *(out, messages, "install-machine.yml", inventory),
        limit=",".join(groups["control"]),
        extra_vars={
            "installed_node": name,
            "install_deadline": str(deadline),
            "install_restart": "true" if restart else None,
        },
        plain=plain,
    )
    return parse(result)


def parse(result: Result) -> Installed:
    """Return what the machine reported. Control, which passed it on, is not trusted with a template either.

    :raises CheckFailed: it reported no fingerprint
    """
    identity = rooms.module("discover.identity")
    found = (said.get("report") or {} for said in result.results_of("install_window"))
    reports = [report for report in found if identity.FINGERPRINT.fullmatch(report.get("host_key", ""))]
    if not reports:
        raise CheckFailed("the machine did not report the fingerprint of its host key", SEE)
    last = reports[-1]
    serial = last.get("serial", "")
    return Installed(serial if identity.SERIAL.fullmatch(serial) else "", last.get("disk", ""), last["host_key"])


def lines(name: str, installed: Installed) -> Iterator[str]:
    """Yield what the operator should know and write down."""
    yield f"{name} is installed on {installed.disk}. Add these lines to it in the inventory:"
    if installed.serial:
        yield f"      os_serial: {json.dumps(installed.serial)}"
    yield f"      os_host_key: {installed.host_key}"
