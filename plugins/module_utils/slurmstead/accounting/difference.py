# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What is in slurmdbd's database, and the commands that make it what is wanted. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ansible.module_utils.slurmstead.accounting import limits
from ansible.module_utils.slurmstead.accounting.limits import ASSOCIATION, QOS, Key
from ansible.module_utils.slurmstead.accounting.wanted import COURSE, Wanted

SHOW = ("sacctmgr", "--noheader", "--parsable2", "show")
PENDING = ("squeue", "--all", "--states=PENDING", "--noheader", "--format=%F|%u|%a|%q")
"""The command whose output `stranded` understands."""

MOST = 8
"""Names in a line for people."""

Keys = Mapping[str, str]


@dataclass(frozen=True)
class Present:
    """What the database has, as it shows it: values by key."""

    qos: Mapping[str, Keys] = field(default_factory=dict)
    accounts: Mapping[str, Keys] = field(default_factory=dict)
    parents: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[tuple[str, str], Keys] = field(default_factory=dict)
    """by account and name"""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """the default account, by user"""


@dataclass(frozen=True)
class Change:
    """A command of sacctmgr, and what it does."""

    command: str
    line: str
    early: bool = False
    """Whether a process of its own must make it first: sacctmgr reads the list of all QOS only once."""


def questions(cluster: str) -> dict[str, tuple[str, ...]]:
    """Return the commands whose output `read` understands; four, however many users there are."""
    own = ["Account", "User", "Partition", *(key.column for key in ASSOCIATION.values())]
    return {
        "qos": (*SHOW, "qos", f"format={','.join(['Name', *(key.column for key in QOS.values())])}"),
        # Their own values, not those of their parents.
        "own": (*SHOW, "assoc", f"cluster={cluster}", "wopinfo", "withrawqoslevel", f"format={','.join(own)}"),
        "tree": (*SHOW, "assoc", f"cluster={cluster}", "format=Account,User,ParentName,Partition"),
        "users": (*SHOW, "user", "format=User,DefaultAccount"),
    }


def read(answers: Mapping[str, str]) -> Present:
    """Return what the answers to `questions` say.

    >>> read({"qos": "", "own": "", "tree": "home||root|\\nhome|ann||", "users": "ann|home"}).parents
    {'home': 'root'}
    """
    qos = {name: dict(zip(QOS, values, strict=True)) for name, *values in _rows(answers["qos"])}
    accounts, users = {}, {}
    for account, user, partition, *values in _rows(answers["own"]):
        keys = dict(zip(ASSOCIATION, values, strict=True))
        if user and not partition:
            users[account, user] = keys
        elif not user:
            accounts[account] = keys
    parents = {account: parent for account, user, parent, _ in _rows(answers["tree"]) if not user and account != "root"}
    defaults = {user: account for user, account in _rows(answers["users"])}
    return Present(qos, accounts, parents, users, defaults)


def _rows(text: str) -> Iterator[list[str]]:
    return (line.split("|") for line in text.splitlines() if line)


def changes(cluster: str, wanted: Wanted, present: Present) -> list[Change]:
    """Return the commands, in an order in which each can succeed: QOS, accounts from the root on, users."""
    return [
        *_qos(wanted, present),
        *_accounts(cluster, wanted, present),
        *_users(cluster, wanted, present),
    ]


def _settings(keys: Mapping[str, Key], wanted: Mapping[str, limits.Value], shown: Keys) -> list[str]:
    names = limits.differing(keys, wanted, shown)
    # A default QOS must be one of those that are allowed before.
    return [limits.setting(name, keys[name], wanted[name], shown.get(name, "")) for name in sorted(names, key=_last)]


def _last(name: str) -> tuple[bool, str]:
    return name == "DefaultQOS", name


