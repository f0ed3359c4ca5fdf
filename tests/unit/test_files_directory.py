"""What an operator brings: which directory counts, and what is handed over from it."""

from __future__ import annotations

import base64
import importlib.util
import pathlib
import subprocess
from typing import Any

import pytest

from ansible.module_utils.slurmstead.inventory.files import drop_ins
from ansible.module_utils.slurmstead.inventory.model import Groups, Inventory
from ansible.module_utils.slurmstead.inventory.structure import drop_ins_can_be_run

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("slurmstead_filters", ROOT / "plugins/filter/slurmstead.py")
assert SPEC is not None and SPEC.loader is not None
filters: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(filters)


def test_the_files_beside_the_inventory_count_if_there_are_some(tmp_path: pathlib.Path) -> None:
    assert filters.files_directory(str(tmp_path)) == str(ROOT / "files")
    (tmp_path / "files").mkdir()
    # Also an empty one: a site does not get half of its drop-ins from elsewhere.
    assert filters.files_directory(str(tmp_path)) == str(tmp_path / "files")


def test_an_inventory_of_the_command_line_has_the_files_of_the_project() -> None:
    assert filters.files_directory(None) == str(ROOT / "files")


def test_programs_are_handed_over_byte_by_byte(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a").write_bytes(bytes(range(256)))
    (tmp_path / "b").symlink_to("a")

    assert filters.programs(str(tmp_path)) == dict.fromkeys("ab", base64.b64encode(bytes(range(256))).decode())


@pytest.mark.parametrize("directory", ["", "/no/such/directory"])
def test_a_directory_that_does_not_exist_has_no_programs(directory: str) -> None:
    assert filters.programs(directory) == {}


def test_a_missing_file_of_people_is_not_one_without_people(tmp_path: pathlib.Path) -> None:
    assert filters.people(str(tmp_path)) == {"groups": [], "users": [], "expired": [], "missing": True}
    (tmp_path / "people.yml").write_text("people: []\n")

    assert filters.people(str(tmp_path)) == {"groups": [], "users": [], "expired": []}


def test_the_project_brings_no_drop_ins_of_its_own() -> None:
    assert not [path for path in (ROOT / "files").glob("*") if path.name != "README.md"]


def test_the_examples_are_drop_ins_that_can_be_run() -> None:
    found = tuple(drop_ins(str(ROOT / "examples")))

    assert found
    assert list(drop_ins_can_be_run(Inventory({}, {}, drop_ins=found), Groups("c", "n", "w"))) == []


@pytest.mark.parametrize(
    ("sensors", "code", "said"),
    [
        ({}, 0, ""),
        ({"soc": "89999", "gpu": "-5000"}, 0, ""),
        ({"soc": "40000", "bigcore0-thermal": "93120"}, 1, "bigcore0-thermal is at 93 C, the limit is 90 C\n"),
        ({"off": None, "soc": "90000"}, 1, "soc is at 90 C, the limit is 90 C\n"),
    ],
)
def test_the_example_sees_a_machine_that_is_too_hot(
    tmp_path: pathlib.Path, sensors: dict[str, str | None], code: int, said: str
) -> None:
    for number, (name, seen) in enumerate(sensors.items()):
        zone = tmp_path / f"thermal_zone{number}"
        zone.mkdir()
        (zone / "type").write_text(f"{name}\n")
        if seen is not None:
            (zone / "temp").write_text(f"{seen}\n")
    text = (ROOT / "examples/health.d/temperature").read_text()
    assert text.count("/sys/class/thermal") == 1

    script = text.replace("/sys/class/thermal", str(tmp_path))
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, timeout=30)

    assert (done.returncode, done.stdout, done.stderr) == (code, said, "")
