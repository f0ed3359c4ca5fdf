"""The log of power saving, and what it saved."""

from __future__ import annotations

import gzip
import json
import pathlib

import pytest

from ansible.module_utils.slurmstead.power import journal, watch
from ansible.module_utils.slurmstead.power.journal import ASLEEP, AWAKE, Entry
from ansible.module_utils.slurmstead.power.savings import savings
from ansible.module_utils.slurmstead.power.watch import Configuration, Memories, Watch


def test_rotated_logs_are_read_too_and_the_oldest_comes_first(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "power.log"
    older, oldest = ({"at": at, "node": "node1", "what": ASLEEP, "why": ""} for at in (2.0, 1.0))
    journal.write(path, Entry(3.0, "node1", AWAKE, "it is on"))
    (tmp_path / "power.log.1").write_text(json.dumps(older))
    (tmp_path / "power.log.2.gz").write_bytes(gzip.compress(json.dumps(oldest).encode()))

    assert [one.at for one in journal.read(path)] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "half", ['{"at": 1.0, "no', '{"at": "soon", "node": "n", "what": "w", "why": ""}', "[]", "\xff"]
)
def test_what_a_power_cut_left_costs_no_other_line(tmp_path: pathlib.Path, half: str) -> None:
    path = tmp_path / "power.log"
    path.write_text(half)
    entries = [Entry(2.0, "node1", ASLEEP), Entry(3.0, "node1", AWAKE)]
    for entry in entries:
        journal.write(path, entry)

    assert journal.read(path) == entries


def test_an_event_that_was_noted_twice_counts_once() -> None:
    entries = [Entry(0, "n1", ASLEEP), Entry(3600, "n1", ASLEEP), Entry(7200, "n1", AWAKE), Entry(9000, "n1", AWAKE)]
    found = savings(entries, {"n1": 100.0}, 0.0, (0, 10000), ["n1"])

    assert [(one.hours, one.sleeps, one.kwh, one.money) for one in found] == [(2.0, 1, 0.2, None)]


def test_the_sleep_of_a_machine_that_may_not_sleep_any_more_ends(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "run", lambda *_, **__: (0, "", ""))
    path = tmp_path / "memory.json"
    path.write_text(json.dumps({"machines": {"node1": {"asleep": True}, "node2": {}}}))
    noted: list[Entry] = []
    for _ in range(2):
        Watch(Configuration(()), Memories(path), noted.append).look()

    assert [(one.node, one.what) for one in noted] == [("node1", AWAKE)]
