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
REDIS_PORT = 6379

HASHING = "rabbit_password_hashing_sha256"

COMMANDS = "+@all -@admin -@dangerous -scan -randomkey -pubsub"
"""Commands that a user of Redis may run; the last three would list keys and channels of all users."""

Passwords = Mapping[str, str]
"""Passwords by user, of all current and former users."""


def with_passwords(known: Passwords, users: Iterable[str]) -> dict[str, str]:
    """Return the known passwords, and new ones for users without one; they need no quoting in a URL."""
    return {**{user: secrets.token_urlsafe(32) for user in users}, **known}


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


def redis_users(passwords: Passwords, users: Iterable[str]) -> str:
    """Return the users' lines of redis.conf: each can access the keys and channels that begin with its name."""
    hashes = {user: hashlib.sha256(passwords[user].encode()).hexdigest() for user in sorted(users)}
    lines = [f"user {user} on #{text} ~{user}:* &{user}:* {COMMANDS}\n" for user, text in hashes.items()]
    return "".join(["user default off\n", *lines])


def settings(user: str, password: str, address: str) -> str:
    """Return the settings with which a user's Celery connects to the broker.

    >>> print(settings("alice", "pw", "fd00::1").splitlines()[1])
      "broker_url": "amqp://alice:pw@[fd00::1]:5672/alice",
    """
    host = f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
    content = {
        "broker_url": f"amqp://{user}:{password}@{host}:{RABBITMQ_PORT}/{user}",
        "result_backend": f"redis://{user}:{password}@{host}:{REDIS_PORT}/0",
        "result_backend_transport_options": {"global_keyprefix": f"{user}:"},
    }
    return json.dumps(content, indent=2) + "\n"
