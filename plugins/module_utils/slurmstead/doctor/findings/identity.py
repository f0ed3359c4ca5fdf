# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Clocks, accounts and keys: the requirements for mutual authentication."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ansible.module_utils.slurmstead.doctor.finding import Cluster, Finding, both

CLOCK = 1.0
"""Seconds. MUNGE tolerates 300; chrony keeps clocks within milliseconds."""

KEY_MODE = "0400 munge:munge"
AGREE = "run `stead up --tags munge`"
COMPARE = "compare keys and clocks of both, and see `journalctl -u munge`"
EXPLAIN_REFUSAL = ("key", "clock", "munge", "service munge")
"""Findings about a machine that explain why it and another refuse each other's credentials."""

MAKESTEP = "see `chronyc sources`; `chronyc makestep` corrects it at once"


def clocks(cluster: Cluster) -> Iterator[Finding]:
    """No clock differs from control's clock, and control's clock does not differ from all others."""
    least, most = cluster.brain.get("offset", (0.0, 0.0))
    others = {name: facts["offset"] for name, facts in cluster.machines.items() if name != cluster.control}
    # Bounds, because answers have a delay.
    bounds = {name: (low - most, high - least) for name, (low, high) in others.items()}
    off = {name: low if low > 0 else high for name, (low, high) in bounds.items() if low > CLOCK or high < -CLOCK}
    if cluster.brain and 1 < len(off) == len(bounds) and _agree(bounds.values()):
        # The other machines follow control's clock, so their chrony considers their own clocks wrong.
        seen = f"its clock is at least {_apart(-min(off.values(), key=abs))} the clocks of all others"
        yield Finding(cluster.control, "clock", seen, f"{MAKESTEP}, or `date --set` if it has no server")
        return
    for name, facts in cluster.machines.items():
        by_chrony = facts["clock"]["offset"] or 0.0
        if name in off:
            seen = f"its clock is at least {_apart(off[name])} that of {cluster.control}"
        elif abs(by_chrony) > CLOCK:
            seen = f"its clock is {abs(by_chrony):.0f} s off according to chrony"
        else:
            continue
        yield Finding(name, "clock", seen, MAKESTEP)


def _agree(bounds: Collection[tuple[float, float]]) -> bool:
    """Say whether clocks can be equal, given the minimum and maximum lead of each."""
    return max(low for low, _ in bounds) - min(high for _, high in bounds) <= CLOCK


def _apart(error: float) -> str:
    return f"{abs(error):.0f} s {'ahead of' if error > 0 else 'behind'}"


def time_sources(cluster: Cluster) -> Iterator[Finding]:
    """chrony has a source of time."""
    for name, facts in cluster.running("chrony"):
        error = facts["clock"]["error"]
        if error:
            advice = f"does {cluster.control} answer it? See `chronyc sources`"
            yield Finding(name, "time", f"chrony: {error}", advice, both([name], "service chrony"))


def accounts(cluster: Cluster) -> Iterator[Finding]:
    """A user has the same numeric IDs everywhere: files and jobs record only these."""
    for name, facts in cluster.machines.items():
        for user, wanted in cluster.accounts.items():
            there = facts["accounts"].get(user)
            if there is None:
                yield Finding(name, "accounts", f"the user {user} is missing", "run `stead up --tags accounts`")
            elif tuple(there) != wanted:
                seen = f"{user} has the IDs {_ids(there)}, but {_ids(wanted)} in the inventory"
                advice = "change the owner of the files, then run usermod and groupmod"
                yield Finding(name, "accounts", seen, advice)
        known = cluster.brain.get("accounts", {})
        for user, there in facts["accounts"].items():
            if user in known and user not in cluster.by_hand | cluster.accounts.keys() and known[user] != there:
                seen = f"{user} has the IDs {_ids(there)}, but {_ids(known[user])} on {cluster.control}"
                yield Finding(name, "accounts", seen, "declare the user in accounts_users, with one number")