def _qos(wanted: Wanted, present: Present) -> Iterator[Change]:
    for name, keys in sorted(wanted.qos.items()):
        words = _settings(QOS, keys, present.qos.get(name, {}))
        if name not in present.qos:
            # Another QOS must exist before this one can preempt it.
            preempt = [word for word in words if word.startswith("Preempt=")]
            words = [word for word in words if word not in preempt]
            yield Change(" ".join(["add qos", name, *words]), " ".join(["+ qos", name, *words]), early=True)
            words = preempt
        if words:
            yield Change(" ".join([f"modify qos where name={name} set", *words]), " ".join(["~ qos", name, *words]))


def _accounts(cluster: str, wanted: Wanted, present: Present) -> Iterator[Change]:
    for name in _from_the_root(wanted.parents):
        parent, shown = wanted.parents[name], present.accounts.get(name, {})
        words = _settings(ASSOCIATION, wanted.accounts.get(name, {}), shown)
        if name not in present.accounts:
            own = [f"parent={parent}", f"cluster={cluster}", f"Description={name}", f"Organization={name}", *words]
            yield Change(" ".join(["add account", name, *own]), " ".join([f"+ account {name} below {parent}", *words]))
            continue
        where = f"modify account where name={name} cluster={cluster} set"
        # A command with a value that it does not change does nothing at all.
        if name in wanted.placed and present.parents.get(name, "root") != parent:
            yield Change(f"{where} parent={parent}", f"~ account {name} below {parent}")
        if words:
            yield Change(" ".join([where, *words]), " ".join(["~ account", name, *words]))


def _from_the_root(parents: Mapping[str, str]) -> list[str]:
    """Return names, each after its parent; those in a circle come last."""
    found: list[str] = []
    waiting = sorted(parents)
    while waiting:
        ready = [name for name in waiting if parents[name] not in waiting] or waiting
        found += ready
        waiting = [name for name in waiting if name not in ready]
    return found


def _users(cluster: str, wanted: Wanted, present: Present) -> Iterator[Change]:
    """Users with the same command share it: each command is a transaction, and an update of slurmctld."""
    new, changed, moved = defaultdict(list), defaultdict(list), defaultdict(list)
    for name, user in sorted(wanted.users.items()):
        shown = present.users.get((user.account, name))
        # A student's earlier account may be the own one again.
        opened = {"GrpSubmitJobs": None} if shown and shown["GrpSubmitJobs"] == "0" else {}
        words = " ".join(_settings(ASSOCIATION, {**opened, **user.keys}, shown or {}))
        if shown is None:
            new[user.account, words].append(name)
        elif words:
            changed[user.account, words].append(name)
        if present.defaults.get(name, user.account) != user.account:
            moved[user.account].append(name)
    for account, name in sorted(present.users):
        if (
            name not in wanted.enrolled
            or account == wanted.users[name].account
            or _is_limited(account, wanted, present)
        ):
            continue
        words = " ".join(_settings(ASSOCIATION, {"GrpSubmitJobs": 0}, present.users[account, name]))
        if words:
            changed[account, words].append(name)
    for (account, words), names in new.items():
        command = f"add user name={','.join(names)} account={account} cluster={cluster} {words}".strip()
        yield Change(command, f"+ {_people(names)} in account {account} {words}".strip())
    for (account, words), names in changed.items():
        where = f"name={','.join(names)} account={account} cluster={cluster}"
        yield Change(f"modify user where {where} set {words}", f"~ {_people(names)} in account {account} {words}")
    for account, names in moved.items():
        where = f"name={','.join(names)} cluster={cluster}"
        yield Change(
            f"modify user where {where} set DefaultAccount={account}", f"~ {_people(names)}: default account {account}"
        )


def _is_limited(account: str, wanted: Wanted, present: Present) -> bool:
    """Return whether the jobs of an account have the limits of a course."""
    keys = {**present.accounts.get(account, {}), **wanted.accounts.get(account, {})}
    return COURSE in limits.meaning(ASSOCIATION["QOS"], limits.text(keys.get("QOS")))


