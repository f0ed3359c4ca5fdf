# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Filters that give playbooks and templates the values that Python computes."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import functools
import importlib
import os
import pathlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import ansible.module_utils
import yaml
from ansible.errors import AnsibleFilterError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.display import Display

PROJECT = pathlib.Path(__file__).parents[2]
POWER_FIELDS = (
    *("method", "address", "user", "password", "certificate", "cipher"),
    *("slot", "mac", "broadcast", "plug", "commands"),
)
"""The fields of power.model.Machine that have a variable."""
ROLES = PROJECT / "roles"

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
core_gres = importlib.import_module("ansible.module_utils.slurmstead.hardware.core_gres")
hardware_record = importlib.import_module("ansible.module_utils.slurmstead.hardware.record")
hardware_report = importlib.import_module("ansible.module_utils.slurmstead.hardware.report")
shares = importlib.import_module("ansible.module_utils.slurmstead.accounting.wanted")
conf_partitions = importlib.import_module("ansible.module_utils.slurmstead.conf.partitions")
conf_size = importlib.import_module("ansible.module_utils.slurmstead.conf.size")
slurm_conf = importlib.import_module("ansible.module_utils.slurmstead.conf.text")
hostlist = importlib.import_module("ansible.module_utils.slurmstead.slurm.hostlist")
slurm_nodes = importlib.import_module("ansible.module_utils.slurmstead.hardware.node_lines")
slurm_versions = importlib.import_module("ansible.module_utils.slurmstead.conf.versions")
share = importlib.import_module("ansible.module_utils.slurmstead.storage.share")
parameters = importlib.import_module("ansible.module_utils.slurmstead.hardware.slurmd_parameters")
nfs = importlib.import_module("ansible.module_utils.slurmstead.storage.nfs")
power_times = importlib.import_module("ansible.module_utils.slurmstead.power.times")
notebooks = importlib.import_module("ansible.module_utils.slurmstead.jupyterhub.profiles")
network_dnsmasq = importlib.import_module("ansible.module_utils.slurmstead.network.dnsmasq")
network_plan = importlib.import_module("ansible.module_utils.slurmstead.network.plan")
network_table = importlib.import_module("ansible.module_utils.slurmstead.network.table")
units = importlib.import_module("ansible.module_utils.slurmstead.storage.units")
vpn_peers_file = importlib.import_module("ansible.module_utils.slurmstead.vpn.peers")
vpn_text = importlib.import_module("ansible.module_utils.slurmstead.vpn.text")
people_accounts = importlib.import_module("ansible.module_utils.slurmstead.people.accounts")
people_file = importlib.import_module("ansible.module_utils.slurmstead.people.file")
people_person = importlib.import_module("ansible.module_utils.slurmstead.people.person")
remote_call = importlib.import_module("ansible.module_utils.slurmstead.reach.remote_call")
upgrade_order = importlib.import_module("ansible.module_utils.slurmstead.packages.order")


def files_directory(inventory_dir: str | None) -> str:
    """Return the directory `files` beside the inventory, or the project's if the inventory has none."""
    own = pathlib.Path(inventory_dir, "files") if inventory_dir else None
    return str(own if own and own.is_dir() else PROJECT / "files")


def share_config(
    template: str,
    low: str,
    accounts: dict[str, Any],
    users: dict[str, Any],
    qos: dict[str, Any],
    half_life: str | None,
) -> dict[str, Any]:
    """Return the keys of slurm.conf that the variables of the role `shares` need."""
    declared = shares.Declared(template, low, accounts=accounts, users=users, qos=qos)
    keys: dict[str, Any] = shares.slurm_config(declared, half_life)
    return keys


def programs(directory: str, roles: Iterable[str] = (), below: str = "") -> dict[str, str]:
    """Return the files of a directory of the controlling computer, as Base64 by name; none if it does not exist.

    Those in the directory `below` of the files of roles are added.
    """
    paths = [pathlib.Path(directory)] if directory else []
    paths += [ROLES / role / "files" / below for role in roles]
    files = [file for path in paths if path.is_dir() for file in sorted(path.iterdir())]
    return {file.name: base64.b64encode(file.read_bytes()).decode() for file in files}


