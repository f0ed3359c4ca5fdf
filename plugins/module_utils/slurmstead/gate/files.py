# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The files for the gated slurmctld: the new files, without settings that act outside the gate. Pure functions."""

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
"""Keys that the gate overrides; a key without a value is removed. The gated slurmctld logs to its output."""

LEFT_OUT = frozenset(
    {
        *("authaltparameters", "authalttypes", "authinfo", "cryptotype"),
        # These write to files or servers.
        *("jobcomphost", "jobcomploc", "jobcompparams", "jobcomppass", "jobcompport", "jobcomptype", "jobcompuser"),
        *("slurmschedlogfile", "slurmschedloglevel"),
        # slurmdbd cannot be reached; without it, slurmctld refuses these.
        *("accountingstorageenforce", "accountingstoragehost", "accountingstoragetype", "priorityweightfairshare"),
    }
)

PROGRAMS = frozenset(
    {
        *("epilogslurmctld", "mailprog", "prologslurmctld", "rebootprogram", "resumefailprogram", "resumeprogram"),
        *("resvepilog", "resvprolog", "slurmctldprimaryoffprog", "slurmctldprimaryonprog", "suspendprogram"),
    }
)
"""Programs that slurmctld runs: in the gate, a program that does nothing replaces each."""

HARMLESS = "/bin/true"


def gated(text: str, directory: str) -> str:
    """Return slurm.conf for the gated slurmctld; every line keeps its number.

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
    """Return the addresses in parentheses of SlurmctldHost, which the gate's network must have.

    >>> addresses({"slurm.conf": "SlurmctldHost=node3(192.168.1.103)"})
    ['192.168.1.103']
    """
    return re.findall(r"\(([^()\s]+)\)", conf_model.read(files.get("slurm.conf", "")).value("SlurmctldHost"))


def port(files: Mapping[str, str]) -> int:
    """Return the first port of slurmctld; 6817 if the value is not a port.

    >>> port({"slurm.conf": "SlurmctldPort=7000-7001"})
    7000
    """
    value = conf_model.read(files.get("slurm.conf", "")).value("SlurmctldPort", "6817").partition("-")[0]
    return int(value) if value.isdigit() and int(value) < 65536 else 6817
