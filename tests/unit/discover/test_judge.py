"""A found machine is known by its serial and its host key, not by its card or its address."""

from __future__ import annotations

import base64
from typing import Any

from ansible.module_utils.slurmstead.discover.identity import fingerprint
from ansible.module_utils.slurmstead.discover.judge import Known, judge


def key(name: str) -> str:
    return f"ssh-ed25519 {base64.b64encode(name.encode()).decode()}"


def record(address: str, host: str = "", serial: str = "", mac: str = "52:54:00:00:00:99") -> dict[str, Any]:
    keys = [key(host)] if host else []
    machine = {"serial": serial} if serial else None
    return {"address": address, "mac": mac, "maker": "", "host_keys": keys, "machine": machine, "user": "", "login": ""}


NODE1 = Known("node1", "10.0.0.1", ("52:54:00:00:00:01",), "S1", fingerprint(key("one")), "10.0.9.1:623")
NODE2 = Known("node2", "10.0.0.2")
"""Known before `stead discover` wrote serials and keys."""


def found(*records: dict[str, Any]) -> tuple[list[list[str]], list[str], list[str]]:
    """The addresses of the new machines, why they are refused, and the notes."""
    judged = judge(records, [NODE1, NODE2])
    new = judged["new"]
    return [one["addresses"] for one in new], [one["refused"] for one in new], judged["notes"]


def test_what_is_at_a_declared_address_or_is_a_declared_bmc_is_not_new() -> None:
    assert found(record("10.0.0.1", "one"), record("10.0.0.2", "two"), record("10.0.9.1")) == ([], [], [])


def test_another_serial_and_host_key_is_new_with_a_known_card_too() -> None:
    new, refused, notes = found(record("10.0.0.7", "seven", "S7", mac=NODE1.macs[0]))

    assert (new, refused, notes) == ([["10.0.0.7"]], [""], [])


def test_a_known_machine_at_another_address_with_another_card_is_not_new() -> None:
    assert found(record("10.0.0.7", "one", "S1")) == ([], [], ["10.0.0.7 is node1, at another address"])


def test_a_machine_without_declared_identity_is_known_by_the_key_at_its_address() -> None:
    new, _, notes = found(record("10.0.0.2", "two"), record("10.0.0.7", "two"))

    assert new == []
    assert notes == ["10.0.0.7 has the host key of node2: node2 at another address, or a copy"]


def test_a_machine_that_was_installed_again_is_known_by_its_serial() -> None:
    new, _, notes = found(record("10.0.0.7", "fresh", "S1"))

    assert new == []
    assert "10.0.0.7 is node1 by its serial S1, with another host key" in notes[0]
    assert notes[0].endswith("scripts/stead replace-node node1")


def test_a_copied_disk_is_refused() -> None:
    new, refused, _ = found(record("10.0.0.7", "one", "S7"))

    assert new == [["10.0.0.7"]]
    assert refused == ["it has the host key of node1 and another serial, so its disk is a copy"]


def test_two_new_machines_with_one_host_key_are_both_refused() -> None:
    new, refused, _ = found(record("10.0.0.7", "copy", "S7"), record("10.0.0.8", "copy", "S8", "52:54:00:00:00:08"))

    assert new == [["10.0.0.7"], ["10.0.0.8"]]
    assert all("disk of one is a copy" in one for one in refused)


def test_the_second_address_of_a_new_machine_is_not_a_second_machine() -> None:
    pair = (record("10.0.0.7", "seven", "S7"), record("10.0.0.8", "seven", "S7", "52:54:00:00:00:08"))

    assert found(*pair) == ([["10.0.0.7", "10.0.0.8"]], [""], [])


def test_another_key_at_a_declared_address_is_reported() -> None:
    new, _, notes = found(record("10.0.0.1", "intruder"))

    assert new == []
    assert "10.0.0.1, the address of node1, answers with the host key" in notes[0]


def test_the_key_of_an_intruder_does_not_become_that_of_the_machine() -> None:
    new, _, _ = found(record("10.0.0.1", "intruder"), record("10.0.0.7", "intruder"))

    assert new == [["10.0.0.7"]]


def test_a_known_card_that_does_not_answer_ssh_is_not_new() -> None:
    new, _, notes = found(record("10.0.0.203", mac=NODE1.macs[0]))

    assert (new, notes) == ([], ["10.0.0.203 has the network card of node1 and does not answer ssh"])


def test_a_card_that_answers_at_a_declared_address_is_known_too() -> None:
    card = "52:54:00:00:00:02"
    new, _, notes = found(record("10.0.0.2", "two", mac=card), record("10.0.0.253", mac=card))

    assert (new, notes) == ([], ["10.0.0.253 has the network card of node2 and does not answer ssh"])