def people(directory: str) -> dict[str, Any]:
    """Return the accounts of the people in people.yml of a directory who may use the cluster today.

    `missing` is there, and true, if there is no such file.

    :raises AnsibleFilterError: the file has mistakes; validate_inventory reports them before
    """
    path = pathlib.Path(directory, people_file.NAME)
    try:
        status = path.stat()
    except OSError:
        return {"groups": [], "users": [], "expired": [], "missing": True}
    return _people(path, people_person.today(), status.st_mtime_ns, status.st_size)


@functools.cache
def _people(path: pathlib.Path, today: str, _changed: int, _size: int) -> dict[str, Any]:
    """Return the accounts of a file, read once by each process while it does not change."""
    try:
        found: dict[str, Any] = people_accounts.accounts(people_file.read(path), today)
    except people_file.PeopleError as error:
        raise AnsibleFilterError(str(error)) from error
    return found


def notebook_profiles(profiles: Mapping[str, Mapping[str, Any]], quiet: bool) -> dict[str, dict[str, Any]]:
    """Return profiles of notebooks as the hub reads them."""
    found: dict[str, dict[str, Any]] = notebooks.for_hub(profiles, quiet=quiet)
    return found


def node_addresses(names: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the address by name of the nodes that have one."""
    found = ((name, hostvars[name].get("os_address")) for name in names)
    return {name: address for name, address in found if address}


def quiet_nodes(names: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the nodes that have slurm_quiet.

    >>> quiet_nodes(["n1", "n2", "n3"], {"n1": {"slurm_quiet": True}, "n2": {"slurm_quiet": "no"}, "n3": {}})
    ['n1']
    """
    return [name for name in names if boolean(hostvars[name].get("slurm_quiet") or False)]


def system_cores(names: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Return slurm_system_cores of the nodes that have it.

    >>> system_cores(["n1", "n2", "n3"], {"n1": {"slurm_system_cores": "1"}, "n2": {"slurm_system_cores": 0}, "n3": {}})
    {'n1': 1}
    """
    found = ((name, int(hostvars[name].get("slurm_system_cores") or 0)) for name in names)
    return {name: cores for name, cores in found if cores}


def partitions(
    own: Mapping[str, Any],
    defaults: Mapping[str, Any],
    quiet: list[str],
    hardware: Mapping[str, Any],
    addresses: Mapping[str, str],
    declared: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Return the keys of each partition. Only nodes with a line in slurm.conf can be named; see `node_lines`."""
    nodes = list(slurm_nodes.node_sections(hardware, addresses, declared)) if quiet else []
    found: Mapping[str, Any] = conf_partitions.partitions(own, defaults, quiet, nodes)
    return found


def power_machines(names: str, hostvars: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return how each of these nodes, a list with commas, is switched: the variables power_… without their prefix."""
    chosen = [name for name in names.split(",") if name and hostvars[name].get("power_method")]
    return [
        {
            "name": name,
            "host": str(hostvars[name].get("os_address") or ""),
            **{field: hostvars[name][f"power_{field}"] for field in POWER_FIELDS if f"power_{field}" in hostvars[name]},
        }
        for name in chosen
    ]


def power_sleepers(
    names: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]], asleep: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return the machines that have power_method and power_idle, as power.watch.Sleeper reads them.

    A machine that is asleep must be woken also if it has no power_idle any more.

    >>> power_sleepers(["n1", "n2"], {name: {"power_method": "command"} for name in ("n1", "n2")}, ["n2"])
    [{'machine': {'name': 'n2', 'host': '', 'method': 'command'}, 'idle': 0.0, 'watts': 0.0}]
    """
    idle = {name: hostvars[name].get("power_idle") for name in names}
    able = sorted(name for name in idle if hostvars[name].get("power_method") and (idle[name] or name in asleep))
    return [
        {
            "machine": machine,
            "idle": power_times.seconds(str(idle[machine["name"]])) if idle[machine["name"]] else 0.0,
            "watts": float(hostvars[machine["name"]].get("power_watts") or 0),
        }
        for machine in power_machines(",".join(able), hostvars)
    ]


def power_weights(
    declared: Mapping[str, Mapping[str, Any] | None], sleepers: Iterable[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the declared keys of nodes, with power_watts as the Weight of machines that may sleep and declare none.

    >>> sleepers = [{"machine": {"name": name}, "watts": watts} for name, watts in (("n1", 90.0), ("n2", 0.0))]
    >>> power_weights({"n1": {"Gres": "gpu:1"}, "n3": {"Weight": 5}}, sleepers)
    {'n1': {'Weight': 91, 'Gres': 'gpu:1'}, 'n3': {'Weight': 5}}
    """
    found = {one["machine"]["name"]: {"Weight": 1 + round(one["watts"])} for one in sleepers if one["watts"]}
    return {name: {**found.get(name, {}), **(declared.get(name) or {})} for name in dict.fromkeys([*declared, *found])}


def power_timeouts(
    hardware: Mapping[str, Mapping[str, Any]], workers: Iterable[str], sleepers: Iterable[str]
) -> dict[str, int]:
    """Return ResumeTimeout and SuspendTimeout for the times that `stead power test` measured; seconds.

    scontrol reboot has ResumeTimeout too, so all workers count for it.

    >>> power_timeouts({"n1": {"power": {"off": 20, "on": 80}}}, ["n1"], ["n1"])
    {'ResumeTimeout': 220, 'SuspendTimeout': 60}
    >>> power_timeouts({"n1": {"power": {"off": 200, "on": 500}}, "n2": {}}, ["n1", "n2"], ["n1", "n2"])
    {'ResumeTimeout': 1060, 'SuspendTimeout': 330}
    """
    return dict(
        power_times.timeouts(
            *(
                [(hardware.get(name) or {}).get("power", {}).get(key) for name in names]
                for key, names in (("on", workers), ("off", sleepers))
            )
        )
    )


def power_watts(names: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return power_watts of the machines that have it."""
    found = ((name, hostvars[name].get("power_watts")) for name in names)
    return {name: float(watts) for name, watts in found if watts}


def standalone_program(module: str) -> str:
    """Return a program that calls `main` of a module below module_utils/slurmstead, and needs nothing but Python."""
    return f"#!{remote_call.COMMAND.removesuffix(' -')}\n{remote_call.program(module, 'main', {})}"


def router_hosts(names: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return name, address and MAC of the nodes that have an address; a MAC may be empty."""
    found = ((name, hostvars[name]) for name in names)
    return [
        {"name": name, "address": own["os_address"], "mac": str(own.get("router_mac") or "")}
        for name, own in found
        if own.get("os_address")
    ]


def router_table(options: Mapping[str, Any]) -> str:
    """Return the router's nftables table; empty without a network."""
    return str(network_table.text(network_plan.inside(options))) if options["network"] else ""


def router_dnsmasq(options: Mapping[str, Any]) -> str:
    """Return the router's configuration of dnsmasq; empty without a network."""
    return str(network_dnsmasq.text(network_plan.inside(options))) if options["network"] else ""


def install_machine(node: str, hostvars: Mapping[str, Mapping[str, Any]], control: str) -> dict[str, Any]:
    """Return the machine to be installed as plan.Plan describes it.

    :raises AnsibleFilterError: a variable is missing
    """
    if not node:
        return {}
    own, router = hostvars[node], hostvars[control]
    missing = [name for name in ("os_address", "router_mac", "bootstrap_authorized_keys") if not own.get(name)]
    missing += [f"{name} of {control}" for name in ("router_interface", "router_network") if not router.get(name)]
    if missing:
        raise AnsibleFilterError(f"{node} cannot be installed over the network without {', '.join(missing)}")
    return {
        "node": node,
        "mac": str(own["router_mac"]),
        "address": own["os_address"],
        "network": router["router_network"],
        "router": router["os_address"],
        "domain": router.get("router_domain", "cluster"),
        "user": own.get("bootstrap_user", "ansible"),
        "keys": list(own["bootstrap_authorized_keys"]),
        "serial": str(own.get("os_serial") or ""),
        "disk": str(own.get("install_disk") or ""),
    }


def vpn_peers(directory: str) -> list[dict[str, str]]:
    """Return the peers in vpn.yml of a directory."""
    try:
        found = vpn_peers_file.read(pathlib.Path(directory, vpn_peers_file.NAME))
    except vpn_peers_file.PeersError as error:
        raise AnsibleFilterError(str(error)) from error
    return [dataclasses.asdict(one) for one in found]


def vpn_conf(listed: Iterable[Mapping[str, str]], port: int) -> str:
    """Return what wg reads about the peers, without the private key."""
    return str(vpn_text.peers([vpn_peers_file.Peer(**one) for one in listed], port))


def remembered_hardware(directory: str, names: Iterable[str]) -> dict[str, Any]:
    """Return the recorded hardware of the nodes, one file each; nodes never measured are left out.

    :raises AnsibleFilterError: a file is not such a record
    """
    found = {}
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(path := f"{directory}/{name}.yml")
            found[name] = _record(path, status.st_mtime_ns, status.st_size)
    return {name: known for name, known in found.items() if known}


@functools.cache
def _record(path: str, _changed: int, _size: int) -> Any:
    """Return a record, read once by each process while it does not change."""
    try:
        return hardware_record.read(pathlib.Path(path))
    except hardware_record.RecordError as error:
        raise AnsibleFilterError(str(error)) from error


def credentials_to_decode(
    reader: str, control: str, names: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]], result: str
) -> dict[str, str]:
    """Return the credentials that a node decodes, by signer: control those of all, the others control's.

    Keys are symmetric, so this compares all keys. If control has no credential, the first node that has one takes its
    part. The credentials are in the results of doctor_facts that were registered as `result`. A node without one
    decodes none.
    """

    def signed(name: str) -> str:
        facts = hostvars[name].get(result, {}).get("facts", {}) if name in hostvars else {}
        return facts.get("credential", {}).get("text") or ""

    order = [control, *(name for name in names if name != control)]
    center = next((name for name in order if signed(name)), None)
    if center is None or not signed(reader):
        return {}
    return {name: text for name in (order if reader == center else [center]) if (text := signed(name))}


def problem_lines(names: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]], results: Iterable[str]) -> list[str]:
    """Return a line for each problem that was found on the nodes, with the name of the node.

    `results` are the names under which the results were registered; a node without such a result was not checked. A
    disk that two of them use (`devices` of local_volume) is a problem too, because it can have two names.

    >>> problem_lines(["node1", "node2"], {"node1": {"disks": {"problems": ["not blank"]}}, "node2": {}}, ["disks"])
    ['node1: not blank']
    >>> found = {"scratch": {"devices": {"8:0": "ata-A"}}, "share": {"devices": {"8:0": "wwn-1"}}}
    >>> problem_lines(["node1"], {"node1": found}, ["scratch", "share"])
    ['node1: expected each disk once, but ata-A and wwn-1 are the same disk: remove one of the two names']
    """
    registered = list(results)
    lines = []
    for name in names:
        used: dict[str, str] = {}
        for seen in (hostvars[name].get(result, {}) for result in registered):
            lines += [f"{name}: {problem}" for problem in seen.get("problems", [])]
            for number, disk in seen.get("devices", {}).items():
                if number in used:
                    same = f"{used[number]} and {disk} are the same disk"
                    lines.append(f"{name}: expected each disk once, but {same}: remove one of the two names")
                used[number] = disk
    return lines


def version_problems(names: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]], control: str) -> list[str]:
    """Return a line for each node whose Slurm is incompatible with the control node's, from the facts of machine_state.

    >>> facts = {"node1": {"ansible_facts": {"slurm_version": "22.05"}}, "node2": {}, "node3": {}}
    >>> version_problems(["node1", "node2"], facts, "node3")
    []
    >>> facts["node3"] = {"ansible_facts": {"slurm_version": "24.11"}}
    >>> [line.partition(":")[0] for line in version_problems(["node1", "node2"], facts, "node3")]
    ['node1']
    """
    heard = [name for name in dict.fromkeys([*names, control]) if name in hostvars]
    versions = {name: (hostvars[name].get("ansible_facts") or {}).get("slurm_version") for name in heard}
    problems: list[str] = slurm_versions.mixture_problems(control, versions)
    return problems


