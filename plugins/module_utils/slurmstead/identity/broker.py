# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The configuration of RabbitMQ, Redis and Celery for the broker's users. Each user has a separate part of both."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import secrets
from collections.abc import Iterable, Mapping

RABBITMQ_PORT = 5672
REDIS_PORTS = range(6379, 6800)
"""One for each user; Slurm's begin at 6817."""

REDIS = "slurmstead-redis@{}.service"
REDIS_FILES = "/etc/redis/slurmstead"
REDIS_DATA = "/var/lib/slurmstead-redis"

HASHING = "rabbit_password_hashing_sha256"

COMMANDS = "+@all -@admin -@dangerous +info +keys +sort +flushdb"
"""Commands that users may run in their own Redis: none that writes files, loads code or connects to another machine.

Celery needs scripts (chords), which can run forever, and Redis runs one command at a time; so each user has a Redis.
"""


class PortsError(ValueError):
    """There are more users than ports; the text says what to do."""


Passwords = Mapping[str, str]
"""Passwords by user, empty for former users: RabbitMQ still has their virtual hosts."""


def with_passwords(known: Passwords, users: Iterable[str]) -> dict[str, str]:
    """Return a password for each user, known or new, and none (an empty one) for former users.

    Passwords need no quoting in a URL. A former user who comes back gets a new one. If there are no more ports, new
    users replace those who left before this run, so all others keep theirs.
    """
    users = list(users)
    new = [user for user in users if user not in known]
    left = [user for user, password in known.items() if not password and user not in users]
    surplus = max(0, len(known) + len(new) - len(REDIS_PORTS))
    successors = dict(zip(left, new[:surplus], strict=False))
    former = dict.fromkeys((successors.get(user, user) for user in known), "")
    return former | {user: known.get(user) or secrets.token_urlsafe(32) for user in users}


def rabbitmq_hash(password: str) -> str:
    """Return a password as RabbitMQ stores it (docs/passwords): salt, and SHA-256 of salt and password.

    The salt is derived from the password, so that a second run writes the same value.
    """
    secret = password.encode()
    salt = hashlib.sha256(b"salt " + secret).digest()[:4]
    return base64.b64encode(salt + hashlib.sha256(salt + secret).digest()).decode()


def definitions(passwords: Passwords, users: Iterable[str]) -> str:
    """Return the definitions that RabbitMQ loads at each start: a virtual host for each user, closed to all others.

    Former users remain in RabbitMQ, but without a password and without permissions.
    """
    wanted = set(users)
    patterns = {user: ".*" if user in wanted else "" for user in sorted(passwords)}
    content = {
        "users": [
            {
                "name": user,
                "password_hash": rabbitmq_hash(passwords[user]) if user in wanted else "",
                "hashing_algorithm": HASHING,
                "tags": "",
            }
            for user in patterns
        ],
        "vhosts": [{"name": user} for user in patterns],
        "permissions": [
            {"user": user, "vhost": user, "configure": pattern, "write": pattern, "read": pattern}
            for user, pattern in patterns.items()
        ],
    }
    return json.dumps(content, indent=2) + "\n"


def redis_ports(passwords: Passwords) -> dict[str, int]:
    """Return the port of each user's Redis: it stays the same, because users keep their place among the passwords.

    :raises PortsError: there are more users than ports
    """
    if len(passwords) > len(REDIS_PORTS):
        current = sum(map(bool, passwords.values()))
        raise PortsError(
            f"the broker has {len(REDIS_PORTS)} ports, but {current} users and {len(passwords) - current} former users "
            "need one each; take the new users out of celery_broker_users and celery_broker_groups and run `up`, then "
            f"add them again: they get the ports of former users. It can have at most {len(REDIS_PORTS)} users"
        )
    return dict(zip(passwords, REDIS_PORTS, strict=False))


def redis_conf(user: str, password: str, port: int) -> str:
    """Return the configuration of a user's Redis; what all have in common is included."""
    digest = hashlib.sha256(password.encode()).hexdigest()
    lines = [
        "include /etc/redis/slurmstead.conf",
        f"port {port}",
        f"dir {REDIS_DATA}/{user}",
        "user default off",
        f"user {user} on #{digest} ~* &* {COMMANDS}",
    ]
    return "\n".join(lines) + "\n"


def settings(user: str, password: str, address: str, redis_port: int) -> str:
    """Return the settings with which a user's Celery connects to the broker.

    >>> print(settings("alice", "pw", "fd00::1", 6379).splitlines()[1])
      "broker_url": "amqp://alice:pw@[fd00::1]:5672/alice",
    """
    host = f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
    content = {
        "broker_url": f"amqp://{user}:{password}@{host}:{RABBITMQ_PORT}/{user}",
        "result_backend": f"redis://{user}:{password}@{host}:{redis_port}/0",
    }
    return json.dumps(content, indent=2) + "\n"
