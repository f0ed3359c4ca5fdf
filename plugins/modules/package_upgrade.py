#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Upgrade the packages of a machine of the cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: package_upgrade
short_description: Upgrade the packages of a machine of the cluster
description:
  - Runs C(apt-get --with-new-pkgs upgrade). It removes no package, asks no question, and keeps files in /etc that an
    administrator changed.
  - A systemd unit installs the packages, so a lost connection does not interrupt it; the next call waits for it.
  - slurmctld and slurmdbd are stopped while packages of Slurm or MUNGE are replaced. No job starts meanwhile, and the
    prerm script of slurmctld's package, which can cancel jobs, cannot reach it.
  - munge, slurmdbd, slurmctld and slurmd are restarted if their files were replaced since they started; jobs go on.
  - What an administrator set with C(scontrol update), such as a closed partition, is set again afterwards.
attributes:
  check_mode: {support: full, details: The package lists are still fetched.}
  diff_mode: {support: full}
options:
  node: {description: Name of the machine., type: str, required: true}
  state:
    description: C(planned) fetches the lists and reports what would change, C(fetched) fetches the packages,
      C(installed) installs them; C(completed) configures what an interrupted dpkg left, and upgrades nothing;
      C(spared) fails if apt would upgrade packages of Slurm or MUNGE in order to install O(packages).
    type: str
    choices: [planned, fetched, installed, completed, spared]
    required: true
  packages: {description: Names of packages that are not installed., type: list, elements: str, default: []}
  lock_timeout: {description: Seconds to wait for another package manager., type: int, default: 600}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Plan the upgrade
  package_upgrade:
    node: node1
    state: planned
  register: plan
"""

RETURN = r"""
packages: {description: 'Packages with their versions before and after, by name.', type: dict, returned: success}
versions: {description: Versions of slurmctld and slurmd after the upgrade, type: dict, returned: C(planned)}
outdated: {description: Daemons that are older than their files., type: list, elements: str, returned: C(planned)}
interrupted:
  description: Whether an earlier run has not set again what an administrator had set at run time.
  type: bool
  returned: C(planned)
