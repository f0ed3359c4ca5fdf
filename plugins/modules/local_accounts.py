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
  - If a name or ID belongs to another account, refuses before it changes anything. Never renumbers or removes accounts.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  groups: {type: list, elements: dict, default: [], description: Groups with C(name) and C(gid).}
  users:
    description: Users with C(name), C(uid) and optionally C(group), C(groups), C(comment), C(shell) and C(keys).
    type: list
    elements: dict
    default: []
  home_root: {type: path, required: true, description: Directory of the home directories as every node sees it.}
  home_store: {type: path, description: The same directory on the node that stores it; unset on all others.}
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
"""

import grp
import os
import pathlib
import pwd
import shutil

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.identity import accounts
from ansible.module_utils.slurmstead.reach import durable

SKELETON = pathlib.Path("/etc/skel")
KEYS = pathlib.Path("/etc/ssh/authorized_keys.d")
"""Keys are here and not in the homes, so that root does not write where users can, and a login needs no share."""


def account_commands(groups: list[accounts.Group], users: list[accounts.User], home_root: str) -> list[list[str]]:
    """Return the commands that bring this node's accounts to the declared state."""
    commands = []
    node = accounts.known()
    for group in groups:
        if group.name not in node.groups:
            commands.append(["groupadd", "--gid", str(group.gid), group.name])
    members = {name: {group.gr_name for group in grp.getgrall() if name in group.gr_mem} for name in node.users}
    for user in users:
        home = f"{home_root}/{user.name}"
        if user.name not in node.users:
            command = ["useradd", "--uid", str(user.uid), "--gid", user.group, "--no-create-home", "--home-dir", home]
            command += ["--shell", user.shell, "--comment", user.comment]
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
        missing = set(user.groups) - members[user.name]
        if missing:
            options += ["--append", "--groups", ",".join(sorted(missing))]
        if options:
            commands.append(["usermod", *options, user.name])
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


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "groups": {"type": "list", "elements": "dict", "default": []},
            "users": {"type": "list", "elements": "dict", "default": []},
            "home_root": {"type": "path", "required": True},
            "home_store": {"type": "path"},
        },
        supports_check_mode=True,
    )
    # All users can enter the directories of keys and homes, whatever root's umask.
    os.umask(0o022)
    groups, users = accounts.wanted(module.params["groups"], module.params["users"])
    problems = accounts.conflicts(groups, users, accounts.known())
    if problems:
        module.fail_json(msg="; ".join(problems))
    made = []
    for command in account_commands(groups, users, module.params["home_root"]):
        made.append(" ".join(command))
        if not module.check_mode:
            module.run_command(command, check_rc=True)
    for user in users:
        if keys_differ(user):
            made.append(f"keys of {user.name}")
            if not module.check_mode:
                write_keys(user)
    if module.params["home_store"]:
        store = pathlib.Path(module.params["home_store"])
        homes = {user: store / user.name for user in users if not (store / user.name).exists()}
        made += [f"home {home}" for home in homes.values()]
        if not module.check_mode:
            store.mkdir(parents=True, exist_ok=True)
            for user, home in homes.items():
                make_home(user, home)
    module.exit_json(changed=bool(made), made=made, diff=[{"prepared": "\n".join(made)}] if made else [])


if __name__ == "__main__":
    main()
