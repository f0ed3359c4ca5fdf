# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Everything on a machine that says whether its cluster is healthy, at once."""

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
    """Return a credential that this machine signed as the user nobody, or the `error` with which it did not."""
    try:
        signed = sign()
    except (OSError, subprocess.SubprocessError) as error:
        return {"error": str(error)}
    return {"error": signed.stderr.strip() if signed.returncode else "", "text": signed.stdout.strip()}


def collect(
    names: Sequence[str], units: Sequence[str], paths: Mapping[str, bool], ports: Sequence[int], salt: str
) -> dict[str, Any]:
    """Return what is seen, as the modules of this package describe it.

    :param names: of the machines that it has to know
    :param units: that have to run, without `.service`
    :param paths: whether a file system of its own has to be mounted there, by directory
    :param ports: TCP ports that are open on purpose
    :param salt: comes into the digest of the MUNGE key
    """
    release = platform.freedesktop_os_release()
    looks: dict[str, Callable[[], Any]] = {
        # The longest first, so that none is left alone in the end.
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
    # Most of the time is that of other programs.
    with ThreadPoolExecutor(CPUS) as pool:
        answers = {about: pool.submit(look) for about, look in looks.items()}
    return facts | {about: answer.result() for about, answer in answers.items()}
