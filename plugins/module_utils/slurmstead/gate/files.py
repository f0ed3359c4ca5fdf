# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What the gated slurmctld reads: the new files, with nothing in them that reaches out of the gate. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.conf.lines import PAIR, without_comment

REPLACED = {
    "AuthType": "auth/none",
    "CredType": "cred/none",
    "LogTimeFormat": None,
    "SlurmctldDebug": "info",
    "SlurmctldLogFile": "/dev/null",
    "SlurmctldPidFile": "{directory}/slurmctld.pid",
    "SlurmctldSyslogDebug": "quiet",
    "StateSaveLocation": "{directory}/state",
}
"""Keys that the gate has values of its own for; a key without one is left out. Its log is what it prints."""

LEFT_OUT = frozenset(
    {
        *("authaltparameters", "authalttypes", "authinfo", "cryptotype"),
        # They write to files, or to servers.
        *("jobcomphost", "jobcomploc", "jobcompparams", "jobcomppass", "jobcompport", "jobcomptype", "jobcompuser"),
        *("slurmschedlogfile", "slurmschedloglevel"),
    }
)

PROGRAMS = frozenset(
    {
        *("epilogslurmctld", "mailprog", "prologslurmctld", "rebootprogram", "resumefailprogram", "resumeprogram"),
        *("resvepilog", "resvprolog", "slurmctldprimaryoffprog", "slurmctldprimaryonprog", "suspendprogram"),
    }
)
"""Programs that slurmctld runs: in the gate each is one that does nothing."""

HARMLESS = "/bin/true"


def gated(text: str, directory: str) -> str:
    """Return slurm.conf as the gated slurmctld reads it; every line stays on its number.

    >>> print(gated("AuthType=auth/munge ClusterName=a\\nMailProg=/usr/bin/mail", "/g").splitlines()[:2])
    [' ClusterName=a', 'MailProg=/bin/true']
    """
    replaced = {key.lower() for key in REPLACED} | LEFT_OUT
    lines = []
    for line in text.splitlines():
        said = without_comment(line)
        continued = "\\" if said.rstrip().endswith("\\") else ""
        kept, position, changed = "", 0, False
        said = said.rstrip().removesuffix("\\")
        while match := PAIR.match(said, position):
            name = match[1].lower()
            if name in replaced:
                changed = True
            elif name in PROGRAMS:
                kept, changed = f"{kept}{said[position : match.start(1)]}{match[1]}={HARMLESS}", True
            else:
                kept += match[0]
            position = match.end()
        lines.append(f"{kept}{said[position:]}{continued}" if changed else line)
    own = [f"{key}={value.format(directory=directory)}" for key, value in REPLACED.items() if value]
    return "\n".join([*lines, *own, ""])


def addresses(files: Mapping[str, str]) -> list[str]:
    """Return the addresses in parentheses of SlurmctldHost, which the gate's own network has to have.

    >>> addresses({"slurm.conf": "SlurmctldHost=node3(192.168.1.103)"})
    ['192.168.1.103']
    """
    return re.findall(r"\(([^()\s]+)\)", conf_model.read(files.get("slurm.conf", "")).value("SlurmctldHost"))


def port(files: Mapping[str, str]) -> int:
    """Return the first port that slurmctld listens on; 6817 if it is not a port.

    >>> port({"slurm.conf": "SlurmctldPort=7000-7001"})
    7000
    """
    value = conf_model.read(files.get("slurm.conf", "")).value("SlurmctldPort", "6817").partition("-")[0]
    return int(value) if value.isdigit() and int(value) < 65536 else 6817