def with_fact(names: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]], fact: str) -> list[str]:
    """Return the hosts with a fact that is true, see machine_state.

    >>> with_fact(["n1", "n2"], {"n1": {}, "n2": {"ansible_facts": {"vpn_exists": True}}}, "vpn_exists")
    ['n2']
    """
    return [name for name in names if hostvars[name].get("ansible_facts", {}).get(fact)]


def queue_problems(
    names: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]], control: str, recorded: Iterable[str]
) -> list[str]:
    """Return why a new slurmctld would end jobs: workers register with it, and it has no queue that knows them.

    :param recorded: the workers that an earlier run has measured; jobs may run on those that were not asked

    >>> seen = {"node1": {"has_queue": False, "jobs": []}, "node2": {"has_queue": False, "jobs": ["7", "12"]}}
    >>> facts = {name: {"__machine_check_state": state} for name, state in seen.items()}
    >>> [line.partition(";")[0] for line in queue_problems(["node1", "node2"], facts, "node1", ["node2"])]
    ['node1: it has no queue, but jobs 7, 12 run on node2']
    >>> [line.partition(",")[0] for line in queue_problems(["node1"], facts, "node1", ["node2"])]
    ['node1: it has no queue']
    """
    states = {name: hostvars[name].get("__machine_check_state", {}) for name in names}
    if states.get(control, {}).get("has_queue", True):
        return []
    jobs = sorted({job for state in states.values() for job in state.get("jobs", ())}, key=int)
    nodes = hostlist.compress(name for name, state in states.items() if state.get("jobs"))
    advice = "a new slurmctld would end them. Restore a backup (docs/backup-and-key.md)"
    if jobs:
        seen = f"{control}: it has no queue, but jobs {', '.join(jobs)} run on {nodes}"
        return [f"{seen}; {advice}, or wait until they have ended"]
    if unasked := hostlist.compress(name for name in recorded if not states.get(name)):
        seen = f"{control}: it has no queue, and jobs may run on {unasked}, which this run did not reach"
        return [f"{seen}; {advice}, or include it in the run; if it runs no jobs, remove its record from hardware/"]
    return []


