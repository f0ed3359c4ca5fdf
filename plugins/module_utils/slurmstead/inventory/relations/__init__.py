# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules between the values of an inventory: one small function for each, listed in RELATIONS and CLUSTER_RELATIONS.

A function in RELATIONS sees one host. Its parameters *are* the variables that it needs, by name; further possible
parameters are:

- control_names, nfs_server_names, worker_names, login_names: the hosts of these groups
- slurm_version: as in conf.keys.VERSIONS, or None if unknown before the machine is reached

It yields a Violation for each mistake. It runs once for each distinct set of values, not for each host, and not at all
if one of its variables is unset or has a wrong type (another check reports that).

A function in CLUSTER_RELATIONS compares hosts: each of its parameters is a variable's values by host, or one of the
first four of these lists. Variables that must be the same on all hosts are listed in cluster.CLUSTER_WIDE.

To add a rule, write the function, add it to the tuple, and add a case that makes it fire to
tests/unit/inventory/test_relations.py.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ansible.module_utils.slurmstead.conf import keys as conf_keys
from ansible.module_utils.slurmstead.inventory.model import Groups, HostViolation, Problem, Violation
from ansible.module_utils.slurmstead.inventory.relations import (
    accounts,
    addresses,
    cluster,
    discover,
    engines,
    firewall,
    install,
    jupyterhub,
    lab,
    login,
    network,
    packages,
    power,
    quiet,
    sandbox,
    shares,
    slurm,
    storage,
    vpn,
)
from ansible.module_utils.slurmstead.inventory.structure import LOGIN
from ansible.module_utils.slurmstead.inventory.variables import Checked

RELATIONS: tuple[Callable[..., Iterator[Violation]], ...] = (
    addresses.address_is_usable,
    discover.host_keys_are_fingerprints,
    accounts.user_names_are_valid,
    accounts.user_names_and_ids_differ,
    accounts.user_ids_are_free,
    accounts.group_names_are_valid,
    accounts.group_names_and_ids_differ,
    accounts.group_ids_are_free,
    accounts.groups_of_users_exist,
    accounts.groups_of_their_own_are_free,
    accounts.accounts_by_hand_are_others,
    accounts.users_are_not_ansible,
    accounts.the_first_account_can_become_root,
    accounts.keys_are_public_keys,
    accounts.expiry_dates_are_dates,
    accounts.comments_and_shells_are_possible,
    storage.scratch_disks_have_stable_names,
    storage.nfs_server_disks_have_stable_names,
    storage.nfs_server_size_is_a_size,
    storage.disks_are_used_once,
    storage.paths_are_apart,
    storage.volume_groups_are_apart,
    storage.homes_are_on_the_share,
    slurm.cluster_name_is_valid,
    slurm.config_has_known_keys,
    slurm.workers_can_fetch_the_configuration,
    slurm.a_job_without_its_profile_drains_no_node,
    slurm.cgroup_config_has_known_keys,
    slurm.nodes_are_workers_with_known_keys,
    slurm.partitions_are_valid,
    slurm.one_partition_is_the_default,
    engines.broker_users_are_named_once,
    engines.broker_limits_are_possible,
    engines.julia_archives_are_known,
    engines.julia_is_on_the_share,
    firewall.ssh_comes_from_networks,
    firewall.tcp_ports_are_possible,
    firewall.udp_ports_are_possible,
    firewall.interfaces_have_possible_names,
    firewall.deadline_is_sufficient,
    jupyterhub.hub_port_is_free,
    jupyterhub.hub_certificate_has_a_key,
    jupyterhub.hub_names_are_names,
    jupyterhub.hub_minutes_are_possible,
    jupyterhub.notebooks_are_on_the_share,
    jupyterhub.profiles_are_possible,
    jupyterhub.profiles_have_partitions,
    login.deadline_leaves_time_to_answer,
    login.memory_is_a_size,
    login.cpus_are_possible,
    login.jobs_contain_their_processes,
    power.power_has_an_address,
    power.power_has_credentials,
    power.power_slot_exists,
    power.power_card_is_known,
    power.power_broadcast_is_an_address,
    power.power_plug_has_a_kind,
    power.power_commands_are_complete,
    power.power_certificate_is_a_hash,
    power.power_idle_is_a_time,
    power.power_figures_are_possible,
    network.the_inside_is_a_network,
    network.the_inside_has_names,
    network.the_pool_is_inside,
    network.the_bmcs_are_apart,
    network.macs_are_macs,
    quiet.quiet_units_are_possible,
    sandbox.sandbox_paths_can_be_shown,
    sandbox.sandbox_images_have_names,
    sandbox.sandbox_processes_are_possible,
    sandbox.sandboxes_are_demanded_where_they_are,
    install.install_disks_have_stable_names,
    vpn.the_vpn_has_a_network_of_its_own,
    vpn.vpn_ports_are_possible,
    vpn.the_vpn_is_reached_somewhere,
    shares.share_accounts_are_possible,
    shares.share_users_are_possible,
    shares.share_qos_are_possible,
    shares.removed_users_are_no_people,
    shares.half_life_is_a_time,
    shares.limits_need_accounts,
    shares.own_slurmdbd_has_its_port,
    packages.package_names_are_possible,
    lab.machines_are_possible,
    lab.name_is_a_file_name,
    lab.disks_are_distinct,
)

