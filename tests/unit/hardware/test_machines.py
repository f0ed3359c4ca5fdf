"""Real machines, as tests/machines.yml describes them: what becomes of them in slurm.conf, by version of Slurm."""

from __future__ import annotations

import copy
import functools
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from ansible.module_utils.slurmstead.conf import text as conf_text
from ansible.module_utils.slurmstead.conf import versions as conf_versions
from ansible.module_utils.slurmstead.hardware import node_lines
from ansible.module_utils.slurmstead.hardware.slurmd_parameters import slurmd_parameters
from tests import machines

VERSIONS = tuple(conf_versions.TABLE)
TABLE: dict[str, dict[str, Any]] = yaml.safe_load(pathlib.Path(machines.__file__).with_suffix(".yml").read_text())


def expected(spans: dict[str, str], version: str) -> str:
    """What a mapping by span of versions, such as `22.05..24.11`, has for one of them."""
    found = []
    for span, text in spans.items():
        first, _, last = span.partition("..")
        if VERSIONS.index(first) <= VERSIONS.index(version) <= VERSIONS.index(last or first):
            found.append(text)
    assert len(found) == 1, f"the spans {list(spans)} must have {version} once"
    return found[0]


Measure = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def measure(tmp_path_factory: pytest.TempPathFactory) -> Measure:
    """Return a function that measures a machine of the table; a machine of hundreds of files is written once."""

    @functools.cache
    def once(name: str) -> dict[str, Any]:
        return machines.measure(tmp_path_factory.mktemp("machine"), machines.Machine(**TABLE[name]["machine"]))

    return lambda name, version=None: {**copy.deepcopy(once(name)), "slurm": version}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", TABLE)
def test_a_machine_has_its_line(measure: Measure, name: str, version: str) -> None:
    entry = TABLE[name]
    hardware = measure(name, version)

    line = conf_text.slurm_lines({"a": node_lines.node_keys(hardware, {})}, "NodeName")

    assert line == f"NodeName=a {expected(entry['lines'], version)}"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", TABLE)
def test_a_cluster_of_a_machine_has_the_parameters_it_needs(measure: Measure, name: str, version: str) -> None:
    entry = TABLE[name]
    hardware = measure(name, version)

    words, warnings = slurmd_parameters({"a": hardware, "b": hardware}, ["a", "b"])

    wanted = entry.get("parameters", {"21.08..24.11": ""})
    assert ",".join(words) + "!" * len(warnings) == expected(wanted, version)


@pytest.mark.parametrize("name", TABLE)
def test_a_line_has_no_more_cpus_than_the_machine(measure: Measure, name: str) -> None:
    hardware = measure(name)

    keys = node_lines.node_keys(hardware, {})

    assert keys["SocketsPerBoard"] * keys["CoresPerSocket"] * keys["ThreadsPerCore"] == keys["CPUs"]
    assert keys["CPUs"] <= hardware["cpus"]


def test_the_table_has_machines_of_all_kinds() -> None:
    assert len(TABLE) >= 25
