# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Why nodes in power saving are out of service, which slurmctld forgets; the reason also tells who decided it.

When a node registers that was powered down (validate_node_specs), slurmctld drops the reason, but not the drain: 22.05
always, also when it powers the node up, 24.11 if jobs are recorded (clusteracct_storage_g_node_up). When a node does
not wake within ResumeTimeout, both drop the drain (power_save.c). So the reasons are in a file, too, until the nodes
are on; what a person decides meanwhile replaces them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
from collections.abc import Iterator, Mapping

from ansible.module_utils.slurmstead.reach import durable
from ansible.module_utils.slurmstead.slurm.answers import flags
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.hostlist import expand
from ansible.module_utils.slurmstead.workers.reasons import Fields, did_not_wake, is_left_alone

FILE = pathlib.Path("/var/lib/slurmstead/power/drains.json")


def _recorded() -> dict[str, str]:
    found: dict[str, str] = {}
    # Without the file, or if it is broken, the reasons in Slurm remain.
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(FILE.read_text())
    return found


@contextlib.contextmanager
def record() -> Iterator[dict[str, str]]:
    """Hold the reasons by name of the node, and keep what is changed in them."""
    FILE.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Not for writing: the disk may be read-only.
    with open(os.open(FILE.with_suffix(".lock"), os.O_RDONLY | os.O_CREAT, 0o600)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = _recorded()
        reasons = dict(before)
        yield reasons
        if reasons != before:
            durable.write(FILE, json.dumps(reasons).encode(), 0o600)


def forgotten(reasons: dict[str, str], nodes: Mapping[str, Fields]) -> dict[str, tuple[str, ...]]:
    """Bring the record up to date; return by name what scontrol must tell slurmctld, which has forgotten it."""
    told: dict[str, tuple[str, ...]] = {}
    for name, shown in nodes.items():
        if name in reasons and did_not_wake(shown):
            told[name] = ("state=drain", f"reason={reasons[name]}")
        elif name in reasons and _is_unexplained(shown):
            # Without a state: a person may resume the node at this moment.
            told[name] = (f"reason={reasons[name]}",)
        elif is_left_alone(shown) and not _is_unexplained(shown) and _saves_power(shown):
            reasons[name] = shown["Reason"]
        else:
            reasons.pop(name, None)
    return told


def _is_unexplained(shown: Fields) -> bool:
    return bool(flags(shown) & {"DRAIN", "DOWN"}) and shown["Reason"].lower() in ("", "none")


def _saves_power(shown: Fields) -> bool:
    return any(flag.startswith("POWER") for flag in flags(shown))


class Remembering(Slurm):
    """A controller that does not forget why nodes in power saving are drained."""

    def nodes(self) -> dict[str, dict[str, str]]:
        """Return the fields of each node by name, with the reasons that slurmctld has forgotten."""
        nodes = super().nodes()
        for name, reason in _recorded().items():
            if name in nodes and _is_unexplained(nodes[name]):
                nodes[name]["Reason"] = reason
        return nodes

    def update(self, nodes: str, state: str, reason: str = "") -> None:
        """Change the state of nodes. Control may be switched off before its watch sees a drain."""
        shown = super().nodes() if state == "DRAIN" else {}
        asleep = [name for name in expand(nodes) if name in shown and _saves_power(shown[name])]
        with contextlib.ExitStack() as stack:
            reasons = stack.enter_context(record()) if asleep else {}
            super().update(nodes, state, reason)
            reasons.update(dict.fromkeys(asleep, reason))

    def resume(self, seen: Mapping[str, Mapping[str, str]]) -> list[str]:
        """Resume nodes; return those that an administrator has drained since."""
        kept = super().resume(seen)
        if seen.keys() & _recorded().keys():
            with record() as reasons:
                for name in seen.keys() - set(kept):
                    reasons.pop(name, None)
        return kept
