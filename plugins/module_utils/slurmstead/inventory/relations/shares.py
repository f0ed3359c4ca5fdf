# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for shares and limits: sacctmgr would find such a mistake only after users exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.slurmstead.accounting import limits
from ansible.module_utils.slurmstead.accounting.limits import ASSOCIATION, QOS, Key
from ansible.module_utils.slurmstead.inventory.model import Violation, did_you_mean, shown

Values = Mapping[str, Any]

FOREIGN = ("AccountingStorageHost", "AccountingStorageType")
"""Keys of slurm_config with which a site has a slurmdbd of its own, or none, as in playbooks/vars/cluster.yml."""

DEFAULT_PORT = "6819"
"""The port of slurmdbd, if slurm_config names none."""


def share_accounts_are_possible(shares_accounts: Values) -> Iterator[Violation]:
    """An account has a name and keys that Slurm knows, and no parents in a circle."""
    yield from _keys("shares_accounts", shares_accounts, {**ASSOCIATION, "Parent": Key("", "name")})
    for name in shares_accounts:
        seen, parent = [str(name)], name
        while isinstance(shares_accounts.get(parent), Mapping) and (parent := shares_accounts[parent].get("Parent")):
            if parent in seen:
                way = " below ".join([*seen, str(parent)])
                yield "shares_accounts", f"has a circle: {way}", "Correct a Parent"
                break
            seen.append(str(parent))


def share_users_are_possible(shares_users: Values) -> Iterator[Violation]:
    """A user has keys that Slurm knows."""
    yield from _keys("shares_users", shares_users, {**ASSOCIATION, "Account": Key("", "name")})


def share_qos_are_possible(shares_qos: Values) -> Iterator[Violation]:
    """A QOS has a name and keys that Slurm knows."""
    yield from _keys("shares_qos", shares_qos, QOS)


def removed_users_are_no_people(
    shares_remove_users: Sequence[str], accounts_users: Sequence[Mapping[str, Any]]
) -> Iterator[Violation]:
    """A user who can log in must be able to submit."""
    for name in sorted({str(user["name"]) for user in accounts_users} & {str(name) for name in shares_remove_users}):
        advice = f"Remove {name} from one of the two"
        yield "shares_remove_users", f"has {name}, who is in accounts_users", advice


def half_life_is_a_time(shares_half_life: str | None) -> Iterator[Violation]:
    """YAML reads 12:00:00 as a number."""
    if shares_half_life and (why := limits.wrong(Key("", "time"), shares_half_life)):
        yield "shares_half_life", f"is {shown(shares_half_life)}, which {why}", "Write a time such as '7-0'"


def limits_need_accounts(
    accounting_enabled: bool,
    slurm_config: Mapping[str, Any],
    shares_template: str,
    shares_low: str,
    shares_accounts: Values,
    shares_users: Values,
    shares_qos: Values,
    sandbox_accounts: Sequence[str],
) -> Iterator[Violation]:
    """Without slurmdbd no job has an account, so no limit is enforced; in a slurmdbd of the site's own, none is set."""
    foreign = next((key for key in FOREIGN if key in slurm_config), "")
    if accounting_enabled and not foreign:
        return
    given = {
        "shares_template": shares_template if shares_template != "home" else "",
        "shares_low": shares_low if shares_low != "none" else "",
        "shares_accounts": shares_accounts,
        "shares_users": shares_users,
        "shares_qos": shares_qos,
        # In a slurmdbd of the site's own there can be such accounts.
        "sandbox_accounts": () if foreign else sandbox_accounts,
    }
    for variable in [name for name, value in given.items() if value]:
        if foreign:
            wrong = f"is set, but slurm_config has {foreign}, and Slurmstead changes only a slurmdbd of its own"
            yield variable, wrong, "Remove it, and use sacctmgr, or remove that key"
        else:
            wrong = "is set, but without accounting_enabled Slurm knows no accounts and limits"
            yield variable, wrong, "Remove it, or set accounting_enabled: true"


def own_slurmdbd_has_its_port(accounting_enabled: bool, slurm_config: Mapping[str, Any]) -> Iterator[Violation]:
    """The slurmdbd of Slurmstead listens on Slurm's default port, and slurmctld would ask another one."""
    port = slurm_config.get("AccountingStoragePort")
    ours = accounting_enabled and not any(key in slurm_config for key in FOREIGN)
    if ours and port is not None and str(port) != DEFAULT_PORT:
        wrong = f"has AccountingStoragePort: {shown(port)}, but the slurmdbd of Slurmstead listens on {DEFAULT_PORT}"
        yield "slurm_config", wrong, "Remove it, or name a slurmdbd of yours with AccountingStorageHost"


def _keys(variable: str, values: Values, known: Mapping[str, Key]) -> Iterator[Violation]:
    for name, keys in values.items():
        if variable != "shares_users" and not limits.NAME.fullmatch(str(name)):
            yield variable, f"has the name {shown(name)}", "Use lower case, digits, and . _ -"
        if not isinstance(keys, Mapping):
            yield variable, f"has {shown(keys)} for {name}", "Write keys and values, such as {Fairshare: 2}"
            continue
        for key, value in keys.items():
            if key not in known:
                advice = did_you_mean(str(key), known, f"Use one of {', '.join(sorted(known))}")
                yield variable, f"has the key {shown(key)} of {name}, which Slurmstead does not know", advice
            elif why := limits.wrong(known[key], value):
                yield variable, f"has {key}: {shown(value)} of {name}, which {why}", "See sacctmgr(1)"
