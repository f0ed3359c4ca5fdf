"""What slurmctld saved, or a disk, is damaged: it is named, and nothing is lost once that is put right.

STEAD_LAB=NAME pytest tests/lab/faults/test_damage.py
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from slurmstead.errors import ExitCode
from tests.lab.faults.canaries import canaries
from tests.lab.faults.fault import Fault, recover, survive
from tests.lab.faults.trials import trials

QUEUE = "slurmctld's saved queue damaged"
READ_ONLY = "scratch read-only after an I/O error"

SAVED = "/var/lib/slurm/slurmctld"
DAMAGE = f"""
systemctl stop slurmctld
for file in {SAVED}/job_state {SAVED}/job_state.old; do head -c 4096 /dev/urandom > $file; done
systemctl start slurmctld || true
"""

# Each write fails, until the file system gives up; the disk is good again then.
FAIL = """
disk=$(findmnt --noheadings --output=SOURCE /scratch)
dmsetup table $disk > /run/slurmstead-table
dmsetup wipe_table --noflush $disk
for _ in $(seq 60); do
  touch /scratch/slurmstead-fails 2>&1 | grep -q 'Read-only' && break
  sync /scratch/slurmstead-fails || true
  sleep 1
done
dmsetup suspend --noflush $disk
dmsetup load $disk /run/slurmstead-table
dmsetup resume $disk
until scontrol show node $(uname -n) | grep -q 'scratch /scratch is read-only'; do sleep 2; done
"""
REPAIR = """
disk=$(findmnt --noheadings --output=SOURCE /scratch)
umount /scratch
fsck -y $disk
mount /scratch
"""


def test_a_damaged_queue_is_named_and_restored_from_the_backup(
    lab: Any, stead: Callable[..., Any], tmp_path: pathlib.Path
) -> None:
    archive = tmp_path / "archive.tar.gz"
    with canaries(lab) as alive, trials(lab, QUEUE) as noted:
        assert stead("backup", f"--output={archive}").returncode == ExitCode.OK
        lab.root(lab.control, DAMAGE)
        run = lab.ansible()
        noted.over()
        assert run.code != 0
        assert "restore your last backup with `stead restore FILE`" in " ".join(run.output.split())
        assert stead("restore", str(archive)).returncode == ExitCode.OK
        recover(lab, noted, alive)
        lab.root(lab.control, f"rm -r {SAVED}.before-*")


@pytest.mark.kernel  # A container has no disk of its own.
def test_a_scratch_that_became_read_only_drains_the_worker_until_it_is_repaired(lab: Any) -> None:
    name = lab.workers[0]
    told = f"{name} slurmstead: scratch /scratch is read-only"

    assert survive(lab, [Fault(READ_ONLY, name, FAIL, REPAIR, told)]) == {}