CLUSTER_RELATIONS: tuple[Callable[..., Iterator[HostViolation]], ...] = (
    addresses.addresses_differ,
    addresses.connections_differ,
    discover.identities_differ,
    jupyterhub.profiles_have_quiet_nodes,
    jupyterhub.profiles_need_no_image,
    network.macs_differ,
    network.macs_are_inside,
    network.the_pool_is_free,
    lab.numbers_differ,
    power.devices_differ,
    power.only_workers_sleep,
    quiet.quiet_nodes_are_only_workers,
    quiet.quiet_nodes_are_shared_by_name_only,
    quiet.system_cores_are_a_number_of_cores,
    slurm.devices_have_no_core_gres,
    cluster.clients_look_where_the_share_is,
    storage.disks_are_of_one_machine,
)

CONTEXT = ("control_names", "nfs_server_names", "worker_names", "login_names", "slurm_version")

Values = Mapping[str, Mapping[str, Any]]
"""Values by host and variable."""


def problems(checked: Checked, groups: Groups) -> Iterator[Problem]:
    """All violations of all relations."""
    values = {host: checked.values(host) for host in checked.inventory.hosts}
    members = checked.inventory.groups
    context = {
        "control_names": sorted(members.get(groups.control, ())),
        "nfs_server_names": sorted(members.get(groups.nfs_server, ())),
        "worker_names": sorted(members.get(groups.workers, ())),
        "login_names": sorted(members.get(LOGIN, ())),
    }
    yield from _within_hosts(checked, values, context)
    for hosts, variable, wrong, advice in _across_hosts(values, context):
        yield checked.problem(variable, wrong, advice, hosts)


def _within_hosts(checked: Checked, values: Values, context: Mapping[str, Any]) -> Iterator[Problem]:
    found: dict[tuple[object, ...], list[Violation]] = {}
    for host, own in values.items():
        version = _slurm_version(checked, host)
        texts = {name: repr(value) for name, value in own.items()}
        known = {**own, **context, "slurm_version": version}
        for relation in RELATIONS:
            names = _parameters(relation)
            variables = [name for name in names if name not in CONTEXT]
            if any(name not in own for name in variables):
                continue
            key = (relation, version, *(texts[name] for name in variables))
            if key not in found:
                found[key] = list(relation(**{name: known[name] for name in names}))
            for variable, wrong, advice in found[key]:
                yield checked.problem(variable, wrong, advice, (host,))


def _across_hosts(values: Values, context: Mapping[str, Any]) -> Iterator[HostViolation]:
    for compare in (cluster.cluster_wide_values_are_the_same, cluster.settings_of_control_are_set_there):
        yield from compare(values, context["control_names"])
    for relation in CLUSTER_RELATIONS:
        by_host = {
            name: {host: own[name] for host, own in values.items() if own.get(name) is not None}
            for name in _parameters(relation)
        }
        yield from relation(**{name: context.get(name, by_host[name]) for name in by_host})


@functools.cache
def _parameters(relation: Callable[..., object]) -> tuple[str, ...]:
    return tuple(inspect.signature(relation).parameters)


def _slurm_version(checked: Checked, host: str) -> str | None:
    """The version that a lab machine will have; for other machines it is unknown until they are reached."""
    given = checked.inventory.hosts[host]
    if not any(name.startswith("lab_") for name in given):
        return None
    release = checked.values(host).get("lab_release")
    return conf_keys.VERSION_OF_RELEASE.get(str(release))