def share_problems(
    names: Iterable[str],
    hostvars: Mapping[str, Mapping[str, Any]],
    wanted: Mapping[str, Any],
    addresses: Mapping[str, str],
) -> list[str]:
    """Return why the run would replace the share of the cluster, from the results of machine_state.

    `wanted` is the share in the inventory, see storage/share.py; none is checked if it is empty.
    """
    problems: list[str] = share.problems(_shares(names, hostvars), wanted, addresses) if wanted else []
    return problems


def share_plan(
    names: Iterable[str],
    hostvars: Mapping[str, Mapping[str, Any]],
    wanted: Mapping[str, Any],
    addresses: Mapping[str, str],
    leave: bool,
) -> dict[str, Any]:
    """Return how the share gets to its place in the inventory, see storage/share.py."""
    plan: dict[str, Any] = share.plan(_shares(names, hostvars), wanted, addresses, leave)
    return plan


def _shares(names: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the nodes have of a share, by machine_state; unreachable nodes are missing."""
    states = {name: hostvars[name].get("__machine_check_state", {}).get("share") for name in names}
    return {name: state for name, state in states.items() if state}


def upgrade_problems(
    names: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]], control: str, live: Mapping[str, Any]
) -> list[str]:
    """Return a line for each machine whose Slurm would be incompatible with slurmctld during an upgrade.

    The hosts registered package_upgrade's plan as __upgrade_plan; `live` is the result of cluster_versions.

    >>> plans = {"node1": {"__upgrade_plan": {"versions": {"slurmd": "23.11.4-1"}}}}
    >>> live = {"controller": "22.05.8", "nodes": {"node1": "22.05.8"}}
    >>> [line.partition(",")[0] for line in upgrade_problems(["node1"], plans, "node3", live)]
    ['node1: would get Slurm 23.11']
    """
    versions = {name: hostvars[name]["__upgrade_plan"]["versions"] for name in names}
    after = {
        name: found.get("slurmctld" if name == control else "slurmd") or found.get("slurm-client")
        for name, found in versions.items()
    }
    known = {name: version for name, version in after.items() if version}
    problems: list[str] = upgrade_order.problems(control, live["controller"], live["nodes"], known)
    return problems


def slurmd_parameters(
    hardware: Mapping[str, Any],
    names: Iterable[str],
    config_overrides: bool | None = None,
    config: Mapping[str, Any] | None = None,
    by_kind: bool = False,
) -> str | None:
    """Return the SlurmdParameters that the nodes need, or None.

    Shows the warnings, unless the operator's slurm_config (`config`) already sets what they ask for.
    """
    words, warnings = parameters.slurmd_parameters(hardware, names, config_overrides, by_kind)
    for warning in [] if {"SlurmdParameters", "TaskPlugin"} & set(config or {}) else warnings:
        Display().warning(warning)
    return ",".join(words) or None


def role_packages(roles: Iterable[str]) -> list[str]:
    """Return the Debian packages that roles need, from their vars/packages.yml."""
    lists = [yaml.safe_load((ROLES / role / "vars/packages.yml").read_text()) for role in roles]
    return sorted({package for variables in lists for packages in variables.values() for package in packages})


def refusing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter whose errors Ansible shows with their own text only."""

    def wrapped(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except slurm_nodes.NodeError as error:
            raise AnsibleFilterError(str(error)) from error

    return wrapped


class FilterModule:
    """The filters of this repository."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return filter by name."""
        return {
            "broker_accounts": people_accounts.broker_accounts,
            "credentials_to_decode": credentials_to_decode,
            "files_directory": files_directory,
            "gres_lines": core_gres.gres_lines,
            "gres_is_enforced": core_gres.enforced,
            "hardware_report": hardware_report.cluster_report,
            "measured_on": hardware_report.measured_on,
            "memory_per_cpu": refusing(slurm_nodes.memory_per_cpu),
            "mount_unit": units.escape,
            "nfsd_threads": nfs.threads,
            "node_addresses": node_addresses,
            "partitions": refusing(partitions),
            "notebook_profiles": notebook_profiles,
            "people": people,
            "power_machines": power_machines,
            "problem_lines": problem_lines,
            "programs": programs,
            "node_lines": refusing(slurm_nodes.node_lines),
            "queue_problems": queue_problems,
            "quiet_nodes": quiet_nodes,
            "install_machine": install_machine,
            "remembered_hardware": remembered_hardware,
            "health_check_interval": conf_size.health_check_interval,
            "scheduler_parameters": conf_size.scheduler_parameters,
            "tree_width": conf_size.tree_width,
            "power_sleepers": power_sleepers,
            "power_timeouts": power_timeouts,
            "power_watts": power_watts,
            "power_weights": power_weights,
            "role_packages": role_packages,
            "router_dnsmasq": router_dnsmasq,
            "router_hosts": router_hosts,
            "router_table": router_table,
            "share_config": share_config,
            "share_people": people_accounts.share_people,
            "keep_cores": slurm_nodes.keep_cores,
            "slurm_keys": slurm_conf.slurm_keys,
            "slurm_lines": slurm_conf.slurm_lines,
            "slurmd_parameters": slurmd_parameters,
            "standalone_program": standalone_program,
            "system_cores": system_cores,
            "upgrade_problems": upgrade_problems,
            "share_plan": share_plan,
            "share_problems": share_problems,
            "version_problems": version_problems,
            "vpn_address": vpn_text.own_address,
            "vpn_conf": vpn_conf,
            "vpn_peers": vpn_peers,
            "vpn_table": vpn_text.table,
            "with_fact": with_fact,
        }
