# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The accounts of the people who may use the cluster today, as the role `accounts` declares them."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.slurmstead.people.person import People


def accounts(people: People, today: str) -> dict[str, list[dict[str, Any]]]:
    """Return groups and users like accounts_groups and accounts_users. Who has left or expired is missing.

    :param today: in UTC, as 2027-02-28
    """
    users = [
        {
            "name": one.name,
            "uid": one.uid,
            "groups": [one.group] if one.group else [],
            "comment": one.full_name,
            "keys": list(one.keys),
            "expires": one.expires,
        }
        for one in people.people
        if one.is_active(today)
    ]
    return {"groups": [{"name": name, "gid": gid} for name, gid in people.groups.items()], "users": users}