def groups(cluster: Cluster) -> Iterator[Finding]:
    """A group has the same numeric ID everywhere."""
    for name, facts in cluster.machines.items():
        # A user's own group is reported with the user.
        causes = both([name], "accounts")
        for group, wanted in cluster.groups.items():
            there = facts["groups"].get(group)
            if there is None:
                advice = "run `stead up --tags accounts`"
                yield Finding(name, "groups", f"the group {group} is missing", advice, causes)
            elif there != wanted:
                seen = f"the group {group} has the ID {there}, but {wanted} in the inventory"
                yield Finding(name, "groups", seen, "change the group of the files, then run groupmod", causes)
        known = cluster.brain.get("groups", {})
        for group, there in facts["groups"].items():
            if known.get(group, there) != there and group not in cluster.by_hand | cluster.groups.keys():
                seen = f"the group {group} has the ID {there}, but {known[group]} on {cluster.control}"
                yield Finding(name, "groups", seen, "declare the group in accounts_groups, with one number", causes)


def _ids(numbers: tuple[int, int]) -> str:
    return f"{numbers[0]}:{numbers[1]}"


def keys(cluster: Cluster) -> Iterator[Finding]:
    """All machines have control's MUNGE key, and only munged can read it."""
    born = cluster.brain.get("key", {}).get("digest")
    for name, facts in cluster.machines.items():
        key = facts["key"]
        if key["error"]:
            yield Finding(name, "key", f"/etc/munge/munge.key cannot be read: {key['error']}", AGREE)
        elif born and key["digest"] != born:
            yield Finding(name, "key", f"its MUNGE key differs from that of {cluster.control}", AGREE)
        elif key["mode"] != KEY_MODE:
            yield Finding(name, "key", f"its MUNGE key is {key['mode']}; expected {KEY_MODE}", AGREE)


def signatures(cluster: Cluster) -> Iterator[Finding]:
    """munge signs."""
    for name, facts in cluster.machines.items():
        error = facts["credential"]["error"]
        if error:
            advice = "see `journalctl -u munge`"
            yield Finding(
                name, "munge", f"it cannot sign credentials: {error}", advice, both([name], "service munge", "key")
            )


def round_trips(cluster: Cluster) -> Iterator[Finding]:
    """All machines use the same key: control, or else the first that signs, has exchanged credentials with each."""
    old = {name for name in cluster.machines if _has_old_key(cluster, name)}
    for name in sorted(old):
        yield Finding(name, "munge", "munge still uses the previous key", "`systemctl restart munge`")
    signers = [name for name, facts in cluster.machines.items() if facts["credential"].get("text")]
    center = next((name for name in [cluster.control, *signers] if name in signers), cluster.control)
    refusals: dict[str, list[tuple[str, str, str]]] = {}
    for reader, refused in cluster.refused.items():
        for signer, said in refused.items():
            if not old & {reader, signer} and _same_key(cluster, reader, signer):
                other = signer if reader == center else reader
                refusals.setdefault(other, []).append((reader, signer, said.removeprefix("unmunge: ")))
    if len(signers) > 2 and set(signers) <= refusals.keys() | {center}:
        # It agrees with none of the others, so it is the one that differs.
        causes = both([center], *EXPLAIN_REFUSAL)
        seen = f"it and all other machines refuse each other's credentials ({refusals.popitem()[1][0][2]})"
        yield Finding(center, "credential", seen, f"{COMPARE} on {center}", causes)
        return
    for name, seen_there in refusals.items():
        reader, signer, said = seen_there[0]
        causes = both([reader, signer], *EXPLAIN_REFUSAL)
        if len(seen_there) > 1:
            seen = f"it and {center} refuse each other's credentials ({said})"
        elif reader == name:
            seen = f"it cannot decode credentials of {signer} ({said})"
        else:
            seen = f"{reader} cannot decode its credentials ({said})"
        yield Finding(name, "credential", seen, f"{COMPARE} on {name}", causes)


def _same_key(cluster: Cluster, *names: str) -> bool:
    """Say whether the files of the keys are equal, as far as is known; `keys` reports one that differs."""
    digests = {cluster.machines.get(name, {}).get("key", {}).get("digest") for name in names}
    return len(digests - {None}) < 2


def _has_old_key(cluster: Cluster, name: str) -> bool:
    """Whether munged was started before its key was written, and other machines refuse its credentials."""
    facts = cluster.machines[name]
    noticed = cluster.refused.get(name) or any(name in refused for refused in cluster.refused.values())
    started = facts["units"].get("munge", {}).get("started", 0.0)
    # The start time has a resolution of one second.
    return bool(noticed) and 0 < started < facts["key"].get("written", 0.0) - 1
