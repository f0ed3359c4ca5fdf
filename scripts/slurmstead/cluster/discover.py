"""New machines: found by a playbook, printed, and as lines for hosts.yml."""

import collections
import dataclasses
import ipaddress
import json
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from slurmstead.cluster.ask import ask
from slurmstead.errors import CheckFailed, InventoryError, UsageError
from slurmstead.wording import count

NAME = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclasses.dataclass(frozen=True)
class Found:
    """The new machines, notes about known ones, and all addresses in use."""

    new: Sequence[Mapping[str, Any]]
    notes: Sequence[str]
    addresses: Sequence[str]

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(dataclasses.asdict(self), indent=2)


@dataclasses.dataclass(frozen=True)
class Worker:
    """A machine that can be added: its name, the variables as YAML, and comments."""

    name: str
    variables: Mapping[str, str]
    comments: Sequence[str]


def run(console: Console, inventory: pathlib.Path, *, user: str = "", plain: bool = False) -> Found:
    """Look for new machines, with progress on `console`.

    :param user: the only account that is tried on them; empty for the inventory's and root
    :raises SteadError: control could not be asked
    """
    said = ask(
        *(console, "discover-machines.yml", inventory, "discover", "new"),
        unasked=CheckFailed("control was not asked", "The inventory needs a group `control`."),
        extra_vars={"discover_user": user} if user else {},
        plain=plain,
    )
    return Found(said["new"], said["notes"], said["addresses"])


def print_found(console: Console, found: Found) -> None:
    """Print each new machine and the notes."""
    for machine in found.new:
        for line in lines(machine):
            console.print(Text(line), soft_wrap=True)
    for note in found.notes:
        console.print(Text.assemble(("note", "dim"), f"  {note}"), soft_wrap=True)
    console.print(
        f"{count(len(found.new), 'new machine')}, {count(len(found.addresses), 'address', 'addresses')} in use"
    )


