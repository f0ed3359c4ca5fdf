# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Do the services run, now and after a boot, and in the installed version?"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from ansible.module_utils.slurmstead.conf.versions import OLDEST_PEER, can_talk, series, upstream
from ansible.module_utils.slurmstead.doctor.finding import Cluster, Finding, both
from ansible.module_utils.slurmstead.slurm.hostlist import compress

AT_BOOT = ("enabled", "static", "alias", "indirect", "generated")

NOT_LOADED = {
    "": ("has an unknown state, because systemd does not answer", "see `systemctl status {unit}`"),
    "not-found": ("is not installed", "run `stead up`"),
    "masked": ("is masked, so it is never started", "`systemctl unmask {unit}`, then `systemctl start {unit}`"),
}
"""The problem with a unit that systemd does not load, and what to do, by LoadState."""


def services(cluster: Cluster) -> Iterator[Finding]:
    """The required units run."""
    for name, facts in cluster.machines.items():
        for unit, state in facts["units"].items():
            look = f"see `journalctl -u {unit}`, fix the cause, then `systemctl start {unit}`"
            if state["load"] != "loaded":
                seen, advice = NOT_LOADED.get(state["load"], (f"cannot be started ({state['load']})", look))
                yield Finding(name, f"service {unit}", f"{unit} {seen}", advice.format(unit=unit))
            elif state["active"] not in ("active", "reloading"):
                words = state["sub"] if state["active"] == "activating" else state["active"]
                result = "" if state["result"] in ("", "success") else f", {state['result']}"
                said = f": {state['said']}" if state["said"] else ""
                yield Finding(name, f"service {unit}", f"{unit} is not running ({words}{result}){said}", look)
            elif state["enabled"] not in AT_BOOT:
                yield Finding(
                    name, "boot", f"{unit} is not enabled at boot", f"`systemctl enable {unit}`, or run `stead up`"
                )


def failed_units(cluster: Cluster) -> Iterator[Finding]:
    """No other unit failed."""
    for name, facts in cluster.machines.items():
        for unit in facts["failed"]:
            if unit.removesuffix(".service") not in facts["wanted"]["units"]:
                advice = f"see `systemctl status {unit}`; `systemctl reset-failed` once it is fixed"
                causes = both([name], "mount") if unit.endswith(".mount") else ()
                yield Finding(name, "failed", f"{unit} failed", advice, causes)


def descriptions(cluster: Cluster) -> Iterator[Finding]:
    """systemd has loaded the current unit files."""
    for name, facts in cluster.machines.items():
        for unit, state in facts["units"].items():
            # For a masked unit this does not matter, but systemd can report it, too.
            if state["reload"] and state["load"] != "masked":
                seen = f"the unit file of {unit} was changed, and systemd has not reloaded it"
                yield Finding(name, "reload", seen, f"`systemctl daemon-reload`, then `systemctl restart {unit}`")


def old_programs(cluster: Cluster) -> Iterator[Finding]:
    """A daemon is as new as its package."""
    nodes = cluster.brain.get("slurm", {}).get("nodes", {})
    for name, facts in cluster.machines.items():
        running = {"slurmctld": facts["slurm"].get("version", ""), "slurmd": nodes.get(name, {}).get("Version", "")}
        for unit, state in facts["units"].items():
            installed = upstream(facts["packages"].get(unit, ""))
            if state["outdated"]:
                seen = f"{unit} is older than its package: {state['outdated']} was replaced after it started"
            elif installed and running.get(unit) and state["pid"] and upstream(running[unit]) != installed:
                seen = f"{unit} runs version {running[unit]}, but {installed} is installed"
            else:
                continue
            yield Finding(name, "outdated", seen, f"`systemctl restart {unit}`; jobs go on")


def packages(cluster: Cluster) -> Iterator[Finding]:
    """Machines of one release have the same packages."""
    installed: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for name, facts in cluster.machines.items():
        for package, version in facts["packages"].items():
            # A binary rebuild for one architecture counts as the same version (Debian Policy, 5.6.12).
            installed[facts["release"], package][name] = re.sub(r"\+b\d+$", "", version)
    for (_, package), versions in installed.items():
        usual, _ = Counter(versions.values()).most_common(1)[0]
        others = compress(name for name, version in versions.items() if version == usual)
        for name, version in versions.items():
            if version != usual:
                seen = f"{package} {version} is installed here, but {usual} on {others}"
                yield Finding(name, "version", seen, "`stead upgrade` installs the same on all machines")


def mixtures(cluster: Cluster) -> Iterator[Finding]:
    """slurmctld understands the slurmd and the clients of all machines."""
    controller = series(cluster.brain.get("packages", {}).get("slurmctld", ""))
    for name, facts in cluster.machines.items():
        found = facts["packages"].get("slurmd") or facts["packages"].get("slurm-client") or ""
        node = series(found)
        if controller in OLDEST_PEER and node and not can_talk(controller, node):
            seen = f"slurmctld {controller} on {cluster.control} is incompatible with its Slurm {node}"
            yield Finding(name, "mixture", seen, "install the same release on both", both([name], "version"))
