# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Users of slurmdbd whom slurmctld does not know as this machine does, so that it refuses their jobs.

slurmctld looks up a user's number when it learns of the user, and those without one again each hour
(assoc_mgr_set_missing_uids in src/common/assoc_mgr.c). 22.05 then still has no default account for them. A restart
corrects both, and a number that has changed.
"""

from __future__ import annotations

import pwd
import re
from collections.abc import Callable, Mapping

SHOW = ("scontrol", "show", "assoc_mgr")
SECONDS = 60.0
"""Timeout; 10,000 users need less than one."""

USER = re.compile(r"^UserName=(\S+)\((\d+)\) DefAccount=(\S*)", re.MULTILINE)
ASSOCIATION = re.compile(r"^ClusterName=\S+ Account=\S+ UserName=([^\s(]+)", re.MULTILINE)


def unknown(ask: Callable[..., str], numbers: Mapping[str, int]) -> list[str]:
    """Return the users of this machine whom slurmctld knows with another number, or without their default account.

    :param ask: returns the output of a command
    :param numbers: the numbers of this machine's users, by name
    """
    shown = {name: (int(number), account) for name, number, account in USER.findall(ask(*SHOW, "flags=users"))}
    here = {name: values for name, values in shown.items() if name in numbers}
    wrong = {name for name, (number, _) in here.items() if number != numbers[name]}
    poor = sorted(name for name, (_, account) in here.items() if account in ("", "(null)") and name not in wrong)
    if poor:
        # Those whom an administrator has removed have no default account either.
        wrong |= {*ASSOCIATION.findall(ask(*SHOW, "flags=assoc", f"users={','.join(poor)}"))} & {*poor}
    return sorted(wrong)


def local() -> dict[str, int]:
    """Return the numbers of this machine's users, by name."""
    return {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
