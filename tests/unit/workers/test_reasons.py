"""Whose a drain is, by its reason."""

from __future__ import annotations

import pathlib
import re

import pytest
import yaml

from ansible.module_utils.slurmstead.workers import reasons
from tests.unit.test_health_check import health

ROOT = pathlib.Path(__file__).resolve().parents[3]
SHORT_OF_GRES = "gres/core count reported lower than configured (0 < 4)"
NODES = {
    "n1": {"State": "IDLE+DRAIN", "Reason": "stead shutdown"},
    "n2": {"State": "MIXED+DRAIN", "Reason": "fan"},
    # 24.11 keeps the reason of a node that was resumed.
    "n3": {"State": "IDLE", "Reason": "stead shutdown"},
    "n4": {"State": "DOWN*+DRAIN", "Reason": "stead shutdown"},
    "n5": {"State": "IDLE*", "Reason": ""},
}


def test_the_health_check_and_the_playbooks_begin_their_reasons_alike() -> None:
    assert health.PREFIX == reasons.HEALTH


def test_the_health_check_takes_back_what_the_table_says() -> None:
    assert {start: verdict.authors for start, verdict in health.VERDICTS.items()} == reasons.TAKEN_BACK


def test_the_documentation_has_each_reason_that_slurm_leaves_behind() -> None:
    text = (ROOT / "docs" / "health-checks.md").read_text()

    assert [start for start in (*reasons.TAKEN_BACK, reasons.GRES) if f"`{start}" not in text] == []


def test_no_other_file_spells_a_reason() -> None:
    spelled = re.compile(f"[\"']{reasons.HEALTH}|[\"' ]({'|'.join(reasons.OPERATIONS.values())})[\"'\n]")
    files = [path for place in ("playbooks", "plugins", "roles") for path in (ROOT / place).rglob("*")]
    found = {path.name for path in files if path.suffix in (".py", ".yml") and spelled.search(path.read_text())}

    assert found == {"reasons.py", "health_check.py"}


@pytest.mark.parametrize("path", sorted((ROOT / "playbooks").glob("*.yml")), ids=lambda path: path.stem)
def test_a_playbook_names_an_operation_that_has_a_reason(path: pathlib.Path) -> None:
    assert set(_operations(yaml.safe_load(path.read_text()))) <= reasons.OPERATIONS.keys()


def _operations(data: object) -> list[str]:
    """Every operation that a worker_service task names."""
    if isinstance(data, list):
        return [found for item in data for found in _operations(item)]
    if not isinstance(data, dict):
        return []
    own = [data["worker_service"]["operation"]] if "worker_service" in data else []
    return own + [found for value in data.values() for found in _operations(value)]


def test_only_the_key_is_left_to_the_health_check() -> None:
    resumed = [name for name, text in reasons.OPERATIONS.items() if reasons.is_of_health_check(text)]

    assert resumed == ["rotate-key"]
    assert not any(map(reasons.is_of_health_check, (reasons.REBOOT, reasons.UPGRADE, reasons.CHANGE)))


@pytest.mark.parametrize(("reason", "expected"), [("stead shutdown", ["n1", "n4"]), (None, ["n1", "n2", "n4"])])
def test_what_was_set_down_is_known_by_its_reason_while_it_is_drained(reason: str | None, expected: list[str]) -> None:
    assert reasons.drained(NODES, [*NODES, "n9"], reason) == expected


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        ("IDLE", "", None),
        # 24.11 keeps the reason of a node that was resumed.
        ("IDLE", "fan", None),
        ("IDLE+DRAIN", "fan [loud]", "fan [loud]"),
        ("DOWN+DRAIN+REBOOT_ISSUED", "fan : reboot issued", "fan"),
        ("IDLE+DRAIN", "slurmstead: share /share does not answer", "slurmstead: share /share does not answer"),
        ("MIXED+DRAIN+REBOOT_REQUESTED", "stead reboot", None),
        ("DOWN+DRAIN+REBOOT_ISSUED", "stead reboot : reboot issued", None),
    ],
)
def test_a_drain_of_somebody_is_told_from_that_of_the_reboot(state: str, reason: str, expected: str | None) -> None:
    assert reasons.before_reboot({"State": state, "Reason": reason}) == expected


@pytest.mark.parametrize(
    ("state", "reason", "user", "expected"),
    [
        ("IDLE+DRAIN", SHORT_OF_GRES, "slurm", reasons.OUTDATED),
        ("IDLE+DRAIN+INVALID_REG", SHORT_OF_GRES, "slurm", reasons.OUTDATED),
        ("MIXED+DRAIN", "Duplicate jobid", "slurm", reasons.OUTDATED),
        ("IDLE", SHORT_OF_GRES, "slurm", ""),
        ("IDLE+DRAIN", "Duplicate jobid", "root", reasons.OUTDATED),
        ("IDLE+DRAIN", "Duplicate jobid", "fan", ""),
        ("IDLE+DRAIN", SHORT_OF_GRES, "root", ""),
        ("IDLE+DRAIN", "slurmstead: share is read-only", "slurm", ""),
        ("IDLE+DRAIN", "Kill task failed", "slurm", ""),
    ],
)
def test_only_what_slurm_drained_for_slurmd_is_taken_back(state: str, reason: str, user: str, expected: str) -> None:
    shown = {"State": state, "Reason": reason, "ReasonSetByUser": user, "ReasonChangedAt": "2026-11-20T09:00:00"}

    assert reasons.drained_by_slurm({**shown, "SlurmdStartTime": "2026-11-20T09:00:12"}) == expected
    older = reasons.drained_by_slurm({**shown, "SlurmdStartTime": "2026-11-20T08:59:59"})
    assert older == (reasons.CURRENT if expected else ""), "slurmd may not have registered yet"
