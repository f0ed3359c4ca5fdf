# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for the hub of notebooks."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.slurmstead.conf.partitions import (
    MAIN,
    QUIET,
    default_names,
    has_own_quiet,
    names,
    partitions,
)
from ansible.module_utils.slurmstead.inventory.model import HostViolation, Violation, did_you_mean, shown
from ansible.module_utils.slurmstead.inventory.relations.addresses import HOST_NAME
from ansible.module_utils.slurmstead.inventory.relations.firewall import wrong_ports
from ansible.module_utils.slurmstead.jupyterhub import profiles

TAKEN = {
    **{22: "sshd's", 2049: "the NFS server's", 6817: "slurmctld's", 6818: "slurmd's", 6819: "slurmdbd's"},
    **{401: "the proxy's own", 481: "the hub's own"},
}
KEYS = ("cpus", "memory", "time", "partition", "gpus", "description", "options")
PATTERNS = {
    "memory": (profiles.MEMORY, "Write it as in 4G"),
    "time": (profiles.TIME, 'Write it as in "8:00:00" or "1-12"'),
    "partition": (re.compile(r"[\w.,-]+"), "Name a partition of Slurm"),
}

PARTITION = "--partition="
"""The option of sbatch(1) in a profile's `options`."""


def hub_port_is_free(jupyterhub_enabled: bool, jupyterhub_port: int) -> Iterator[Violation]:
    """The port of HTTPS is not one that hub and proxy use themselves."""
    if not jupyterhub_enabled:
        return
    if jupyterhub_port > 1023:
        wrong = f"is {jupyterhub_port}, where any user of control could listen for passwords while the proxy is down"
        yield "jupyterhub_port", wrong, "Write a port below 1024, such as 443"
    else:
        yield from wrong_ports("jupyterhub_port", [jupyterhub_port])
    if jupyterhub_port in TAKEN:
        yield "jupyterhub_port", f"is {jupyterhub_port}, which is {TAKEN[jupyterhub_port]} port", "Choose another one"


def hub_certificate_has_a_key(jupyterhub_certificate: str, jupyterhub_key: str) -> Iterator[Violation]:
    """A certificate needs its key; both are files of control."""
    given = {"jupyterhub_certificate": jupyterhub_certificate, "jupyterhub_key": jupyterhub_key}
    for name, path in given.items():
        other = next(one for one in given if one != name)
        if not path and given[other]:
            yield name, f"is empty, but {other} is set", f"Set both, or delete {other}"
        elif path and not path.startswith("/"):
            yield name, f"is {shown(path)}, which is not an absolute path", "Write the path of the file on control"


def hub_names_are_names(jupyterhub_names: Sequence[str]) -> Iterator[Violation]:
    """A certificate has host names and addresses."""
    for name in jupyterhub_names:
        try:
            ipaddress.ip_address(name)
        except ValueError:
            if not HOST_NAME.fullmatch(name):
                yield (
                    "jupyterhub_names",
                    f"has {shown(name)}, which is not a name of a host",
                    "Write no scheme and no port",
                )


def hub_minutes_are_possible(jupyterhub_idle_minutes: int, jupyterhub_start_minutes: int) -> Iterator[Violation]:
    """Times are not negative, and a job needs a moment to start."""
    if jupyterhub_idle_minutes < 0:
        yield "jupyterhub_idle_minutes", f"is {jupyterhub_idle_minutes}", "Write minutes, or 0 to end no notebook"
    if jupyterhub_start_minutes < 1:
        yield "jupyterhub_start_minutes", f"is {jupyterhub_start_minutes}", "Write at least 1"


def notebooks_are_on_the_share(
    jupyterhub_enabled: bool, jupyterhub_kernel_directory: str, nfs_client_path: str
) -> Iterator[Violation]:
    """Workers find the packages of notebooks on the share."""
    if jupyterhub_enabled and not f"{jupyterhub_kernel_directory}/".startswith(f"{nfs_client_path.rstrip('/')}/"):
        yield (
            "jupyterhub_kernel_directory",
            f"is {jupyterhub_kernel_directory}, which is not on the share",
            f"Choose a directory below {nfs_client_path}",
        )


def profiles_are_possible(jupyterhub_profiles: Mapping[str, Any]) -> Iterator[Violation]:
    """Each profile has a name, known keys, and words that sbatch takes as they are."""
    if not jupyterhub_profiles:
        yield "jupyterhub_profiles", "is empty", "Declare one profile or more, or delete the variable"
    for name, profile in jupyterhub_profiles.items():
        if not profiles.NAME.fullmatch(str(name)):
            advice = "Begin with a small letter; small letters, digits, _ and - may follow"
            yield "jupyterhub_profiles", f"has {shown(name)}, which cannot be the name of a profile", advice
        if not isinstance(profile, Mapping):
            yield "jupyterhub_profiles", f"has {name}, which is not a mapping", "Write it as in {cpus: 1}"
            continue
        for wrong, advice in _wrong_values(profile):
            yield "jupyterhub_profiles", f"has {name} with {wrong}", advice