problems: {description: Reasons not to upgrade., type: list, elements: str, returned: C(planned)}
restarted: {description: Daemons that were restarted., type: list, elements: str, returned: C(installed)}
reboot: {description: Reasons for a reboot of the machine., type: list, elements: str, returned: not C(fetched)}
said: {description: Summary of the result as text., type: str, returned: not C(fetched)}
"""

import os
import platform
import time
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.change.decisions import Decisions
from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.packages import apt
from ansible.module_utils.slurmstead.packages import daemons as own_daemons
from ansible.module_utils.slurmstead.packages import plan as apt_plan
from ansible.module_utils.slurmstead.packages.apt import AptError
from ansible.module_utils.slurmstead.packages.daemons import DaemonError
from ansible.module_utils.slurmstead.packages.plan import Package, Plan
from ansible.module_utils.slurmstead.packages.reboot_reasons import reboot_reasons
from ansible.module_utils.slurmstead.reach.deadline import wait_while
from ansible.module_utils.slurmstead.slurm.daemons import Slurm

STATES = ["planned", "fetched", "installed", "completed", "spared"]

ANSWER_SECONDS, PAUSE = 60.0, 0.5
"""Timeout for the new slurmctld to answer, before values that were set at run time are set again."""

Changes = dict[str, tuple[str, str]]
"""Versions before and after, by package; an empty version means that the package is not installed."""


def changes(before: dict[str, str], after: dict[str, str]) -> Changes:
    """Return the differences between two sets of versions.

    >>> changes({"a": "1", "b": "1"}, {"a": "2", "b": "1", "c": "1"})
    {'a': ('1', '2'), 'c': ('', '1')}
    """
    pairs = {name: (before.get(name, ""), after.get(name, "")) for name in sorted({*before, *after})}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def listed(packages: Changes) -> list[str]:
    """Return a line for each change.

    >>> listed({"slurmd": ("1", "2"), "linux-image": ("", "6")})
    ['  slurmd 1 -> 2', '  linux-image 6, new']
    """
    return [f"  {name} {old} -> {new}" if old else f"  {name} {new}, new" for name, (old, new) in packages.items()]


def counted(packages: Changes) -> str:
    """Return the number of changed packages as text."""
    return f"{len(packages)} package{'' if len(packages) == 1 else 's'}"


def predicted(known: dict[str, Package], wanted: Plan) -> Changes:
    """Return the changes of a plan."""
    before = apt_plan.versions(known)
    return changes(before, {**before, **{step.name: step.after for step in wanted.steps}})


def plan(node: str, lock_timeout: int) -> dict[str, Any]:
    """Return the changes, and the problems that prevent them. Raises AptError."""
    apt.wait_for_lock(lock_timeout)
    apt.update(lock_timeout)
    known, wanted = apt.packages(), apt.plan()
    packages, reboot = predicted(known, wanted), reboot_reasons()
    versions = apt_plan.versions(known) | {name: after for name, (_, after) in packages.items()}
    lines = [f"{node}: {f'{counted(packages)} to upgrade' if packages else 'nothing to upgrade'}", *listed(packages)]
    if wanted.kept:
        lines.append(f"  kept back by apt: {', '.join(wanted.kept)}")
    return {
        "packages": packages,
        "versions": {name: versions[name] for name in ("slurmctld", "slurmd", "slurm-client") if name in versions},
        "outdated": own_daemons.outdated(),
        # Of a run that ended before it had set again what an administrator had set at run time.
        "interrupted": Decisions(Store(), Slurm()).kept,
        "problems": apt_plan.problems(known, wanted, platform.freedesktop_os_release()),
        "reboot": reboot,
        "said": "\n".join([*lines, *rebooting(node, reboot)]),
    }


def spare(names: list[str], lock_timeout: int) -> None:
    """See that Slurm keeps its version while other packages are installed. Raises AptError."""
    apt.wait_for_lock(lock_timeout)
    apt.update(lock_timeout)
    known = apt.packages()
    upgraded = {name: old for name, (old, _) in predicted(known, apt.plan(names)).items() if old}
    if ours := apt_plan.concerning(upgraded, known):
        raise AptError(
            f"to install {', '.join(names)}, apt would also upgrade {', '.join(ours)}, and slurmctld would forget "
            "what was set with scontrol: run `scripts/stead upgrade` first"
        )


def complete(lock_timeout: int, check_mode: bool) -> bool:
    """Configure what an interrupted dpkg left; return whether there was anything. Raises AptError."""
    apt.wait_for_lock(lock_timeout)
    interrupted = apt.is_interrupted()
    if interrupted and not check_mode:
        apt.complete()
    return interrupted


def rebooting(node: str, reasons: list[str]) -> list[str]:
    """Return the message that a machine needs a reboot."""
    return [f"{node} needs a reboot: {', '.join(reasons)}"] if reasons else []


def install(node: str, lock_timeout: int, check_mode: bool) -> dict[str, Any]:
    """Install newer packages; return the changes. Raises AptError and DaemonError."""
    started = time.monotonic()
    known, wanted = apt.packages(), apt.plan()
    packages = predicted(known, wanted)
    if check_mode:
        return {"changed": bool(packages), "packages": packages, "diff": shown(packages)}
    daemons = own_daemons.running()
    store, slurm = Store(), Slurm()
    decisions = Decisions(store, slurm)
    notes = decisions.keep(store.seen(), minutes=30) if "slurmctld" in daemons else []
    try:
        said = renew_packages(packages, known, daemons, lock_timeout)
        packages = changes(apt_plan.versions(known), apt_plan.versions(apt.packages()))
        restarted, reboot = own_daemons.renew(daemons), reboot_reasons()
    except (AptError, DaemonError) as error:
        # slurmctld runs again, and without this it would forget the partitions that a person closed.
        raise type(error)("\n".join([str(error), *restored(decisions, slurm)])) from None
    notes += restored(decisions, slurm)
    words = [f"{node}: {counted(packages)} upgraded in {time.monotonic() - started:.0f} s"]
    if restarted:
        words.append(f"restarted: {', '.join(restarted)}")
    kept = [f"{node}: {path} was changed by hand and is kept" for path in apt_plan.conffiles(said)]
    return {
        "changed": bool(packages or restarted),
        "packages": packages,
        "restarted": restarted,
        "reboot": reboot,
        "said": "\n".join([", ".join(words), *kept, *notes, *rebooting(node, reboot)]),
        "diff": shown(packages),
    }


def renew_packages(
    packages: Changes, known: Mapping[str, Package], daemons: Mapping[str, int], lock_timeout: int
) -> str:
    """Install newer packages, those that the daemons use first; return what apt said. Raises AptError."""
    ours, said = apt_plan.concerning(packages, known), ""
    if ours:
        # Separately, because MUNGE of Debian 12 does not answer while it is replaced, and a kernel takes minutes.
        stopped = [name for name in ("slurmdbd", "slurmctld") if name in daemons]
        before = [f"stop {name}.service" for name in reversed(stopped)]
        # slurmdbd first: it understands an older slurmctld, not a newer one.
        after = [f"start {name}.service" for name in stopped]
        # If MUNGE's package fails and slurmctld has no MUNGE for SlurmdTimeout, it ends all jobs.
        said += apt.install(ours, before, ["try-restart munge.service", *after], lock_timeout)
    if len(packages) > len(ours):
        said += apt.install([], [], [], lock_timeout)
    return said


def restored(decisions: Decisions, slurm: Slurm) -> list[str]:
    """Give the partitions the states again that people gave them; return what to tell."""
    if decisions.kept:
        wait_while(lambda: not slurm.answers(), ANSWER_SECONDS, PAUSE)
    return decisions.finish()


def shown(packages: Changes) -> dict[str, str]:
    """Return the diff for `--diff`."""
    sides = ("".join(f"{name} {pair[side]}\n" for name, pair in packages.items() if pair[side]) for side in (0, 1))
    return dict(zip(("before", "after"), sides, strict=True))


def main() -> None:
    """Run the module."""
    # Others than root read what is in the directories that this creates, whatever root's umask.
    os.umask(0o022)
    module = AnsibleModule(
        argument_spec={
            "node": {"type": "str", "required": True},
            "state": {"type": "str", "choices": STATES, "required": True},
            "packages": {"type": "list", "elements": "str", "default": []},
            "lock_timeout": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    node, state, lock_timeout = (module.params[name] for name in ("node", "state", "lock_timeout"))
    try:
        if state == "planned":
            module.exit_json(changed=False, **plan(node, lock_timeout))
        if state == "spared":
            spare(module.params["packages"], lock_timeout)
            module.exit_json(changed=False)
        if state == "completed":
            module.exit_json(changed=complete(lock_timeout, module.check_mode))
        if state == "installed":
            module.exit_json(**install(node, lock_timeout, module.check_mode))
        if not module.check_mode:
            apt.fetch()
        module.exit_json(changed=False)
    except (AptError, DaemonError) as error:
        if state == "planned":
            # Report problems of other machines, too.
            module.exit_json(
                changed=False,
                packages={},
                versions={},
                outdated=[],
                interrupted=False,
                reboot=[],
                problems=[str(error)],
            )
        module.fail_json(msg=f"{node}: {error}")


if __name__ == "__main__":
    main()
