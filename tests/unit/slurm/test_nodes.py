"""What sinfo prints of nodes, read."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.slurm.nodes import Node, read_sinfo, split_state

CAPTURED = """\
n1|idle|0/2/0/2|up|main*|Unknown|Unknown|none
n2|allocated|2/0/0/2|up|main*|Unknown|Unknown|none
n3|drained|0/0/2/2|up|main*|root|2026-11-21T03:04:31|bad | disk
"""
"""sinfo of Slurm 22.05.8 (Debian 12)."""


def line(name: str = "n1", state: str = "idle", partition: str = "main*", avail: str = "up", idle: int = 8) -> str:
    return f"{name}|{state}|0/{idle}/0/8|{avail}|{partition}|Unknown|Unknown|none\n"


def test_captured_lines_become_nodes() -> None:
    nodes = read_sinfo(CAPTURED)

    assert nodes == {
        "n1": Node("n1", "idle", "", 2, ("main",)),
        "n2": Node("n2", "allocated", "", 0, ("main",)),
        "n3": Node("n3", "drained", "", 0, ("main",), "bad | disk", "root", "2026-11-21T03:04:31"),
    }


@pytest.mark.parametrize(
    ("printed", "state", "flags", "usable"),
    [
        # node_state_string() in src/common/slurm_protocol_defs.c, 21.08 to 24.11; sinfo prints it in small letters.
        ("idle", "idle", "", True),
        ("mixed", "mixed", "", True),
        ("mixed-", "mixed", "-", True),
        ("allocated", "allocated", "", True),
        ("allocated+", "allocated", "+", True),
        ("completing", "completing", "", True),
        ("planned", "planned", "", True),
        ("blocked", "blocked", "", True),  # 24.05
        ("idle~", "idle", "~", True),
        ("idle#", "idle", "#", True),
        ("idle!", "idle", "!", True),
        ("idle%", "idle", "%", True),
        ("mixed@", "mixed", "@", True),
        ("powered_down", "powered_down", "", True),
        ("powering_up", "powering_up", "", True),
        ("idle*", "idle", "*", False),
        ("allocated*", "allocated", "*", False),
        ("idle$", "idle", "$", False),
        ("mixed^", "mixed", "^", False),
        ("drained", "drained", "", False),
        ("drained*", "drained", "*", False),
        ("drained$", "drained", "$", False),
        ("draining", "draining", "", False),
        ("draining@", "draining", "@", False),
        ("down", "down", "", False),
        ("down*", "down", "*", False),
        ("down~", "down", "~", False),
        ("fail", "fail", "", False),
        ("failing*", "failing", "*", False),
        ("maint", "maint", "", False),
        ("reserved", "reserved", "", False),
        ("reboot^", "reboot", "^", False),
        ("inval", "inval", "", False),
        ("future", "future", "", False),
        ("unknown*", "unknown", "*", False),
        ("?", "?", "", False),
    ],
)
def test_a_state_says_whether_jobs_can_run(printed: str, state: str, flags: str, usable: bool) -> None:
    node = read_sinfo(line(state=printed))["n1"]

    assert (node.state, node.flags, node.usable) == (state, flags, usable)


def test_states_in_capitals_are_read_too() -> None:
    assert split_state("IDLE*") == ("idle", "*")


def test_a_node_of_several_partitions_is_one_node() -> None:
    nodes = read_sinfo(
        line(partition="night") + line(partition="main*") + line(partition="old", avail="down") + line(partition="day")
    )

    assert nodes["n1"].partitions == ("main", "night", "day")


@pytest.mark.parametrize("number", [1, 400])
def test_all_nodes_are_read(number: int) -> None:
    nodes = read_sinfo("".join(line(f"n{index}") for index in range(number)))

    assert len(nodes) == number


@pytest.mark.parametrize("text", ["", "\n", "  \n"])
def test_no_output_is_no_node(text: str) -> None:
    assert read_sinfo(text) == {}


@pytest.mark.parametrize(
    "text", ["n1|idle", "n1|idle|0/2/0|up|main|x|y|z", "PARTITION AVAIL TIMELIMIT", "n1|idle|a/b/c/d|||||"]
)
def test_another_format_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"sinfo printed .*; expected eight fields"):
        read_sinfo(text)
