"""Lines of slurm.conf: values as Slurm reads them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible.module_utils.slurmstead.conf import text as conf_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("slurm", "Key=slurm"),
        (8, "Key=8"),
        (0.5, "Key=0.5"),
        (True, "Key=YES"),
        (False, "Key=NO"),
        (["arm64", "rk3588"], "Key=arm64,rk3588"),
        ("low on memory", 'Key="low on memory"'),
    ],
)
def test_a_value_is_written_as_slurm_reads_it(value: Any, text: str) -> None:
    assert conf_text.key_value("Key", value) == text


def test_keys_are_sorted_and_null_leaves_one_out() -> None:
    values = {"SlurmUser": "slurm", "Epilog": None, "AuthType": "auth/munge", "MaxJobCount": 0}

    assert conf_text.slurm_keys(values).splitlines() == ["AuthType=auth/munge", "MaxJobCount=0", "SlurmUser=slurm"]


def test_sections_are_sorted_but_the_default_is_first() -> None:
    sections = {"main": {"Nodes": "ALL"}, "Big": {"Nodes": "node1", "MaxTime": None}, "DEFAULT": {"State": "UP"}}

    assert conf_text.slurm_lines(sections, "PartitionName").splitlines() == [
        "PartitionName=DEFAULT State=UP",
        "PartitionName=Big Nodes=node1",
        "PartitionName=main Nodes=ALL",
    ]


def test_a_section_may_be_empty() -> None:
    assert conf_text.slurm_lines({"main": None}, "PartitionName") == "PartitionName=main"
