# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""All facts of a machine that the doctor needs, collected at once."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from pathlib import Path
from typing import Any

from ansible.module_utils.slurmstead.doctor.facts import accounting, jobs, machine, network, people, services, slurm
from ansible.module_utils.slurmstead.hardware.kernel_files import cgroup
from ansible.module_utils.slurmstead.identity.credentials import sign

CPUS = len(os.sched_getaffinity(0))

PMIX = ("/usr/lib/*/libpmix.so.2*", "/usr/lib/*/pmix*/lib/libpmix.so.2*")
"""Where Debian and Ubuntu install the library that Slurm's plugin mpi/pmix loads."""


def text(path: Path) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""


def credential() -> dict[str, str]:
    """Return a credential that this machine created as the user nobody, or the `error`."""
    try:
        signed = sign()
    except (OSError, subprocess.SubprocessError) as error:
        return {"error": str(error)}
    return {"error": signed.stderr.strip() if signed.returncode else "", "text": signed.stdout.strip()}


def collect(
    names: Mapping[str, str],
    units: Sequence[str],
    paths: Mapping[str, bool],
    ports: Mapping[str, Sequence[int]],
    homes: Sequence[str],
    salt: str,
    peers: Mapping[str, Sequence[int]],
) -> dict[str, Any]:
    """Return the facts, as the modules of this package describe them.

    :param names: addresses of the machines that it must be able to resolve, by name
    :param units: units that must run, without `.service`
    :param paths: by directory: whether a separate file system must be mounted there
    :param ports: ports that may be open, for `tcp` and `udp`
    :param homes: directory of the homes on the share, and the same where this machine stores it (empty on the others)
    :param salt: salt of the MUNGE key's digest
    :param peers: TCP ports of other machines that it must reach, by name of machine
    """
    release = platform.freedesktop_os_release()
    looks: dict[str, Callable[[], Any]] = {
        # The slowest first, so that none runs alone at the end.
        "slurm": lambda: slurm.look(units),
        "credential": credential,
        "accounting": lambda: accounting.look(units),
        "paths": lambda: machine.paths(list(paths)),
        "units": lambda: services.units(units),
        "failed": services.failed_units,
        "packages": services.packages,
        "tables": services.tables,
        "listening": services.listening,
        "udp": lambda: services.listening("udp"),
        "unreached": lambda: network.unreached(peers),
        "mtus": network.mtus,
        "swap": lambda: machine.swap_used(Path("/proc/meminfo").read_text()),
        "exports": lambda: machine.exports(text(Path("/var/lib/nfs/etab")) if "nfs-server" in units else ""),
        "steps": lambda: jobs.here() if "slurmd" in units else {},
        "pmix": lambda: any(glob(pattern) for pattern in PMIX),
        "clock": machine.clock,
        "addresses": machine.addresses,
        "misresolved": lambda: machine.misresolved(names),
        "accounts": machine.accounts,
        "groups": machine.groups,
        "people": lambda: people.look(*homes),
        "key": lambda: machine.key(salt),
        "cgroup": lambda: cgroup(Path("/")),
    }
    facts = {
        "time": time.time(),
        "wanted": {"units": units, "paths": paths, "ports": ports},
        "release": f"{release.get('ID')} {release.get('VERSION_ID')}",
        "name": os.uname().nodename,
    }
    # Most of the time is spent in other programs.
    with ThreadPoolExecutor(CPUS) as pool:
        answers = {about: pool.submit(look) for about, look in looks.items()}
    return facts | {about: answer.result() for about, answer in answers.items()}