def stranded(wanted: Wanted, present: Present, queue: str) -> Iterator[str]:
    """Yield a line for the jobs that wait with a QOS that their account does not have: Slurm may never start them."""
    found = defaultdict(set)
    for number, user, account, qos in (row for row in _rows(queue) if len(row) == 4):
        keys = wanted.users[user].keys if user in wanted.users and wanted.users[user].account == account else {}
        # A user's own values go before those of the account.
        own = limits.text(keys.get("QOS")) or present.users.get((account, user), {}).get("QOS")
        allowed = () if own else _allowed(account, wanted, present)
        if allowed and qos not in allowed:
            found[account, qos, allowed].add(number)
    for (account, qos, allowed), numbers in sorted(found.items()):
        listed = sorted(numbers, key=lambda number: (len(number), number))
        more = f" and {len(listed) - MOST} more" if len(listed) > MOST else ""
        jobs = f"squeue --all --noheader --states=PENDING --account={account} --qos={qos} --format=%F"
        which = f"{'job' if len(listed) == 1 else 'jobs'} {', '.join(listed[:MOST])}{more} of account {account}"
        yield (
            f"{which} may never start (InvalidQOS), because of the QOS {qos}: with these shares the account has only "
            f"{', '.join(allowed)}. When they are set, run `{jobs} | sort -u | xargs -I JOB scontrol update JobId=JOB "
            f"QOS={allowed[0]}` as root, or cancel the jobs"
        )


def _allowed(account: str, wanted: Wanted, present: Present) -> tuple[str, ...]:
    """Return the QOS of an account or of the next one above it that has any, the default first; empty if unknown."""
    parents = {**wanted.parents, **present.parents, **{name: wanted.parents[name] for name in wanted.placed}}
    name, passed = account, set[str]()
    while name in wanted.parents and name not in passed:
        passed.add(name)
        keys = {**present.accounts.get(name, {}), **wanted.accounts.get(name, {})}
        if words := limits.meaning(ASSOCIATION["QOS"], limits.text(keys.get("QOS"))):
            # With a sign they are a difference to those above.
            is_list = not any(word.startswith(("+", "-")) for word in words)
            return tuple(sorted(words, key=lambda word: (word != keys.get("DefaultQOS"), word))) if is_list else ()
        name = parents[name]
    return ()


def _people(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return f"{'user' if len(names) == 1 else 'users'} {', '.join(names[:MOST])}{more}"


def batches(changes: Sequence[Change]) -> list[list[Change]]:
    """Return the changes by process that makes them; most runs have none, or one."""
    parts = [[change for change in changes if change.early is early] for early in (True, False)]
    return [part for part in parts if part]


def removals(cluster: str, users: Sequence[str], accounts: Sequence[str], present: Present) -> list[Change]:
    """Return the commands that remove users and accounts; their jobs stay recorded."""
    known = {name for _, name in present.users}
    found = [name for name in sorted(users) if name in known]
    gone = [
        Change(f"remove user where name={','.join(found)} cluster={cluster}", f"- {_people(found)}") if found else None
    ]
    # 24.11 removes an account without those below it, and then cannot show any.
    gone += [
        Change(f"remove account where name={name} cluster={cluster}", f"- account {name}")
        for name in reversed(_from_the_root(present.parents))
        if name in accounts
    ]
    return [change for change in gone if change]


def needed(accounts: Sequence[str], wanted: Wanted, present: Present) -> Iterator[str]:
    """Yield why accounts must not be removed. Slurm would remove all users in them, too, and refuse their jobs."""
    parents = {**present.parents, **{name: wanted.parents[name] for name in wanted.placed}}
    for name in sorted(accounts):
        users = [user for user, one in sorted(wanted.users.items()) if one.account == name]
        below = [one for one, parent in sorted(parents.items()) if parent == name and one not in accounts]
        if users:
            yield f"{name}, the account of {_people(users)}"
        elif below:
            yield f"{name}, which is above {', '.join(below)}"
        elif name in wanted.parents:
            yield f"{name}, which is declared or belongs to the template"
