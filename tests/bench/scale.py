"""Measures what a cluster of each size costs, and prints a table: see `scripts/stead bench scale --help`."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from ansible.module_utils.slurmstead.conf import size
from tests.bench import controller, live
from tests.native.cluster import Cluster

Found = dict[str, float]

LARGEST_NATIVE = 512
CONTROLLER = ("validate", "render", "arguments", "judge")
NATIVE = ("start", "job", "publish", "health", "jobs500", "jobs25000")
"""Measures by name; those of a native cluster share one."""

THROUGHPUT_SECONDS = 120
"""Limit of a measure of short jobs: what has ended by then counts."""

REFERENCE = 64
"""The size with which larger ones are compared."""


class Bench:
    """Measures until the time is over; what did not fit or failed is said in `notes`."""

    def __init__(self, measures: list[str], release: str, minutes: float) -> None:
        self.measures = measures
        self.release = release
        self.until = time.monotonic() + 60 * minutes
        self.notes: list[str] = []

    def left(self) -> float:
        """Return the seconds that are left."""
        return self.until - time.monotonic()

    def attempt(self, name: str, nodes: int, measure: Callable[[], Found]) -> Found:
        """Return what a measure finds; nothing if it fails or no time is left."""
        if self.left() <= 0:
            self.notes.append(f"{name}, {nodes} nodes: not measured, the time was over")
            return {}
        print(f"{name}, {nodes} nodes", file=sys.stderr, flush=True)
        try:
            found = measure()
            print(json.dumps(found), file=sys.stderr, flush=True)
            return found
        except subprocess.TimeoutExpired:
            self.notes.append(f"{name}, {nodes} nodes: not finished in time")
        except AssertionError as error:
            self.notes.append(f"{name}, {nodes} nodes: failed: {str(error)[:300]}")
        return {}

    def measure(self, nodes: int) -> Found:
        """Return all measures of a size by name."""
        found: Found = {}
        with tempfile.TemporaryDirectory(prefix="stead-bench-") as place:
            directory = pathlib.Path(place)
            controller.write_site(directory, nodes)
            works: dict[str, Callable[[], Found]] = {
                "validate": lambda: controller.validation(directory, self.left()),
                "render": lambda: controller.rendering(directory, self.left()),
                "arguments": lambda: controller.arguments(directory, self.left()),
                "judge": lambda: controller.judgement(nodes),
            }
            for name, work in works.items():
                if name in self.measures:
                    found |= self.attempt(name, nodes, work)
        wanted = [name for name in NATIVE if name in self.measures]
        if wanted and nodes <= LARGEST_NATIVE:
            found |= self.attempt("start", nodes, lambda: self.native(nodes, wanted))
        return found

    def native(self, nodes: int, wanted: list[str]) -> Found:
        """Return the measures of a native cluster."""
        ours = size.scheduler_parameters(nodes)
        # Ended jobs count for some minutes.
        keys = {"SchedulerParameters": ours, "MaxJobCount": "60000"}
        with Cluster(self.release, nodes, keys) as cluster:
            found = {"start of all daemons, s": cluster.seconds}
            limit = min(THROUGHPUT_SECONDS, max(1, self.left()))
            works: dict[str, Callable[[], Found]] = {
                "job": lambda: live.job_on_all(cluster),
                "publish": lambda: live.publishing(cluster),
                "health": lambda: live.health(cluster, size.health_check_interval(nodes)),
                "jobs500": lambda: live.scheduling(cluster, ours, 500, limit),
                "jobs25000": lambda: live.scheduling(cluster, ours, 25000, limit),
            }
            for name, work in works.items():
                if name in wanted:
                    found |= self.attempt(name, nodes, work)
        return found


def table(found: dict[int, Found]) -> Iterator[str]:
    """Yield the lines of a table in Markdown: a measure in each row, a size in each column."""
    sizes = sorted(found)
    names = list(dict.fromkeys(name for measures in found.values() for name in measures))
    yield f"| | {' | '.join(f'{nodes:,}' for nodes in sizes)} | per node, {sizes[-1]:,} : {REFERENCE} |"
    yield f"| --- |{' ---: |' * (len(sizes) + 1)}"
    for name in names:
        cells = [_shown(found[nodes].get(name)) for nodes in sizes]
        yield f"| {name} | {' | '.join(cells)} | {_ratio(name, found)} |"


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _ratio(name: str, found: dict[int, Found]) -> str:
    """Return how much more one node costs on the largest cluster that was measured, than on the reference."""
    measured = {nodes: measures[name] for nodes, measures in found.items() if name in measures}
    most, least = max(measured), measured.get(REFERENCE)
    if "/job" in name or "jobs/s" in name or not least or most <= REFERENCE:
        return ""
    return f"{measured[most] / most / (least / REFERENCE):.2f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", required=True)
    parser.add_argument("--measures", required=True)
    parser.add_argument("--release", required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    bench = Bench(given.measures.split(","), given.release, given.minutes)
    load = [os.getloadavg()[0]]
    found = {nodes: bench.measure(nodes) for nodes in sorted(map(int, given.sizes.split(",")))}
    load.append(os.getloadavg()[0])
    computer = f"{os.cpu_count()} CPUs, load {load[0]:.0f} before and {load[1]:.0f} after, {given.release}"
    if given.json:
        print(json.dumps({"computer": computer, "measures": found, "notes": bench.notes}, indent=2))
        return
    print("\n".join(table(found)))
    print("\n".join([f"\n{computer}", *bench.notes]))
