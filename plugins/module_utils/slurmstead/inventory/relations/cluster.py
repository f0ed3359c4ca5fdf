# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for settings that all hosts of a cluster share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.slurmstead.inventory.model import HostViolation

CLUSTER_WIDE = (
    "accounting_enabled",
    "accounts_by_hand",
    "accounts_groups",
    "accounts_home_root",
    "accounts_users",
    "celery_broker_groups",
    "celery_broker_users",
    "julia_archives",
    "julia_directory",
    "jupyterhub_kernel_directory",
    "login_only_with_jobs",
    "nfs_client_path",
    "nfs_client_source",
    "sandbox_accounts",
    "sandbox_enabled",
    "sandbox_partitions",
    "scratch_path",
    "shares_accounts",
    "shares_half_life",
    "shares_low",
    "shares_qos",
    "shares_remove_accounts",
    "shares_remove_users",
    "shares_template",
    "shares_users",
    "slurm_cgroup_config",
    "slurm_cluster_name",
    "slurm_config",
    "slurm_config_overrides",
    "slurm_nodes",
    "slurm_partitions",
    "slurm_private_jobs",
)
"""Variables that describe the cluster, not a host. Set for the workers alone, slurm_partitions would have no effect."""


def cluster_wide_values_are_the_same(
    values: Mapping[str, Mapping[str, Any]], control_names: Sequence[str]
) -> Iterator[HostViolation]:
    """Variables that describe the cluster are equal on all hosts. `values` are by host and variable."""
    for control in control_names[:1]:
        for variable in CLUSTER_WIDE:
            if variable not in values[control]:
                continue
            wanted = values[control][variable]
            others = tuple(host for host, own in values.items() if own.get(variable, wanted) != wanted)
            if others:
                yield (
                    others,
                    variable,
                    f"is not the same as on {control}, but describes the whole cluster",
                    "Set it once, for all hosts",
                )


ON_CONTROL = (
    "jupyterhub_enabled",
    "package_cache_enabled",
    "power_keep",
    "power_price",
    "router_interface",
    "vpn_enabled",
)
"""Variables that are read on control, and are ignored elsewhere."""


def settings_of_control_are_set_there(
    values: Mapping[str, Mapping[str, Any]], control_names: Sequence[str]
) -> Iterator[HostViolation]:
    """What is read on control only is not set for another machine. `values` are by host and variable."""
    for control in control_names[:1]:
        for variable in ON_CONTROL:
            wanted = values[control].get(variable)
            others = tuple(host for host, own in values.items() if own.get(variable) not in (wanted, "", False, None))
            if others:
                yield others, variable, "is set, but only the value of control counts", f"Set it for {control} instead"


def clients_look_where_the_share_is(
    nfs_server_path: Mapping[str, str], nfs_client_source: Mapping[str, str], nfs_server_names: Sequence[str]
) -> Iterator[HostViolation]:
    """Clients mount the directory that the server exports."""
    for server in nfs_server_names[:1]:
        path = nfs_server_path.get(server)
        others = tuple(host for host, source in nfs_client_source.items() if path and source != path)
        if others:
            yield (
                others,
                "nfs_client_source",
                f"is {nfs_client_source[others[0]]}, but {server} has the share in its nfs_server_path, {path}",
                f"Set nfs_client_source to {path} for all hosts",
            )
