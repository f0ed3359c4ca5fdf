# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What a job asks for, as `scontrol --oneliner show job` prints it.

scontrol of Debian 12 has no `--json`, so the text is read, whose keys are the same from 22.05 to 24.11.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible.module_utils.slurmstead.slurm.hostlist import expand

UNITS = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}

NOTHING = ("", "(null)", "N/A", "None", "Unknown")


@dataclass(frozen=True)
class Request:
    """A job with what it asks for. Memory is in MiB; 0 means all memory of a node."""

    number: str
    state: str
    user: str = ""
    task: str = ""
    """Number of the array, and its tasks: 3_1-3."""
    reason: str = ""
    partitions: tuple[str, ...] = ()
    priority: int = 0
    nodes: int = 1
    """Least number of nodes."""
    most_nodes: int | None = None
    cpus: int = 1
    cpus_per_node: int = 1
    memory_per_node: int = 0
    memory_per_cpu: int = 0
    gres: Mapping[str, int] = field(default_factory=dict)
    """Wanted count per node by name, core or core:fast."""
    features: str = ""
    limit: str = ""
    dependency: str = ""
    reservation: str = ""
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    on: str = ""
    begins: str = ""
    started: str = ""
    ended: str = ""
    exit_code: str = ""

    @property
    def cpus_here(self) -> int:
        """The CPUs that each of its nodes must have at least."""
        return max(self.cpus_per_node, self.cpus if self.most_nodes == 1 else 1)

    @property
    def memory_here(self) -> int:
        """The memory in MiB that each of its nodes must have at least."""
        return self.memory_per_node or self.memory_per_cpu * self.cpus_here


def read_requests(text: str) -> list[Request]:
    """Return the jobs in the output of `scontrol --oneliner show job`; an array has several.

    >>> shown = "JobId=7 JobName=a b UserId=ann(1) JobState=PENDING NumNodes=1-1 NumCPUs=4 MinCPUsNode=2"
    >>> [(job.number, job.user, job.cpus_here) for job in read_requests(shown + " Comment=NumCPUs=9")]
    [('7', 'ann', 4)]
    """
    return [_request(line) for line in text.splitlines() if line.startswith("JobId=") and " UserId=" in line]


def _request(line: str) -> Request:
    head, _, rest = line.partition(" UserId=")
    # Backwards, so that the first of two wins: the free texts, such as Command and Comment, are behind.
    words = [word.split("=", 1) for word in (*head.split(), *f"UserId={rest}".split()) if "=" in word]
    shown = {key: "" if value in NOTHING else value for key, value in reversed(words)}
    least, _, most = shown.get("NumNodes", "1").partition("-")
    array = shown.get("ArrayJobId", "")
    return Request(
        number=shown["JobId"],
        task=f"{array}_{shown.get('ArrayTaskId', '')}" if array else shown["JobId"],
        state=shown.get("JobState", ""),
        user=shown.get("UserId", "").partition("(")[0],
        reason=shown.get("Reason", ""),
        partitions=tuple(shown.get("Partition", "").split(",")),
        priority=int(shown.get("Priority") or 0),
        nodes=int(least or 1),
        most_nodes=int(most) if most else None,
        cpus=int(shown.get("NumCPUs", "1").partition("-")[0]),
        cpus_per_node=int(shown.get("MinCPUsNode") or 1),
        memory_per_node=mib(shown.get("MinMemoryNode", "")),
        memory_per_cpu=mib(shown.get("MinMemoryCPU", "")),
        gres=counts(shown.get("TresPerNode", "")),
        features=shown.get("Features", ""),
        limit=shown.get("TimeLimit", ""),
        dependency=shown.get("Dependency", ""),
        reservation=shown.get("Reservation", ""),
        required=tuple(expand(shown.get("ReqNodeList", ""))) if shown.get("ReqNodeList") else (),
        excluded=tuple(expand(shown.get("ExcNodeList", ""))) if shown.get("ExcNodeList") else (),
        on=shown.get("NodeList", ""),
        begins=shown.get("StartTime", ""),
        started=shown.get("StartTime", ""),
        ended=shown.get("EndTime", ""),
        exit_code=shown.get("ExitCode", ""),
    )


def mib(text: str) -> int:
    """Return an amount of memory in MiB.

    >>> mib("2G"), mib("1500M"), mib("")
    (2048, 1500, 0)
    """
    found = re.fullmatch(r"([0-9.]+)([KMGT]?)", text)
    return int(float(found[1]) * UNITS[found[2]]) if found else 0


def counts(text: str) -> dict[str, int]:
    """Return the counts of GRES by name, and by name and type, from a job's TresPerNode or a node's Gres.

    >>> counts("gres:core:fast:2"), counts("gres/gpu=1"), counts("core:fast:4(S:0),core:slow:4")
    ({'core:fast': 2}, {'gpu': 1}, {'core:fast': 4, 'core:slow': 4})
    """
    found: dict[str, int] = {}
    for word in re.sub(r"\([^)]*\)", "", text).split(","):
        name, _, number = re.sub(r"^gres[:/]", "", word).replace("=", ":").rpartition(":")
        if name and number.isdigit():
            found[name] = found.get(name, 0) + int(number)
        elif word:
            found[f"{name}:{number}".lstrip(":")] = 1
    return found
