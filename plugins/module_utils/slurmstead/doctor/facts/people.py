# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Who can use this machine, and with which rights, whatever the inventory says."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.slurmstead.identity import departures
from ansible.module_utils.slurmstead.identity.accounts import Known, is_person, known
from ansible.module_utils.slurmstead.reach.commands import run

KEYS = Path("/etc/ssh/authorized_keys.d")
SUDOERS = "/etc/sudoers"
NO_SHELL = r"^\s*(#|$)|command="
"""Lines of authorized_keys(5) that are no key, or run only one command, as cloud-init writes them for root."""


def look(home_root: str, home_store: str) -> dict[str, Any]:
    """Return accounts, keys and rights of this machine, those of people and of root.

    made: accounts that we created: `left`, `jobs` (identity.departures) and `groups`, by name
    numbers: numeric ID by name of each account for people, and of root
    locked: names of the accounts that have expired
    keys: keys in /etc/ssh/authorized_keys.d that open a shell, by name of the account
    own_keys: number of keys in the home, by name of the account
    sudo: for each account that may use sudo: the group from which it has the right, or empty

    :param home_root: directory of the homes on the share, which may not answer
    :param home_store: the same directory where this machine stores it; empty on the others
    """
    node = known()
    record, locked = _records()
    users = {name: uid for name, uid in node.users.items() if is_person(uid) or uid == 0 or name in record}
    homes = {name: home for name in users for home in _home(name, node.homes[name], home_root, home_store)}
    return {
        "made": {
            name: {"left": made.left, "jobs": made.jobs, "groups": sorted(node.members.get(name, ()))}
            for name, made in record.items()
            if name in users
        },
        "numbers": users,
        "locked": locked,
        "keys": {path.name: keys for path in _files(KEYS) if (keys := _lines(path))},
        "own_keys": own_keys(homes),
        "sudo": sudo(node),
    }


def _records() -> tuple[departures.Record, list[str]]:
    """Return the record and the expired accounts; empty if the files are broken, which the next run reports."""
    try:
        locks = departures.locks()
        return departures.read() or {}, sorted(name for name, lock in locks.items() if lock.expired)
    except (OSError, ValueError):
        return {}, []


def _home(name: str, home: str, root: str, store: str) -> Iterator[str]:
    if not home.startswith(f"{root}/"):
        yield home
    elif store:
        yield f"{store}/{name}"


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.glob("*") if path.is_file())


def _lines(path: Path) -> list[str]:
    text = path.read_text(errors="replace")
    return [line.strip() for line in text.splitlines() if not re.search(NO_SHELL, line)]


def own_keys(homes: Mapping[str, str]) -> dict[str, int]:
    """Return how many keys let a user in from its home, by name; `homes` are directories by name.

    A home that does not answer within seconds counts as one without keys, and so does one whose file is a FIFO or
    larger than 1 MiB.
    """
    files = {f"{home}/.ssh/authorized_keys": name for name, home in homes.items()}
    find = ("find", "-H", *files, "-maxdepth", "0", "-type", "f", "-size", "-1025k")
    grep = ("grep", "--no-messages", "--devices=skip", "--with-filename", "--count")
    match = ("--invert-match", "--extended-regexp", "--regexp", NO_SHELL)
    _, out, _ = run("timeout", "--signal=KILL", "5", *find, "-exec", *grep, *match, "{}", ";")
    counts = (line.rpartition(":") for line in out.splitlines())
    return {files[path]: int(count) for path, _, count in counts if path in files and int(count)}


def sudo(node: Known) -> dict[str, str]:
    """Return the accounts that sudoers(5) mentions, by name: the group from which they have the right, or empty."""
    code, out, _ = run("cvtsudoers", "--expand-aliases", "--output-format=json", SUDOERS)
    return dict(allowed(json.loads(out), node)) if code == 0 and out else {}


def allowed(policy: Mapping[str, Any], node: Known) -> Iterator[tuple[str, str]]:
    """Yield each account that a policy mentions, and the group through which; the account itself comes last.

    >>> node = Known({"root": 0, "bob": 2002}, {"sudo": 27}, {}, members={"bob": frozenset({"sudo"})})
    >>> list(allowed({"User_Specs": [{"User_List": [{"usergroup": "sudo"}]}]}, node))
    [('bob', 'sudo')]
    """
    entries = [entry for spec in policy.get("User_Specs", []) for entry in spec["User_List"] if "negated" not in entry]
    members = collections.defaultdict(set)
    numbers = {gid: group for group, gid in node.groups.items()}
    for name, groups in node.members.items():
        for group in groups:
            members[group].add(name)
    for name, gid in node.primary.items():
        members[numbers.get(gid, "")].add(name)
    named = {uid: name for name, uid in node.users.items()}
    for entry in entries:
        group = entry.get("usergroup") or numbers.get(entry.get("usergid", -1), "")
        yield from ((name, group) for name in sorted(members[group]) if group)
    for entry in entries:
        name = entry.get("username") or named.get(entry.get("userid", -1), "")
        if name:
            yield name, ""
