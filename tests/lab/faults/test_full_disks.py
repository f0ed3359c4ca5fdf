"""Disks are full, or have no inode left: a run or sinfo names the machine and what it lacks; the next run has room.

STEAD_LAB=NAME pytest tests/lab/faults/test_full_disks.py
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.faults.fault import Fault, survive

pytestmark = pytest.mark.kernel  # The disk of a container is that of this computer.

FILLING = "/var/tmp/slurmstead-full"

# Something is owed, so that it matters. The journal makes room for itself, so that filling goes on.
FILL = f"""
echo '# changed by hand' >> /etc/hosts && sync /etc/hosts
fallocate -l $(($(stat -f -c '%f * %S' /) - (64 << 20))) {FILLING}
systemd-run --quiet --collect --unit=slurmstead-full \\
  sh -c 'while true; do cat /dev/zero >> {FILLING}.rest 2> /dev/null; sleep 0.5; done'
until ! head -c 4096 /dev/zero > {FILLING}.last 2> /dev/null; do sleep 1; done
"""
# The health check comes once a minute.
SEEN = "until scontrol show node $(uname -n) | grep -q 'disk / is full'; do sleep 2; done"
EMPTY = f"systemctl stop slurmstead-full; rm -f {FILLING}*"

# Where not even a module finds room, the accelerator says so in the words of the system.
NAMED = r"(?s)fatal: \[{0}\](?:(?!fatal: ).)*?(the\s+disk\s+/\s+is\s+full|No\s+space\s+left\s+on\s+device)"
DRAINED = r".*{0} slurmstead: disk / is full"


def test_a_full_disk_of_control_is_named_and_what_it_kept_back_is_done_afterwards(lab: Any) -> None:
    assert survive(lab, [Fault("full disk on control", lab.control, FILL, EMPTY, NAMED.format(lab.control))]) == {}


def test_a_full_disk_of_a_worker_is_named_and_drains_it_until_there_is_room(lab: Any) -> None:
    name = lab.workers[0]
    told = (NAMED + DRAINED).format(name)

    assert survive(lab, [Fault("full disk on a worker", name, FILL + SEEN, EMPTY, told)]) == {}


# Directories of 1000 files, because a directory of many is slow to fill.
USE_UP = """
python3 -c '
import errno, itertools, os
os.mkdir("/scratch/slurmstead-full")
try:
    for number in itertools.count():
        if number % 1000 == 0:
            os.chdir("/scratch/slurmstead-full")
            os.mkdir(str(number))
            os.chdir(str(number))
        os.mknod(str(number))
except OSError as error:
    assert error.errno == errno.ENOSPC, error
'
until scontrol show node $(uname -n) | grep -q 'no inode left'; do sleep 2; done
"""
FREE = "rm -rf /scratch/slurmstead-full"


def test_a_worker_without_inodes_on_scratch_is_drained_until_there_are_some(lab: Any) -> None:
    name = lab.workers[0]
    told = f"{name} slurmstead: scratch /scratch is full, no inode left"

    assert survive(lab, [Fault("no inode left on a worker's scratch", name, USE_UP, FREE, told)]) == {}
