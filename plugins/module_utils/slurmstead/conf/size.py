# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Values of slurm.conf that depend on the number of workers; docs/scale.md has the measurements behind each rule."""

from __future__ import annotations

import math


def health_check_interval(nodes: int) -> int:
    """Return the seconds between two health checks of a node: 60, but at most ten checks a second in all.

    >>> [health_check_interval(nodes) for nodes in (4, 600, 2000)]
    [60, 60, 200]
    """
    return max(60, math.ceil(nodes / 10))


def scheduler_parameters(nodes: int) -> str:
    """Return SchedulerParameters: quick on a small cluster, and near Slurm's advice for high throughput on a large one.

    On few nodes the scheduler's own pauses limit the rate of short jobs. On many, jobs end all the time, and a
    scheduler that starts again at each of them only uses up the controller. So the pauses grow with the nodes, up to
    Slurm's defaults (batch_sched_delay, sched_interval) and the 2 s of its guide (sched_min_interval, in microseconds).

    >>> scheduler_parameters(4)
    'batch_sched_delay=0,sched_interval=1,sched_min_interval=8000'
    >>> scheduler_parameters(512)
    'batch_sched_delay=3,sched_interval=32,sched_min_interval=1024000'
    >>> scheduler_parameters(2000)
    'batch_sched_delay=3,sched_interval=60,sched_min_interval=2000000'
    """
    delay, interval = min(3, nodes // 128), min(60, max(1, nodes // 16))
    return f"batch_sched_delay={delay},sched_interval={interval},sched_min_interval={min(2_000_000, 2000 * nodes)}"


def tree_width(nodes: int) -> int | None:
    """Return TreeWidth, or None for Slurm's default: messages reach all nodes over at most one other (slurm.conf(5)).

    The default is 50 before 23.11 and 16 since, which is enough for 256 nodes.

    >>> [tree_width(nodes) for nodes in (4, 256, 257, 512, 2000)]
    [None, None, 17, 23, 45]
    """
    return None if nodes <= 256 else math.isqrt(nodes - 1) + 1
