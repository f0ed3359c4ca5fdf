"""A memory bomb in an image ends with its job, and the neighbour of the job goes on.

Control groups of version 1, as Slurm uses them where a machine has them: this computer must have their memory
controller. A machine with version 2 only cannot run it.
"""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator

import pytest

from tests.native.cluster import CONTROL, Cluster
from tests.native.sandbox import HOME, gone, inside, started

pytestmark = pytest.mark.slow

GROUPS = "/run/groups"
CGROUP = f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={GROUPS}\nConstrainRAMSpace=yes\nConstrainSwapSpace=no\n"
MOUNT = f"""
mkdir -p /run/all {GROUPS}/memory
mount -t cgroup -o memory memory /run/all
mkdir /run/all/$0
mount --bind /run/all/$0 {GROUPS}/memory
"""
"""The cluster has a directory of its own: that of Slurm has the same name in all clusters of this computer."""

REMOVE = """
mount -t cgroup -o memory memory /mnt
[ ! -d /mnt/$0 ] || find /mnt/$0 -depth -type d -exec rmdir {} +
"""
MORE = 400
"""MiB that a bomb wants; a job has 100."""

BOMBS = {
    "processes": f'import os\nfor _ in range(4): os.fork()\nkept = b"x" * ({MORE} << 20)\nprint("never")',
    "one process": f'kept = b"x" * ({MORE} << 20)\nprint("never")',
    "shared memory": f'open("/dev/shm/bomb", "wb").write(b"x" * ({MORE} << 20))\nprint("never")',
    "files in /dev/shm, one after the other": (
        f'for i in range({MORE}): open(f"/dev/shm/{{i}}", "wb").write(b"x" * (1 << 20))\nprint("never")'
    ),
}


@pytest.fixture(scope="module")
def worker(release: str) -> Iterator[Cluster]:
    """A worker whose kernel limits the memory of jobs; a test leaves it idle."""
    own = f"slurmstead-{secrets.token_hex(4)}"
    try:
        with started(release) as cluster:
            mounted = cluster.tried("sh", "-euc", MOUNT, own, on="node1")
            assert mounted.returncode == 0, f"no memory controller of version 1 here: {mounted.stderr}"
            cluster.run("tee", "/etc/slurm/cgroup.conf", text=CGROUP)
            cluster.configure(TaskPlugin="task/cgroup")
            cluster.restart(CONTROL)
            cluster.restart("node1")
            cluster.wait_until_idle()
            yield cluster
    finally:
        subprocess.run(["unshare", "--mount", "sh", "-euc", REMOVE, own], check=True)


@pytest.mark.parametrize("program", BOMBS.values(), ids=BOMBS)
def test_a_memory_bomb_ends_with_its_job(worker: Cluster, program: str) -> None:
    goes_on = "#!/bin/sh\nuntil [ -e stop ]; do date +%s%N >now; sleep 0.1; done; rm stop; echo fine >end\n"
    worker.run("sh", "-c", "rm -f end; cat >goes-on", text=goes_on, user="bob")
    neighbour = worker.run("sbatch", "--parsable", "--mem=100", "--output=/dev/null", "goes-on", user="bob")
    worker.wait_for(lambda: worker.tried("test", "-e", "now", user="bob").returncode == 0, 60, "bob's job runs")
    worker.run("tee", f"{HOME}/bomb.py", text=program)

    done = inside(worker, f"exec python3 {HOME}/bomb.py", seconds=120)
    alive = worker.run("cat", "now", user="bob")
    worker.wait_for(lambda: worker.run("cat", "now", user="bob") != alive, 10, "bob's job goes on")
    worker.run("touch", "stop", user="bob")
    worker.wait_for(lambda: gone(worker), 60, "all jobs have ended")

    assert "never" not in done.stdout
    assert done.returncode != 0
    states = worker.run("squeue", "--noheader", "--states=all", "--sort=-i", "--format=%A %u %T").splitlines()
    assert states[0].endswith(" alice OUT_OF_MEMORY"), (states, done.stderr)
    assert f"{neighbour} bob COMPLETED" in states
    assert worker.run("cat", "end", user="bob") == "fine"


def test_a_job_within_its_memory_is_not_ended(worker: Cluster) -> None:
    done = inside(worker, "python3 -c 'kept = b\"x\" * (40 << 20); print(len(kept) >> 20)'")

    assert (done.stdout, done.returncode) == ("40\n", 0), done.stderr
    worker.wait_for(lambda: gone(worker), 60, "nothing is left on scratch")
