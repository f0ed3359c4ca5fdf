# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What RabbitMQ, Redis and Celery are told of the users of the broker. Each user has a part of both for its own."""

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
"""What a user of Redis may say; the last three would name keys and channels of all users."""

Passwords = Mapping[str, str]
"""Password by user, of all that ever were users."""


def with_passwords(known: Passwords, users: Iterable[str]) -> dict[str, str]:
    """Return the passwords that are known and new ones for users that have none; they need no quoting in a URL."""
    return {**{user: secrets.token_urlsafe(32) for user in users}, **known}


def rabbitmq_hash(password: str) -> str:
    """Return a password as RabbitMQ keeps it (docs/passwords): salt, and SHA-256 of salt and password.

    The salt is made of the password, so that a second run writes the same.
    """
    secret = password.encode()
    salt = hashlib.sha256(b"salt " + secret).digest()[:4]
    return base64.b64encode(salt + hashlib.sha256(salt + secret).digest()).decode()


def definitions(passwords: Passwords, users: Iterable[str]) -> str:
    """Return what RabbitMQ reads at each start: a virtual host for each user, which nobody else may use.

    Who is no user any more stays known to RabbitMQ, and is left without a password and without permissions.
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
    """Return the users of Redis as redis.conf has them: each reaches the keys and channels that begin with its name."""
    hashes = {user: hashlib.sha256(passwords[user].encode()).hexdigest() for user in sorted(users)}
    lines = [f"user {user} on #{text} ~{user}:* &{user}:* {COMMANDS}\n" for user, text in hashes.items()]
    return "".join(["user default off\n", *lines])


def settings(user: str, password: str, address: str) -> str:
    """Return the settings of Celery that take a user to the broker.

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
