# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The accounts of the people who may use the cluster today, as the role `accounts` declares them."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.slurmstead.people.person import People


def accounts(people: People, today: str) -> dict[str, list[Any]]:
    """Return groups and users like accounts_groups and accounts_users, without people who were removed or expired.

    `expired` are the names of the latter, whose jobs go on.

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
            "in_people": True,
        }
        for one in people.people
        if one.is_active(today)
    ]
    expired = [one.name for one in people.people if one.state == "active" and not one.is_active(today)]
    groups = [{"name": name, "gid": gid} for name, gid in people.groups.items()]
    return {"groups": groups, "users": users, "expired": expired}
