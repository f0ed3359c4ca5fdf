"""The table of Slurm's keys: what differs between versions, and that what Slurmstead writes itself fits all of them."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from ansible.module_utils.slurmstead.conf import keys as conf_keys
from ansible.module_utils.slurmstead.inventory.relations import slurm

ROOT = pathlib.Path(__file__).resolve().parents[3]

# Release notes and option tables of Slurm, read for each version.
SPANS = {
    "MaxNodeCount": (conf_keys.SLURM_CONF, ("22.05", "23.11", "24.11")),
    "SlurmctldPlugstack": (conf_keys.SLURM_CONF, ("21.08", "22.05")),
    "SuspendExcStates": (conf_keys.SLURM_CONF, ("23.11", "24.11")),
    "PowerPlugin": (conf_keys.SLURM_CONF, ("21.08", "22.05", "23.11")),
    "SlurmdTimeout": (conf_keys.SLURM_CONF, conf_keys.VERSIONS),
    "RestrictedCoresPerGPU": (conf_keys.NODE, ("24.11",)),
    "PowerDownOnIdle": (conf_keys.PARTITION, ("23.11", "24.11")),
    "TaskAffinity": (conf_keys.CGROUP_CONF, ("21.08",)),
    "ConstrainKmemSpace": (conf_keys.CGROUP_CONF, ("21.08", "22.05")),
    "IgnoreSystemd": (conf_keys.CGROUP_CONF, ("22.05", "23.11", "24.11")),
    "SignalChildrenProcesses": (conf_keys.CGROUP_CONF, ("23.11", "24.11")),
}


@pytest.mark.parametrize(("name", "span"), SPANS.items(), ids=SPANS)
def test_a_key_is_known_to_the_versions_that_have_it(name: str, span: tuple[str, tuple[str, ...]]) -> None:
    table, versions = span

    assert conf_keys.keys(table)[name].versions == versions


@pytest.mark.parametrize("table", ["SLURM_CONF", "NODE", "PARTITION", "CGROUP_CONF"])
def test_a_span_leaves_out_at_least_one_version(table: str) -> None:
    text = getattr(conf_keys, table)
    spans = {words[0] for words in map(str.split, text.strip().splitlines()) if len(words) == 3}

    assert [name for name in spans if conf_keys.keys(text)[name].versions == conf_keys.VERSIONS] == []


@pytest.mark.parametrize("name", conf_keys.REMOVED)
def test_a_removed_key_is_in_no_version(name: str) -> None:
    assert name not in conf_keys.keys(conf_keys.SLURM_CONF)


def defaults() -> dict[str, Any]:
    """What the role slurm writes unless told otherwise; templates are replaced by a number, which every type can be."""
    variables = yaml.safe_load((ROOT / "roles/slurm/vars/main.yml").read_text())
    return {
        name: {key: 1 if "{{" in str(value) else value for key, value in values.items()}
        for name, values in variables.items()
        if isinstance(values, dict)
    }


@pytest.mark.parametrize("version", conf_keys.VERSIONS)
def test_what_slurmstead_writes_itself_is_known_to_every_version(version: str) -> None:
    written = defaults()
    owned = slurm.OWNED.keys()
    config: Mapping[str, Any] = {
        key: value for key, value in written["__slurm_config_defaults"].items() if key not in owned
    }

    assert list(slurm.config_has_known_keys(config, version)) == []
    assert list(slurm.cgroup_config_has_known_keys(written["__slurm_cgroup_defaults"], version)) == []
    assert list(slurm.partitions_are_valid(written["__slurm_partition_defaults"], {}, [], version)) == []