def lines(machine: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a machine."""
    yield "  ".join(filter(None, (", ".join(machine["addresses"]), machine["mac"], machine["maker"], machine["name"])))
    if machine["bmc"]:
        yield f"    BMC: {machine['bmc']}"
    if machine["banner"]:
        yield f"    {machine['banner']}  host key {machine['host_key'] or 'unknown'}"
    if machine.get("login"):
        yield f"    no login as {machine['login']}"
    measured = machine.get("machine")
    if measured:
        words = (measured["product"], f"serial {measured['serial'] or 'unknown'}", *_size(measured))
        yield f"    {', '.join(filter(None, words))}; login as {machine['user']}"
        for disk in measured["disks"]:
            name = f"/dev/disk/by-id/{disk['id']}" if disk["id"] else f"/dev/{disk['name']}"
            state = f"not free: {'; '.join(disk['content'])}" if disk["content"] else "blank"
            yield f"    {name}, {disk['size'] / 1e9:.0f} GB, {state}"
    if machine["refused"]:
        yield f"    not to be added: {machine['refused']}"


def _size(measured: Mapping[str, Any]) -> Iterator[str]:
    if measured["cores"]:
        yield count(measured["cores"], "core")
    if measured["memory"]:
        yield f"{measured['memory']} MiB"


def chosen(found: Found, words: Sequence[str]) -> list[tuple[Mapping[str, Any], str]]:
    """Return the machines to add, each with its wanted name or an empty one.

    Without words, those that accepted a login: printers and switches speak ssh too.

    :param words: ADDRESS or MAC, or ADDRESS=NAME; a machine that does not answer ssh, to be installed, only by its MAC
    :raises UsageError: a word is not a new machine, or that one cannot be added or was named before
    """
    if not words:
        return [(machine, "") for machine in found.new if machine.get("machine") and not machine["refused"]]
    wanted: list[tuple[Mapping[str, Any], str]] = []
    for word in words:
        place, _, name = word.partition("=")
        machine = next((one for one in found.new if place in one["addresses"] or place.lower() == one["mac"]), None)
        if machine is None:
            known = ", ".join(one["address"] for one in found.new) or "none"
            raise UsageError(f"{place} is not a new machine", f"The new machines are {known}.")
        if machine["refused"]:
            raise UsageError(
                f"{place} cannot be added: {machine['refused']}", "Make new host keys on it, see docs/discover.md."
            )
        if not machine["host_key"] and (place.lower() != machine["mac"] or machine["bmc"]):
            raise UsageError(
                f"{place} does not answer ssh, so it has no identity",
                "Install it, then run this again. To install it over the network, name it by its MAC.",
            )
        if any(machine is other for other, _ in wanted):
            raise UsageError(f"{place} is a machine that was named before", "Name each machine once.")
        wanted.append((machine, name))
    return wanted


def workers(
    wanted: Sequence[tuple[Mapping[str, Any], str]], found: Found, listed: Mapping[str, Any], members: Sequence[str]
) -> list[Worker]:
    """Return the machines as workers, with free names and addresses.

    :param listed: `ansible-inventory --list`
    :param members: the workers of the inventory
    :raises UsageError: a name cannot be used
    """
    hosts = listed.get("_meta", {}).get("hostvars", {})
    taken = {*hosts, *listed, "all", "ungrouped", "localhost", "default"}
    names = _names(members, taken)
    addresses = Addresses(hosts, found)
    made = []
    for machine, name in wanted:
        if name and (not NAME.fullmatch(name) or name in taken):
            why = "is in the inventory" if name in taken else "is not a host name"
            raise UsageError(f"{name} {why}", "Choose another name: letters, digits and inner hyphens, in lower case.")
        own = name or next(names)
        taken.add(own)
        made.append(_worker(own, machine, addresses))
    return made


def _names(members: Sequence[str], taken: set[str]) -> Iterator[str]:
    """Yield free names that continue those of the workers: node1 and node2 are followed by node3.

    >>> next(_names(["rack01", "rack02", "gpu1"], {"rack03"}))
    'rack04'
    """
    parts = [match for match in (re.fullmatch(r"(.*?)(\d+)", name) for name in members) if match]
    prefix = collections.Counter(match[1] for match in parts).most_common(1)[0][0] if parts else "node"
    used = [match[2] for match in parts if match[1] == prefix]
    width, number = max(map(len, used), default=1), max(map(int, used), default=0)
    while True:
        number += 1
        name = f"{prefix}{number:0{width}}"
        if name not in taken:
            taken.add(name)
            yield name


class Addresses:
    """Chooses the addresses of new machines: behind a router the next free one, elsewhere the one that it has."""

    def __init__(self, hosts: Mapping[str, Mapping[str, Any]], found: Found) -> None:
        router = next((one for one in hosts.values() if one.get("router_interface") and one.get("router_network")), {})
        try:
            self.network = ipaddress.ip_network(router["router_network"]) if router else None
            self.pool = [int(ipaddress.ip_address(one)) for one in router.get("router_pool") or []]
            self.declared = [ipaddress.ip_address(one) for one in _addresses(hosts)]
        except ValueError as error:
            raise InventoryError(
                f"an address in the inventory cannot be used: {error}",
                "Correct router_network, router_pool or os_address; here they cannot be expressions. "
                "`scripts/stead up --check` shows all mistakes.",
            ) from None
        self.used = {*self.declared, *map(ipaddress.ip_address, found.addresses)}

    def of(self, machine: Mapping[str, Any]) -> str:
        """Return the address for a machine, which is then taken."""
        now = ipaddress.ip_address(machine["address"])
        if self.network is None or now not in self.network:
            return str(now)
        if not self._is_in_pool(now):
            return str(now)
        inside = [int(one) for one in self.declared if one in self.network]
        first = max((one for one in inside if not self.pool or one < self.pool[0]), default=int(self.network[0])) + 1
        for number in [*range(first, int(self.network[-1])), *range(int(self.network[1]), first)]:
            free = ipaddress.ip_address(number)
            if free not in self.used and not self._is_in_pool(free):
                self.used.add(free)
                self.declared.append(free)
                return str(free)
        raise UsageError(f"{self.network} has no free address outside router_pool", "Make router_pool smaller.")

    def _is_in_pool(self, address: Any) -> bool:
        return len(self.pool) == 2 and self.pool[0] <= int(address) <= self.pool[1]


def _addresses(hosts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for one in hosts.values():
        try:
            yield str(ipaddress.ip_address(str(one.get("os_address"))))
        except ValueError:
            continue


def _worker(name: str, machine: Mapping[str, Any], addresses: Addresses) -> Worker:
    measured = machine.get("machine") or {}
    variables = {"os_address": addresses.of(machine)}
    if addresses.network is not None:
        variables["router_mac"] = json.dumps(machine["mac"])
    if measured.get("serial"):
        variables["os_serial"] = json.dumps(measured["serial"])
    if machine["host_key"]:
        variables["os_host_key"] = machine["host_key"]
    elif addresses.network is not None:
        variables["install_disk"] = '""'
    blank = [disk["id"] for disk in measured.get("disks", ()) if disk["id"] and not disk["content"]]
    if blank:
        variables["scratch_disks"] = "[]"
    words = [measured.get("product", ""), *(_size(measured) if measured else ())]
    comments = [", ".join(filter(None, words))] if any(words) else []
    return Worker(name, variables, [*comments, *(f"blank: /dev/disk/by-id/{disk}" for disk in blank)])


def next_steps(made: Sequence[Worker], wanted: Sequence[tuple[Mapping[str, Any], str]], control: str) -> Iterator[str]:
    """Yield what the operator does now."""
    pairs = list(zip(made, (machine for machine, _ in wanted), strict=True))
    for name in (one.name for one, machine in pairs if not machine["host_key"]):
        yield f"write the serial of its disk as install_disk of {name}, then scripts/stead install {name}"
    made, pairs = (
        [one for one, machine in pairs if machine["host_key"]],
        [pair for pair in pairs if pair[1]["host_key"]],
    )
    if not made:
        return
    moved = [one.name for one, machine in pairs if one.variables["os_address"] not in machine["addresses"]]
    if moved:
        yield f"scripts/stead up --limit {control} --tags router, then reboot {', '.join(moved)} for the new address"
    yield "playbooks/bootstrap-hosts.yml if there is no account `ansible` yet: see README.md"
    yield f"scripts/stead add-node {made[0].name}" + (", then the others one by one" if made[1:] else "")
