# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""All facts of a machine that the doctor needs, collected at once."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ansible.module_utils.slurmstead.doctor.facts import machine, services, slurm
from ansible.module_utils.slurmstead.hardware.kernel_files import cgroup
from ansible.module_utils.slurmstead.identity.credentials import sign

CPUS = len(os.sched_getaffinity(0))


def credential() -> dict[str, str]:
    """Return a credential that this machine created as the user nobody, or the `error`."""
    try:
        signed = sign()
    except (OSError, subprocess.SubprocessError) as error:
        return {"error": str(error)}
    return {"error": signed.stderr.strip() if signed.returncode else "", "text": signed.stdout.strip()}


def collect(
    names: Sequence[str], units: Sequence[str], paths: Mapping[str, bool], ports: Sequence[int], salt: str
) -> dict[str, Any]:
    """Return the facts, as the modules of this package describe them.

    :param names: names of the machines that it must be able to resolve
    :param units: units that must run, without `.service`
    :param paths: by directory: whether a separate file system must be mounted there
    :param ports: TCP ports that may be open
    :param salt: salt of the MUNGE key's digest
    """
    release = platform.freedesktop_os_release()
    looks: dict[str, Callable[[], Any]] = {
        # The slowest first, so that none runs alone at the end.
        "slurm": lambda: slurm.look(units),
        "credential": credential,
        "paths": lambda: machine.paths(list(paths)),
        "units": lambda: services.units(units),
        "failed": services.failed_units,
        "packages": services.packages,
        "listening": services.listening,
        "clock": machine.clock,
        "addresses": machine.addresses,
        "resolved": lambda: machine.resolved(names),
        "accounts": machine.accounts,
        "groups": machine.groups,
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
