"""What docs/engines.md shows of the examples: their output, and rows of seconds on one, two and three nodes.

pytest -s …/scaling.py; Ray needs a lab with more memory, as test_ray.py does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.lab.engines.running import directory_of, submit

NODES = (1, 2, 3)

ARGUMENTS: dict[str, Callable[[int], tuple[object, ...]]] = {
    "array": lambda nodes: ("--array", f"0-5%{2 * nodes}"),
    "mpi": lambda nodes: ("--nodes", nodes),
    "dask": lambda nodes: ("--nodes", nodes, "--", 100_000),
    "deap": lambda nodes: ("--array", f"0-2%{nodes}", "--", 10),
    "ray": lambda nodes: ("--nodes", nodes, "--", 1_000_000),
}
"""What `stead submit` is given for an example, by the number of nodes whose CPUs it uses at once."""


def row(name: str, what: str, values: list[float]) -> str:
    """Return a row of the table."""
    return f"| {name} | {what} | {' | '.join(f'{value:.1f}' for value in values)} |"


def printed(cluster: Any, run: str) -> str:
    """Return what a run and its tasks printed, each file below its name."""
    below = directory_of(cluster, run)
    return str(cluster.user(f"cd {below} && find . -name stdout -o -name stderr | sort | xargs tail -vn 20"))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_example_ends_on_one_node_and_on_more(
    cluster: Any, example: Any, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    folder = example(name)
    (folder / "nothing.py").touch()
    # It builds the environment.
    submit(cluster, folder, "--entry", "nothing.py")
    runs = [submit(cluster, folder, *ARGUMENTS[name](nodes)) for nodes in NODES]
    known = cluster.jobs()
    said = [printed(cluster, run) for run in runs]
    own = re.findall(r"(?:processes|nodes), ([\d.]+) s", "".join(said))
    whole = [known[run]["end"] - known[run]["start"] for run in runs]
    with capsys.disabled():
        print("", *said, row(name, "the whole run", whole), sep="\n")
        if len(own) == len(NODES):
            print(row(name, "the computation", [float(seconds) for seconds in own]))

    assert {known[run]["state"] for run in runs} == {"completed"}


def test_celery_counts_the_same_with_one_worker_and_with_more(
    lab: Any, home: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for nodes in NODES:
        job = str(lab.user(f"cd {home} && sbatch --parsable --exclusive --array=1-{nodes} worker.sh")).strip()
        deadline = time.monotonic() + 240
        while lab.user(f"cat {home}/worker-{job}_*.out 2>/dev/null | grep -c ' ready' || true").strip() != str(nodes):
            assert time.monotonic() < deadline, lab.user(f"squeue; tail {home}/worker-{job}_*.out")
            time.sleep(3)
        said.append(str(lab.user(f"cd {home} && env/bin/python main.py 600000 60", seconds=600)))
        lab.user(f"scancel {job}")
        lab.wait_until_idle(180)
    found = [re.search(r"^(\d+) primes below \d+ in ([\d.]+) s$", text, re.MULTILINE) for text in said]
    with capsys.disabled():
        print("\n" + "\n".join(said))
        print(row("celery", "the computation", [float(one[2]) for one in found if one]))

    assert [one and one[1] for one in found] == ["49098"] * 3, said
