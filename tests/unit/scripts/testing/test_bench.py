"""`stead bench scale`: the table, and a measure from the command line to the JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from slurmstead.errors import UsageError
from slurmstead.paths import ROOT
from slurmstead.testing import bench
from tests.bench import scale
from tests.native import root


def test_the_verb_knows_the_measures_and_releases_that_there_are() -> None:
    assert (bench.CONTROLLER, bench.NATIVE) == (scale.CONTROLLER, scale.NATIVE)
    assert bench.RELEASES == tuple(root.RELEASES)


@pytest.mark.parametrize(
    ("sizes", "measures", "release"),
    [
        ("4,many", "", "bookworm"),
        ("0", "", "bookworm"),
        ("4²", "", "bookworm"),
        ("4", "validate,speed", "bookworm"),
        ("4", "", "bullseye"),
    ],
)
def test_a_wrong_size_measure_or_release_is_refused(sizes: str, measures: str, release: str) -> None:
    with pytest.raises(UsageError, match="--sizes|unknown measure|unknown release"):
        bench.words(sizes, measures, release, 1, False)


def test_a_table_compares_the_cost_of_a_node() -> None:
    found = {64: {"validate, s": 6.4, "jobs/s, ours": 20.0}, 512: {"validate, s": 61.44}, 2000: {"validate, s": 1200.0}}

    lines = list(scale.table(found))

    assert lines[2] == "| validate, s | 6.4 | 61.4 | 1,200 | 6.00 |"
    assert lines[3] == "| jobs/s, ours | 20 |  |  |  |"


def test_what_does_not_fit_into_the_time_is_a_note() -> None:
    late = scale.Bench(["judge"], "bookworm", 0)

    assert late.measure(4) == {}
    assert late.notes == ["judge, 4 nodes: not measured, the time was over"]


@pytest.mark.slow
def test_a_measure_is_printed_as_json() -> None:
    words = bench.words("4,8", "validate,render,judge", "bookworm", 5, True)
    paths = os.pathsep.join([str(ROOT / "scripts"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", *words],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )

    found = json.loads(done.stdout)

    assert found["notes"] == []
    assert found["measures"].keys() == {"4", "8"}
    assert all(measures["slurm.conf, CPU s"] > 0 for measures in found["measures"].values())
