#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Keep the accounts, users and QOS of slurmdbd as the inventory declares them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_shares
short_description: Keep the accounts, users and QOS of slurmdbd as declared
description:
  - Reads everything with four commands, and writes the differences with one C(sacctmgr), however many users there are;
    new QOS need a second one. Then reads everything again, and fails if a difference is left.
  - Every user of this machine who can log in gets an account, also without being declared, so that no job is refused
    for want of one.
  - Warns of jobs that wait with a QOS that their account does not have, because Slurm may never start them.
  - Changes only the declared keys. Nothing is removed unless O(remove_users) or O(remove_accounts) names it.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  host: {type: str, required: true, description: Address or name with which clients reach slurmdbd.}
  cluster: {type: str, required: true, description: Name of the cluster.}
  template: {type: str, choices: [home, lab, course], default: home, description: See the role C(shares).}
  low: {type: str, choices: [none, wait, requeue], default: none, description: See the role C(shares).}
  people: {type: list, elements: dict, default: [], description: 'Users, each with C(name) and C(account).'}
  by_hand: {type: list, elements: str, default: [], description: Accounts that an administrator manages.}
  accounts: {type: dict, default: {}, description: 'Keys of accounts, by name.'}
  users: {type: dict, default: {}, description: 'Keys of users, by name.'}
  qos: {type: dict, default: {}, description: 'Keys of QOS, by name.'}
  remove_users: {type: list, elements: str, default: [], description: Users to remove from all accounts.}
  remove_accounts: {type: list, elements: str, default: [], description: Accounts to remove.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Set shares and limits
  slurm_shares:
    host: 192.168.1.101
    cluster: home
    template: course
    people: [{name: ann, account: course}]
    qos: {course: {MaxJobsPerUser: 4}}
"""

RETURN = r"""
plan: {description: A line for each difference., type: list, elements: str, returned: success}
"""

import pwd
import re
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.accounting import difference, storage
from ansible.module_utils.slurmstead.accounting.difference import Change
from ansible.module_utils.slurmstead.accounting.storage import StorageError
from ansible.module_utils.slurmstead.accounting.wanted import Declared, Wanted, wanted
from ansible.module_utils.slurmstead.identity import departures
from ansible.module_utils.slurmstead.identity.accounts import is_person
from ansible.module_utils.slurmstead.reach.commands import run

NO_LOGIN = ("nologin", "false", "sync")
COMPLAINT = re.compile(r"error|problem|invalid|don't have|unknown", re.IGNORECASE)
SECONDS = 900.0


def logins() -> list[str]:
    """Return the people who can log in to this machine."""
    return sorted(
        entry.pw_name
        for entry in pwd.getpwall()
        if is_person(entry.pw_uid) and entry.pw_shell.rpartition("/")[2] not in NO_LOGIN
    )


def present(host: str, cluster: str) -> difference.Present:
    """Return what the database has. Raises StorageError."""
    answers = {}
    for about, command in difference.questions(cluster).items():
        code, out, err = storage.asked(host, *command, cluster=cluster, seconds=SECONDS)
        if code:
            raise StorageError(f"`{' '.join(command[:5])} …`: {(err or out).strip()}")
        answers[about] = out
    return difference.read(answers)


def both_sides(params: dict[str, Any], people: list[str]) -> tuple[Wanted, difference.Present]:
    """Return what is wanted, and what the database has.

    Raises StorageError, and ValueError if the record of accounts cannot be read.
    """
    names = ("template", "low", "people", "accounts", "users", "qos")
    found = present(params["host"], params["cluster"])
    # Users who leave keep their accounts, and their limits: their jobs may go on, and submit others.
    present_users = {*params["by_hand"], *(str(person["name"]) for person in params["people"])}
    left = {*(departures.read() or {})} - present_users
    people = [name for name in people if name not in left or name not in found.defaults]
    new = wanted(Declared(**{name: params[name] for name in names}), people)
    if why := [*difference.needed(params["remove_accounts"], new, found)]:
        raise ValueError(
            f"shares_remove_accounts has {'; '.join(why)}; nothing was changed. Move what is in it to another account, "
            "or take it out of shares_remove_accounts"
        )
    return new, found


def plan(params: dict[str, Any], new: Wanted, found: difference.Present) -> list[Change]:
    """Return the differences."""
    cluster = params["cluster"]
    gone = difference.removals(cluster, params["remove_users"], params["remove_accounts"], found)
    return [*difference.changes(cluster, new, found), *gone]


def stranded(new: Wanted, found: difference.Present) -> list[str]:
    """Return a line for the jobs that may never start after the changes; none if slurmctld does not answer."""
    # Without limits each QOS is accepted.
    if not any("QOS" in keys for keys in new.accounts.values()):
        return []
    code, queue, _ = run(*difference.PENDING)
    return [] if code else [*difference.stranded(new, found, queue)]


def write(host: str, cluster: str, changes: list[Change]) -> str:
    """Let sacctmgr make all changes; return its complaints."""
    said, code = [], 0
    for batch in difference.batches(changes):
        commands = "".join(f"{change.command}\n" for change in batch)
        code, out, err = storage.asked(host, "sacctmgr", "--immediate", cluster=cluster, seconds=SECONDS, text=commands)
        said += [line.strip() for line in (out + err).splitlines() if COMPLAINT.search(line)]
    return "; ".join(dict.fromkeys(said)) or (f"it exited with {code}" if code else "it reported no error")


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "host": {"type": "str", "required": True},
            "cluster": {"type": "str", "required": True},
            "template": {"type": "str", "choices": ["home", "lab", "course"], "default": "home"},
            "low": {"type": "str", "choices": ["none", "wait", "requeue"], "default": "none"},
            "people": {"type": "list", "elements": "dict", "default": []},
            "by_hand": {"type": "list", "elements": "str", "default": []},
            "accounts": {"type": "dict", "default": {}},
            "users": {"type": "dict", "default": {}},
            "qos": {"type": "dict", "default": {}},
            "remove_users": {"type": "list", "elements": "str", "default": []},
            "remove_accounts": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    params, people = module.params, logins()
    if both := sorted({str(person["name"]) for person in params["people"]} & {*params["remove_users"]}):
        module.fail_json(
            msg=f"shares_remove_users has {', '.join(both)}, who can log in, so every job would be refused; nothing "
            "was changed. Remove the people first, or take them out of shares_remove_users"
        )
    people = [name for name in people if name not in params["remove_users"]]
    if module.check_mode and (why := storage.unanswered(params["host"])):
        module.exit_json(changed=True, plan=[f"slurmdbd does not answer yet ({why}): all shares are set"])
    try:
        new, found = both_sides(params, people)
        changes, warnings = plan(params, new, found), stranded(new, found)
        if changes and not module.check_mode:
            said = write(params["host"], params["cluster"], changes)
            if left := plan(params, *both_sides(params, people)):
                rest = "\n".join(change.line for change in left[:10])
                module.fail_json(msg=f"sacctmgr did not make these changes: {said}\n{rest}")
    except (StorageError, OSError, ValueError) as error:
        module.fail_json(msg=f"the shares were not set: {error}")
    for line in warnings:
        module.warn(line)
    lines = [change.line for change in changes]
    shown = [{"prepared": "".join(f"{line}\n" for line in lines)}] if lines else []
    module.exit_json(changed=bool(lines), plan=lines, diff=shown)


if __name__ == "__main__":
    main()
