# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Boards that the lab emulates: the CPUs of their device trees, as edits of the tree of QEMU's own board."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Cluster:
    """CPUs of one kind: their number, their core and their capacity as `capacity-dmips-mhz` (linux, cpu-capacity)."""

    cpus: int
    core: str
    capacity: int


@dataclasses.dataclass(frozen=True)
class Board:
    """A board: `compatible` of its root node, and its clusters in the order of their CPUs."""

    model: str
    compatible: tuple[str, ...]
    clusters: tuple[Cluster, ...]

    @property
    def cpus(self) -> int:
        """The number of its CPUs."""
        return sum(cluster.cpus for cluster in self.clusters)


BOARDS = {
    "rk1": Board(
        "Turing Machines RK1",
        ("turing,rk1", "rockchip,rk3588"),
        (Cluster(4, "arm,cortex-a55", 530), Cluster(2, "arm,cortex-a76", 1024), Cluster(2, "arm,cortex-a76", 1024)),
    ),
}

VARIANTS = {"vendor": "socket{0}/cluster0", "mainline": "cluster{0}"}
"""The place of a cluster in `cpu-map` (linux, cpu-topology).

Kernels turn sockets into packages. The vendor's 5.10 also did so with clusters; today's kernels need sockets for that.
"""


def cpu_nodes(board: Board) -> list[str]:
    """Return the paths of the CPUs in the tree of QEMU's `virt` board."""
    return [f"/cpus/cpu@{number:x}" for number in range(board.cpus)]


def device_tree_edits(board: Board, variant: str, phandles: Sequence[str]) -> list[list[str]]:
    """Return the arguments of fdtput(1), without the file, that turn QEMU's tree into the board's.

    `phandles` are those of `cpu_nodes`, in hexadecimal.
    """
    edits = [
        ["-t", "s", "{tree}", "/", "model", board.model],
        ["-t", "s", "{tree}", "/", "compatible", *board.compatible],
        ["-r", "{tree}", "/cpus/cpu-map"],
    ]
    cpus = iter(zip(cpu_nodes(board), phandles, strict=True))
    for index, cluster in enumerate(board.clusters):
        place = f"/cpus/cpu-map/{VARIANTS[variant].format(index)}"
        for core in range(cluster.cpus):
            node, phandle = next(cpus)
            edits += [
                ["-t", "s", "{tree}", node, "compatible", cluster.core],
                ["-t", "i", "{tree}", node, "capacity-dmips-mhz", str(cluster.capacity)],
                ["-p", "-t", "x", "{tree}", f"{place}/core{core}", "cpu", phandle],
            ]
    return edits
