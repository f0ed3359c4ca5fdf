#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Create users and groups with the same numeric IDs on every node, in one task."""

from __future__ import annotations

DOCUMENTATION = r"""
module: local_accounts
short_description: Create users and groups with the same numeric IDs on every node
description:
  - Creates groups, users and their authorized keys and, on the node that stores them, the home directories.
  - Keys are in C(/etc/ssh/authorized_keys.d); the role C(os) makes sshd read them there (C(AuthorizedKeysFile)).
  - If a name or ID belongs to another account, or a user's group is missing, refuses before it changes anything. Never
    renumbers or removes accounts.
  - Makes no homes, and fails, while the directory that contains the one of the homes must be mounted and is not.
  - The machine itself locks an account on its day of expiry.
  - Locks the accounts that it created whose users are not declared any more, empties their keys, and ends their
    processes. Homes and numbers stay. A user who is declared again is let in again.
  - The module M(departed_jobs) cancels their jobs once no machine lets them submit others.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  groups: {type: list, elements: dict, default: [], description: Groups with C(name) and C(gid).}
  users:
    description: >-
      Users with C(name), C(uid) and optionally C(group), C(groups), C(comment), C(shell), C(keys) and C(expires), the
      first day, in UTC, on which the account is locked.
    type: list
    elements: dict
    default: []
  home_root: {type: path, required: true, description: Directory of the home directories as every node sees it.}
  home_store: {type: path, description: The same directory on the node that stores it; unset on all others.}
  by_hand: {type: list, elements: str, default: [], description: Accounts that are never locked.}
  cancel_jobs:
    description: Note that the Slurm jobs of users who leave are to be cancelled; for the node of slurmctld.
    type: bool
    default: false
  people:
    description: >-
      More C(groups) and C(users), in the same form; C(expired), names of users who left because their time is over,
      whose jobs go on; and C(missing), whether the file that lists them is missing. Then a run that would lock users of
      that file fails and changes nothing.
    type: dict
    default: {}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Create the accounts
  local_accounts:
    users: [{name: alice, uid: 2001, keys: ["ssh-ed25519 AAAA… alice@laptop"]}]
    home_root: /share/home
"""

RETURN = r"""
made: {description: Accounts that were or would be created or changed., type: list, elements: str, returned: always}
cancel: {description: Users whose Slurm jobs are to be cancelled., type: list, elements: str, returned: always}
"""

import os
import pathlib
import pwd
import shutil
from collections.abc import Collection, Mapping

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.identity import accounts, departures, sessions
from ansible.module_utils.slurmstead.people.lost import lost_lists
from ansible.module_utils.slurmstead.reach import durable
from ansible.module_utils.slurmstead.storage import share

SKELETON = pathlib.Path("/etc/skel")
KEYS = pathlib.Path("/etc/ssh/authorized_keys.d")
"""Keys are here and not in the homes, so that root does not write where users can, and a login needs no share."""


def account_commands(
    groups: list[accounts.Group], users: list[accounts.User], home_root: str, record: departures.Record
) -> list[list[str]]:
    """Return the commands that bring this node's accounts to the declared state.

    An account that is not in the record keeps the groups that it has.
    """
    commands = []
    node, locks = accounts.known(), departures.locks(departures.SHADOW)
    for group in groups:
        if group.name not in node.groups:
            commands.append(["groupadd", "--gid", str(group.gid), group.name])
    for user in users:
        home = f"{home_root}/{user.name}"
        if user.name not in node.users:
            command = ["useradd", "--uid", str(user.uid), "--gid", user.group, "--no-create-home", "--home-dir", home]
            command += ["--shell", user.shell, "--comment", user.comment]
            command += ["--expiredate", str(departures.last_day(user))] if user.expires else []
            commands.append([*command, *(["--groups", ",".join(user.groups)] if user.groups else []), user.name])
            continue
        there = pwd.getpwnam(user.name)
        options: list[str] = []
        if there.pw_dir != home:
            options += ["--home", home]
        if there.pw_shell != user.shell:
            options += ["--shell", user.shell]
        if there.pw_gecos != user.comment:
            options += ["--comment", user.comment]
        groups_there = node.members.get(user.name, frozenset())
        missing = set(user.groups) - groups_there
        if user.name in record and groups_there != set(user.groups):
            options += ["--groups", ",".join(sorted(user.groups))]
        elif missing:
            options += ["--append", "--groups", ",".join(sorted(missing))]
        made, lock = record.get(user.name), locks.get(user.name, departures.Lock())
        options += departures.expiry_option(user, made, lock)
        options += ["--unlock"] if made and made.left and lock.stored else []
        if options:
            commands.append(["usermod", *options, user.name])
    return commands


def lock_commands(
    names: Collection[str], node: accounts.Known, locks: Mapping[str, departures.Lock]
) -> list[list[str]]:
    """Return the commands that lock accounts and take their groups away."""
    commands = []
    for name in names:
        options = [] if locks[name].password else ["--lock"]
        options += [] if locks[name].expired else ["--expiredate", departures.EXPIRED]
        options += ["--groups", ""] if node.members.get(name) else []
        if options:
            commands.append(["usermod", *options, name])
    return commands


