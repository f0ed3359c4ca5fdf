# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Which of the found machines are new. A machine is its serial and its host key; a MAC is only its card."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.slurmstead.discover.identity import fingerprint


@dataclasses.dataclass(frozen=True)
class Known:
    """A machine of the inventory; `device` is the address of its BMC or plug. What is not declared is empty."""

    name: str
    address: str
    macs: Sequence[str] = ()
    serial: str = ""
    host_key: str = ""
    device: str = ""


Record = Mapping[str, Any]
"""What `look` found at an address, with `user`, `machine` and `login` of `login.measure` where that was tried."""


def strangers(records: Iterable[Record], known: Sequence[Known]) -> list[Record]:
    """Return the records of addresses that the inventory does not declare."""
    declared = {one.address for one in known} | {one.device.partition(":")[0] for one in known}
    return [record for record in records if record["address"] not in declared]


def judge(records: Sequence[Record], known: Sequence[Known]) -> dict[str, Any]:
    """Return `new`, the machines that the inventory does not know, and `notes` about those that it knows.

    A new machine is a record with `addresses`, `host_key` (a fingerprint, or empty) and `refused`: why its lines must
    not be written, or empty.
    """
    notes: list[str] = []
    at = {one.address: one for one in known}
    keys = _keys(records, known, at, notes)
    serials = {one.serial: one for one in known if one.serial}
    macs = {record["mac"]: at[record["address"]] for record in records if record["address"] in at}
    macs |= {mac.lower().replace("-", ":"): one for one in known for mac in one.macs}
    new: list[dict[str, Any]] = []
    for record in strangers(records, known):
        serial = _serial(record)
        prints = [fingerprint(key) for key in record["host_keys"]]
        by_key = next((keys[one] for one in prints if one in keys), None)
        by_serial = serials.get(serial) if serial else None
        address, refused = record["address"], ""
        if by_serial and by_serial == by_key:
            notes.append(f"{address} is {by_serial.name}, at another address")
            continue
        if by_serial:
            notes.append(
                f"{address} is {by_serial.name} by its serial {serial}, with another host key. If it was installed "
                f"again, run: scripts/stead replace-node {by_serial.name}"
            )
            continue
        if by_key and serial and by_key.serial:
            refused = f"it has the host key of {by_key.name} and another serial, so its disk is a copy"
        elif by_key:
            notes.append(f"{address} has the host key of {by_key.name}: {by_key.name} at another address, or a copy")
            continue
        if not prints and record["mac"] in macs:
            notes.append(f"{address} has the network card of {macs[record['mac']].name} and does not answer ssh")
            continue
        _add(new, {**record, "addresses": [address], "host_key": next(iter(prints), ""), "refused": refused})
    return {"new": new, "notes": notes}


def _keys(
    records: Iterable[Record], known: Sequence[Known], at: Mapping[str, Known], notes: list[str]
) -> dict[str, Known]:
    """Return the machines of the inventory by the fingerprints that it declares, or that their addresses present."""
    found = {one.host_key: one for one in known if one.host_key}
    for record in records:
        owner = at.get(record["address"])
        prints = [fingerprint(key) for key in record["host_keys"]]
        if owner is None or not prints:
            continue
        if owner.host_key and owner.host_key not in prints:
            notes.append(
                f"{owner.address}, the address of {owner.name}, answers with the host key {prints[0]}, not with "
                f"os_host_key ({owner.host_key}): another machine, or it was installed again"
            )
            continue
        for one in prints:
            found.setdefault(one, owner)
    return found


def _serial(record: Record) -> str:
    return str((record.get("machine") or {}).get("serial") or "")


def _add(new: list[dict[str, Any]], one: dict[str, Any]) -> None:
    """Add a machine, or its second address to the machine that is already there."""
    for other in new:
        serials = {_serial(one), _serial(other)} - {""}
        same_key = bool(one["host_key"]) and one["host_key"] == other["host_key"]
        if same_key and len(serials) == 2:
            for each in (one, other):
                each["refused"] = "another new machine has the same host key, so the disk of one is a copy"
        elif same_key or (not one["host_key"] and not other["host_key"] and one["mac"] == other["mac"]):
            other["addresses"].append(one["address"])
            if not other.get("machine") and one.get("machine"):
                other.update({name: one[name] for name in ("address", "mac", "maker", "user", "machine", "login")})
            return
    new.append(one)
