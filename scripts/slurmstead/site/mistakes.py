"""The mistakes in the description of a new site, by the rules of validate-inventory."""

import collections
import dataclasses
from collections.abc import Iterator

import yaml

from slurmstead import rooms
from slurmstead.paths import ROOT
from slurmstead.site.contents import FIRST_UID, Site


def mistakes(site: Site) -> list[str]:
    """Return all mistakes of a site, by the rules of validate-inventory; each says what to do."""
    return [*_wrong_options(site), *_wrong_values(site)]


def _wrong_options(site: Site) -> Iterator[str]:
    if not site.is_example:
        for option, machines in (("--control", site.control), ("--worker", site.workers)):
            if not machines:
                yield f"{option}: no machine is given. Add {option} NAME=ADDRESS."
    if len(site.control) > 1:
        yield f"--control: {len(site.control)} machines are given, but a cluster has one. Keep one of them."
    addresses: dict[str, set[str]] = {}
    for name, address in (*site.control, *site.workers):
        addresses.setdefault(name, set()).add(address)
    for name, different in addresses.items():
        if len(different) > 1:
            yield f"host {name}: has the addresses {' and '.join(sorted(different))}. Keep one of them."
    for option, machines in (("--control", site.control), ("--worker", site.workers)):
        for machine, number in collections.Counter(machines).items():
            if number > 1:
                yield f"{option} {'='.join(machine)}: is given {number} times. Give it once."


def _wrong_values(site: Site) -> Iterator[str]:
    check, model = (rooms.module(f"inventory.{name}") for name in ("check", "model"))
    users = [{"name": user, "uid": uid, "keys": list(site.keys)} for uid, user in enumerate(site.users, FIRST_UID)]
    machines = {**dict(site.workers), **dict(site.control)} or {"head": "192.0.2.1", "node1": "192.0.2.2"}
    inventory = model.Inventory(
        groups={
            "all": list(machines),
            "control": [name for name, _ in site.control] or list(machines)[:1],
            "nfs_server": [name for name, _ in site.control] or list(machines)[:1],
            "workers": [name for name, _ in site.workers] or list(machines)[1:],
        },
        hosts={
            name: {"os_address": model.Variable(address), "accounts_users": model.Variable(users)}
            for name, address in machines.items()
        },
    )
    for problem in check.problems(inventory, model.Groups("control", "nfs_server", "workers"), _specs()):
        if problem.subject == "accounts_users":
            problem = dataclasses.replace(problem, subject="--user", hosts=())
        if problem.subject == "os_address":
            problem = dataclasses.replace(problem, subject="address")
        # Mistakes in groups are reported above, in terms of the options.
        if not problem.subject.startswith("group "):
            yield str(problem)


def _specs() -> object:
    """Return the variables of all roles, as the action validate_inventory reads them."""
    roles = {
        path.parts[-3]: yaml.safe_load(path.read_text())["argument_specs"]["main"].get("options") or {}
        for path in ROOT.glob("roles/*/meta/argument_specs.yml")
    }
    computed = frozenset(yaml.safe_load((ROOT / "playbooks" / "vars" / "cluster.yml").read_text()))
    return rooms.module("inventory.model").Specs(roles, computed, optional=frozenset({"bootstrap", "lab"}))