def make_home(user: accounts.User, home: pathlib.Path) -> None:
    """Create a home from the skeleton; it gets its name only when it is complete."""
    new = home.with_name(f".{home.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(SKELETON, new, symlinks=True)
    new.chmod(0o700)
    group = pwd.getpwnam(user.name).pw_gid
    # Children first: once the user owns a directory, root changes nothing in it.
    for path in [*reversed(sorted(new.rglob("*"))), new]:
        os.chown(path, user.uid, group, follow_symlinks=False)
    new.rename(home)


def keys_differ(user: accounts.User) -> bool:
    """Return whether the user's authorized keys differ from the declared ones."""
    file = KEYS / user.name
    return (file.read_text() if file.exists() else "") != keys_text(user)


def keys_text(user: accounts.User) -> str:
    """Return the declared keys of a user as sshd(8) reads them."""
    return "".join(f"{key.strip()}\n" for key in user.keys)


def write_keys(user: accounts.User) -> None:
    """Write the keys of a user."""
    KEYS.mkdir(mode=0o755, exist_ok=True)
    durable.write(KEYS / user.name, keys_text(user).encode())


def run_all(module: AnsibleModule, commands: list[list[str]]) -> list[str]:
    """Run commands, unless in check mode, and return them as text."""
    for command in [] if module.check_mode else commands:
        module.run_command(command, check_rc=True)
    return [" ".join(word or "''" for word in command) for command in commands]


def write_all_keys(module: AnsibleModule, users: list[accounts.User]) -> list[str]:
    """Write the keys that differ."""
    differing = [user for user in users if keys_differ(user)]
    for user in [] if module.check_mode else differing:
        write_keys(user)
    return [f"keys of {user.name}" for user in differing]


def end_sessions(module: AnsibleModule, uids: dict[int, str]) -> list[str]:
    """End the sessions and processes of departed users outside jobs; `uids` are their names by number."""
    there = set(sessions.outside_jobs(uids).values())
    found = {uid: name for uid, name in uids.items() if uid in there or (sessions.LINGER / name).exists()}
    if found and not module.check_mode:
        for name in found.values():
            (sessions.LINGER / name).unlink(missing_ok=True)
            # This also ends what a user started as root in a session. It fails for a user without one.
            module.run_command(["loginctl", "terminate-user", name])
        left = sessions.end(uids)
        if left:
            module.warn(f"processes {sorted(left)} of departed users do not end; they end with the next reboot")
        managers = [f"user@{uid}.service" for uid in found]
        module.run_command(["systemctl", "stop", *managers])
        # A user's systemd that was killed counts as failed, also if it was killed because of its user.
        module.run_command(["systemctl", "reset-failed", *managers])
    return [f"processes of {name}" for name in found.values()]


def make_homes(module: AnsibleModule, users: list[accounts.User]) -> list[str]:
    """Create the homes that are missing in the store."""
    store = pathlib.Path(module.params["home_store"])
    homes = {user: store / user.name for user in users if not (store / user.name).exists()}
    if not module.check_mode:
        if unit := share.unmounted(str(store.parent)):
            # What is below a mount point is hidden, and keeps the next run from mounting there.
            wrong = f"{store.parent} is not mounted, so no home can be made there"
            module.fail_json(msg=f"{wrong}: run `scripts/stead up`, or `systemctl start '{unit}'`")
        store.mkdir(parents=True, exist_ok=True)
        for user, home in homes.items():
            make_home(user, home)
    return [f"home {home}" for home in homes.values()]


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "groups": {"type": "list", "elements": "dict", "default": []},
            "users": {"type": "list", "elements": "dict", "default": []},
            "home_root": {"type": "path", "required": True},
            "home_store": {"type": "path"},
            "by_hand": {"type": "list", "elements": "str", "default": []},
            "cancel_jobs": {"type": "bool", "default": False},
            "people": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    # All users can enter the directories of keys and homes, whatever root's umask.
    os.umask(0o022)
    people = module.params["people"]
    groups, users = accounts.wanted(
        module.params["groups"] + people.get("groups", []), module.params["users"] + people.get("users", [])
    )
    home_root = module.params["home_root"]
    try:
        old = departures.read(departures.RECORD)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    node, locks = accounts.known(), departures.locks(departures.SHADOW)
    record = departures.renewed(old, users, node, locks, home_root)
    # Ansible's own user became root with sudo, and must not be locked out.
    gone = departures.departed(record, users, {*module.params["by_hand"], os.environ.get("SUDO_USER", "")})
    problems = accounts.conflicts(groups, users, node, gone) + accounts.missing_groups(groups, users, node)
    # check-machines found the file, but someone may have moved it away since.
    problems += lost_lists(gone, record, node.users, has_people=not people.get("missing"), has_users=True)
    if problems:
        module.fail_json(msg="; ".join(problems))
    record = departures.marked(record, gone, module.params["cancel_jobs"], people.get("expired", []))
    if record != old and not module.check_mode:
        # First, so that the next run completes an interrupted one.
        departures.write(record, departures.RECORD)
    made = run_all(module, lock_commands(gone, node, locks))
    made += run_all(module, account_commands(groups, users, home_root, record))
    made += write_all_keys(
        module, [accounts.User(name, uid, name, (), "", "", ()) for name, uid in gone.items()] + users
    )
    made += end_sessions(module, {uid: name for name, uid in gone.items()})
    settled = departures.settled(record, gone, users)
    if settled != record and not module.check_mode:
        departures.write(settled, departures.RECORD)
    if module.params["home_store"]:
        made += make_homes(module, users)
    diff = [{"prepared": "\n".join(made)}] if made else []
    cancel = sorted(name for name, one in settled.items() if one.jobs)
    module.exit_json(changed=bool(made), made=made, cancel=cancel, diff=diff)


if __name__ == "__main__":
    main()