def profiles_have_partitions(
    jupyterhub_profiles: Mapping[str, Any], slurm_partitions: Mapping[str, Any]
) -> Iterator[Violation]:
    """A notebook starts in a partition that exists, or in one of several."""
    known = names(slurm_partitions)
    for name, profile in jupyterhub_profiles.items():
        for unknown in [one for one in _partitions(profile) if one not in known]:
            yield (
                "jupyterhub_profiles",
                f"has {name} with the partition {shown(unknown)}, which does not exist",
                did_you_mean(unknown, known, f"Write one of {', '.join(known)}"),
            )


def profiles_need_no_image(
    jupyterhub_enabled: Mapping[str, bool],
    jupyterhub_profiles: Mapping[str, Mapping[str, Any]],
    sandbox_enabled: Mapping[str, bool],
    sandbox_partitions: Mapping[str, Sequence[str]],
    slurm_partitions: Mapping[str, Mapping[str, Any]],
    slurm_quiet: Mapping[str, bool],
    worker_names: Sequence[str],
    control_names: Sequence[str],
) -> Iterator[HostViolation]:
    """A notebook is not in an image, so slurmctld would refuse it where an image is demanded."""
    for control in control_names[:1]:
        if not jupyterhub_enabled.get(control) or not sandbox_enabled.get(control):
            continue
        # Where all workers are quiet, so is the default partition.
        own = {
            name: keys if isinstance(keys, Mapping) else {} for name, keys in slurm_partitions.get(control, {}).items()
        }
        quiet = [name for name in worker_names if slurm_quiet.get(name)]
        default = default_names(partitions(own, {MAIN: {"Default": True}}, quiet, worker_names))
        for name, profile in jupyterhub_profiles.get(control, {}).items():
            for partition in _partitions(profile) or default[-1:]:
                if partition in sandbox_partitions.get(control, ()):
                    yield (
                        (control,),
                        "jupyterhub_profiles",
                        f"has {name} with the partition {partition}, which is in sandbox_partitions",
                        "Choose a partition that demands no image",
                    )


def profiles_have_quiet_nodes(
    jupyterhub_enabled: Mapping[str, bool],
    jupyterhub_profiles: Mapping[str, Mapping[str, Any]],
    slurm_quiet: Mapping[str, bool],
    slurm_partitions: Mapping[str, Mapping[str, Any]],
    control_names: Sequence[str],
) -> Iterator[HostViolation]:
    """Without quiet nodes there is no partition `quiet`, unless the site has its own."""
    for control in control_names[:1]:
        if (
            any(slurm_quiet.values())
            or has_own_quiet(slurm_partitions.get(control, {}))
            or not jupyterhub_enabled.get(control)
        ):
            continue
        for name, profile in jupyterhub_profiles.get(control, {}).items():
            if QUIET in _partitions(profile):
                wrong = f"has {name} with the partition {QUIET}, but no worker is quiet"
                yield (
                    (control,),
                    "jupyterhub_profiles",
                    wrong,
                    "Set slurm_quiet for a worker, or name another partition",
                )


def _partitions(profile: Any) -> list[str]:
    """Return the partitions in which a notebook may start, if its profile names any."""
    if not isinstance(profile, Mapping):
        return []
    options = profile.get("options")
    words = [str(word) for word in options] if isinstance(options, list) else []
    named = [word.removeprefix(PARTITION) for word in words if word.startswith(PARTITION)]
    named.append(str(profile.get("partition") or ""))
    return [one for text in named for one in text.split(",") if one]


def _wrong_values(profile: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in profile.items():
        if key not in KEYS:
            yield f"the unknown key {shown(key)}", did_you_mean(str(key), KEYS, f"Keys are {', '.join(KEYS)}")
        elif key in ("cpus", "gpus") and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            yield f"{key} {shown(value)}", "Write a number, at least 1"
        elif key == "time" and isinstance(value, int):
            yield f"time {value}, because YAML reads 8:00:00 as a number", 'Write it in quotes, as in "8:00:00"'
        elif key in PATTERNS and not PATTERNS[key][0].fullmatch(str(value)):
            yield f"{key} {shown(value)}", PATTERNS[key][1]
        elif key == "options":
            yield from _wrong_options(value)


def _wrong_options(options: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(options, list):
        yield f"options {shown(options)}", "Write a list, as in [--exclusive]"
        return
    for word in options:
        if not isinstance(word, str) or not profiles.WORD.fullmatch(word):
            yield (
                f"the option {shown(word)}",
                "Write a long option of sbatch, as in --qos=low, without spaces and quotes",
            )
        elif word.partition("=")[0] in profiles.SET_BY_HUB:
            yield f"the option {shown(word)}", "Remove it, because the hub sets it"
