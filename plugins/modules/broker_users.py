#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Create the passwords of the broker's users on the broker's node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: broker_users
short_description: Create the passwords of the broker's users on the broker's node
description:
  - Creates a password for each user without one, stores all of them in one file that only root can read, and returns
    the configuration of RabbitMQ, Redis and the users' programs. Passwords of former users are removed.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  users: {type: list, elements: str, required: true, description: Users who may use the broker.}
  address: {type: str, required: true, description: Address on which the broker listens.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Create the passwords
  broker_users:
    users: [alice]
    address: 192.168.1.103
  no_log: true
  diff: false
"""

RETURN = r"""
definitions: {description: Definitions that RabbitMQ loads when it starts., type: str, returned: always}
redis_files: {description: Files of the users' Redis instances for config_files., type: list, returned: always}
redis_commands: {description: Commands that make these instances load them., type: list, returned: always}
files: {description: 'Files for config_files to write on each node.', type: list, returned: always}
"""

import json
import os
import pathlib
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.identity import broker
from ansible.module_utils.slurmstead.reach import durable

PASSWORDS = pathlib.Path("/etc/slurmstead/celery_broker.json")
CLIENTS = "/etc/slurmstead/celery"
"""Directory of the users' files, on every node."""


def redis_files(passwords: broker.Passwords, users: list[str]) -> list[dict[str, Any]]:
    """Return the entries for config_files: one Redis per current user; those of former users are stopped."""
    ports = broker.redis_ports(passwords)
    files: list[dict[str, Any]] = [{"path": broker.REDIS_FILES, "state": "directory"}]
    for user, password in passwords.items():
        file: dict[str, Any] = {"path": f"{broker.REDIS_FILES}/{user}.conf"}
        unit = broker.REDIS.format(user)
        if user in users:
            content = broker.redis_conf(user, password, ports[user])
            file |= {"content": content, "group": "redis", "mode": "0640", "apply": [f"systemctl try-restart {unit}"]}
        else:
            file |= {"state": "absent", "apply": [f"systemctl stop {unit}"]}
        files.append(file)
    return files


def client_files(passwords: broker.Passwords, users: list[str], address: str) -> list[dict[str, Any]]:
    """Return the entries for config_files: one file per current user; former users' files are removed."""
    ports = broker.redis_ports(passwords)
    private = [
        {
            "path": f"{CLIENTS}/{user}.json",
            "content": broker.settings(user, passwords[user], address, ports[user]),
            "owner": user,
            "mode": "0400",
        }
        for user in users
    ]
    former = [{"path": f"{CLIENTS}/{user}.json", "state": "absent"} for user in sorted(set(passwords) - set(users))]
    return [*private, *former]


def write(passwords: broker.Passwords, path: pathlib.Path) -> None:
    """Write the file atomically; no other user can read it at any moment."""
    path.parent.mkdir(mode=0o755, exist_ok=True)
    durable.write(path, json.dumps(passwords).encode(), mode=0o400)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "users": {"type": "list", "elements": "str", "required": True},
            "address": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    users: list[str] = module.params["users"]
    os.umask(0o022)
    try:
        known = json.loads(PASSWORDS.read_text()) if PASSWORDS.exists() else {}
        passwords = broker.with_passwords(known, users)
        redis = redis_files(passwords, users)
        if passwords != known and not module.check_mode:
            write(passwords, PASSWORDS)
    except broker.PortsError as error:
        module.fail_json(msg=str(error))
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"{PASSWORDS} cannot be used: {error}; move it away, and every user gets a new password")
    module.exit_json(
        changed=passwords != known,
        definitions=broker.definitions(passwords, users),
        redis_files=redis,
        redis_commands=[command for file in redis for command in file.get("apply", ())],
        files=client_files(passwords, users, module.params["address"]),
    )


if __name__ == "__main__":
    main()
