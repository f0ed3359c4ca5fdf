# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Parsers for the output of scontrol."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

REASON = re.compile(r"(.*?) \[([^\s@\]]+)@([^\]]+)\]")
"""The reason of a node, its author and its time."""

REASON_SET = re.compile(r"slurmctld: update_node: node (\S+) reason set to: (.*)")
"""What slurmctld logs when a client gives a node a reason (node_mgr.c: update_node, 22.05 to 24.11)."""

OWN_LINES = re.compile(
    r"slurmctld: (update_node: |_slurm_rpc_|sched: |_job_complete: |(error: )?[Nn]odes? |node_did_resp: "
    r"|SchedulerParameters=default_queue_depth=)"
)
"""Beginnings of lines without texts of users, which could look like the reason of a node."""

SILENT = " : Not responding"
"""What slurmctld of 24.11 adds, in its own name, to the reason of a drained node that no longer answers."""

SIGNED = ("Reason", "ReasonSetByUser", "ReasonChangedAt")

PROMPT = "scontrol: "

STATE_FLAGS = "*~#!%$@^+-"
"""Characters that Slurm appends to the state of a node (sinfo(1), NODE STATE CODES)."""

LOADED = "loaded"
"""Name of a note: slurmctld's HASH_VAL when it was known to have loaded the files."""


def read_listpids(text: str) -> list[str]:
    """Return the job numbers in the output of `scontrol listpids`; without jobs it prints an error.

    >>> read_listpids("PID      JOBID    STEPID   LOCALID GLOBALID\\n812      7        batch    0       0      \\n")
    ['7']
    """
    rows = (line.split() for line in text.splitlines())
    return sorted({row[1] for row in rows if len(row) > 2 and row[1].isdigit()}, key=int)


def read_settings(text: str) -> dict[str, str]:
    """Return the settings that `scontrol show config` prints.

    >>> read_settings("Configuration data as of …\\nHASH_VAL                = Match\\n")
    {'HASH_VAL': 'Match'}
    """
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


def has_loaded(hashes: str, noted: str) -> bool | None:
    """Say whether slurmctld has loaded slurm.conf, according to its HASH_VAL; None if unknown.

    The hashes cover all bytes, including comments (_get_next_line in src/common/parse_config.c): they can differ
    although both files mean the same, so such hashes are noted.

    >>> has_loaded("Match", ""), has_loaded("Different Ours=0x1 Slurmctld=0x2", "Different Ours=0x3 Slurmctld=0x2")
    (True, False)
    """
    if hashes.startswith("Different"):
        return hashes == noted
    return True if hashes == "Match" else None


def read_nodes(text: str) -> dict[str, dict[str, str]]:
    """Return the fields of each node by name from `scontrol --oneliner show node`.

    The fields up to the reason, which is free text; the reason, its author (ReasonSetByUser) and its time
    (ReasonChangedAt). What slurmctld added when a drained node no longer answered is left out.

    >>> shown = read_nodes("NodeName=n1 State=IDLE+DRAIN Reason=a [b] c [root@2026-11-20T09:00:00] Comment=x")["n1"]
    >>> shown.pop("NodeName"), shown.pop("State")
    ('n1', 'IDLE+DRAIN')
    >>> shown
    {'Reason': 'a [b] c', 'ReasonSetByUser': 'root', 'ReasonChangedAt': '2026-11-20T09:00:00'}
    >>> silent = read_nodes("NodeName=n1 State=IDLE*+DRAIN Reason=fan : Not responding [slurm@2026-11-20T09:00:00]")
    >>> silent["n1"]["Reason"]
    'fan'
    """
    found = {}
    for line in text.splitlines():
        before, _, after = line.partition(" Reason=")
        fields = dict(word.split("=", 1) for word in before.split() if "=" in word)
        if "NodeName" in fields:
            signed = REASON.match(after)
            reason, user, when = signed.groups() if signed else (after.partition(" Comment=")[0], "", "")
            fields.update(Reason=reason.strip().removesuffix(SILENT), ReasonSetByUser=user, ReasonChangedAt=when)
            found[fields["NodeName"]] = fields
    return found


def drains_since(seen: Mapping[str, Mapping[str, str]], shown: str, log: str) -> dict[str, str]:
    """Return the reasons of nodes that were drained again after they were seen, by name of node.

    :param seen: fields of the nodes, see read_nodes
    :param shown: the output of a scontrol that shows the nodes
    :param log: slurmctld's lines of the time since; not believed if any of them may contain a text of a user

    >>> seen = read_nodes("NodeName=n1 State=IDLE+DRAIN Reason=ours [root@2026-11-20T09:00:00]")
    >>> drains_since(seen, "scontrol: NodeName=n1 State=IDLE+DRAIN Reason=fan [ann@2026-11-20T09:00:01]", "")
    {'n1': 'fan'}
    >>> told = "slurmctld: Node n2 now responding\\nslurmctld: update_node: node n1 reason set to: fan"
    >>> told += "\\nslurmctld: SchedulerParameters=default_queue_depth=100,max_rpc_cnt=0,max_sched_time=2"
    >>> drains_since(seen, "", told), drains_since(seen, "", f"slurmctld: error: invalid partition: a\\n{told}")
    ({'n1': 'fan'}, {})
    """
    lines = log.splitlines()
    told = (REASON_SET.fullmatch(line) for line in lines if all(map(OWN_LINES.match, lines)))
    found = {match[1]: match[2] for match in told if match and match[1] in seen}
    for line in shown.splitlines():
        for name, fields in read_nodes(line.removeprefix(PROMPT)).items():
            # What slurmctld itself says, such as `Not responding`, is not a decision.
            if name in seen and fields["Reason"] and fields["ReasonSetByUser"] != "slurm":
                now, then = ([one.get(key) for key in SIGNED] for one in (fields, seen[name]))
                found.setdefault(name, "" if now == then else fields["Reason"])
    return {name: reason for name, reason in found.items() if reason not in ("", seen[name]["Reason"])}


def read_partitions(text: str) -> dict[str, str]:
    """Return the state of each partition by name from `scontrol --oneliner show partition`.

    >>> read_partitions("PartitionName=main AllowGroups=ALL State=UP TotalCPUs=8\\n")
    {'main': 'UP'}
    """
    rows = (dict(word.split("=", 1) for word in line.split() if "=" in word) for line in text.splitlines())
    return {row["PartitionName"]: row.get("State", "") for row in rows if "PartitionName" in row}


def flags(shown: Mapping[str, str]) -> frozenset[str]:
    """Return the state and flags of a node; an unreachable node has NOT_RESPONDING in every version.

    >>> sorted(flags({"State": "IDLE*+DRAIN"}))
    ['DRAIN', 'IDLE', 'NOT_RESPONDING']
    """
    words = {word.rstrip(STATE_FLAGS) for word in shown["State"].split("+")}
    return frozenset(words | ({"NOT_RESPONDING"} if "*" in shown["State"] else set()))


def seconds(text: str) -> float:
    """Return a time of Slurm as seconds since 1970; 0 if it is not a time.

    >>> seconds("None")
    0.0
    """
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return 0.0
