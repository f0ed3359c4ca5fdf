"""A file is read as Slurm reads it."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.conf import lines as conf_lines
from ansible.module_utils.slurmstead.conf import model as conf_model


def pairs(text: str) -> list[tuple[str, str, int]]:
    return [(pair.key, pair.value, pair.line) for line in conf_lines.parse(text) for pair in line.pairs]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SlurmUser=slurm", [("SlurmUser", "slurm", 1)]),
        ("\n# A=1\n  B = 2  # C=3\n", [("B", "2", 3)]),
        ('Epilog="/a b"', [("Epilog", "/a b", 1)]),
        ("A=1 B=2", [("A", "1", 1), ("B", "2", 1)]),
        ("A=1 \\\n  B=2\nC=3", [("A", "1", 1), ("B", "2", 1), ("C", "3", 3)]),
        ("A=1 \\  \nB=2", [("A", "1", 1), ("B", "2", 1)]),
        ("A=1 \\", [("A", "1", 1)]),
        (r"A=x\#y", [("A", "x#y", 1)]),
        ("A=b=c", [("A", "b=c", 1)]),
        ("", []),
    ],
)
def test_lines_become_pairs(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert pairs(text) == expected


def test_what_is_no_pair_is_kept() -> None:
    assert conf_lines.parse("A=1 word B=2")[0].rest == "word B=2"


def test_include_is_known_whatever_its_case() -> None:
    assert conf_model.read("include  /a\nINCLUDE b").includes[0].include == "/a"
    assert len(conf_model.read("include  /a\nINCLUDE b").includes) == 2


def test_default_lines_hold_for_what_stands_below_them() -> None:
    model = conf_model.read("NodeName=a\nNodeName=DEFAULT CPUs=4\nNodeName=b\nNodeName=c CPUs=2")

    assert {name: keys["cpus"].value for name, keys in model.nodes.items() if "cpus" in keys} == {"b": "4", "c": "2"}


def test_a_line_of_several_nodes_gives_each_its_own_address_and_port() -> None:
    model = conf_model.read("NodeName=n[1-2] NodeAddr=10.0.0.[1-2] Port=[7001-7002] CPUs=2")

    assert {name: (keys["nodeaddr"].value, keys["port"].value) for name, keys in model.nodes.items()} == {
        "n1": ("10.0.0.1", "7001"),
        "n2": ("10.0.0.2", "7002"),
    }


def test_what_is_twice_is_known_with_both_lines() -> None:
    model = conf_model.read("A=1\nNodeName=n1\na=2\nNodeName=n1\nSlurmctldHost=x\nSlurmctldHost=y")

    assert [(kind, first.line, later.line) for kind, first, later in model.repeated] == [("key", 1, 3), ("node", 2, 4)]
    assert (model.value("A"), model.value("SlurmctldHost")) == ("2", "x,y")


def test_lines_of_gres_belong_to_their_nodes() -> None:
    text = "Name=gpu Count=1\nNodeName=n[1-2] Name=core File=/a"

    assert conf_model.gres_by_node(text).keys() == {"", "n1", "n2"}
