"""The share is full, or the key is replaced, while a laptop submits: it is told, or does not notice.

STEAD_LAB=NAME pytest tests/lab/faults/test_laptops.py
"""

from __future__ import annotations

import pathlib
import signal
from collections.abc import Callable
from typing import Any

import pytest

from slurmstead.errors import ExitCode
from tests import client
from tests.lab.faults.canaries import canaries
from tests.lab.faults.fault import Fault, broken, recover
from tests.lab.faults.trials import trials

FULL = "share full during submit"
ASLEEP = "MUNGE key replaced while a laptop sleeps"

FILLING = "/srv/share/slurmstead-full"
FILL = f"""
fallocate --length $(($(stat --file-system --format='%a * %S' /srv/share) - (8 << 20))) {FILLING}
until ! head -c 4096 /dev/zero >> {FILLING}.last 2> /dev/null; do true; done
"""
EMPTY = f"rm -f {FILLING}*"

SQUARE = {"main.py": "import time\ntime.sleep(30)\nopen('result', 'w').write('49')\n"}


@pytest.mark.kernel  # The share of a container is the disk of this computer.
def test_a_full_share_is_named_and_the_same_command_submits_once_there_is_room(
    lab: Any, tmp_path: pathlib.Path
) -> None:
    with client.connected(lab, tmp_path) as laptop, canaries(lab) as alive, trials(lab, FULL) as noted:
        folder = laptop.project("square", SQUARE)
        with broken(lab, [Fault(FULL, lab.server, FILL, EMPTY)]):
            said = laptop.stead("submit", folder, code=ExitCode.TASK_FAILED)
            assert "the disk is full" in said
            assert laptop.submissions() == []
        noted.over()
        recover(lab, noted, alive)
        run = laptop.run_of(laptop.stead("submit", folder, "--wait"))
        assert laptop.jobs()[run]["state"] == "completed"
        assert laptop.submissions() == [run]


def test_a_laptop_that_slept_during_a_change_of_the_key_gets_its_results(
    lab: Any, stead: Callable[..., Any], tmp_path: pathlib.Path
) -> None:
    with client.connected(lab, tmp_path) as laptop, canaries(lab) as alive, trials(lab, ASLEEP) as noted:
        folder = laptop.project("square", SQUARE)
        with laptop.start("submit", folder, "--wait") as process:
            try:
                lab.insist(lab.control, "squeue --noheader --user=alice --format=%k | grep -q stead:", 120)
                process.send_signal(signal.SIGSTOP)
                changed = stead("rotate-key")
            finally:
                process.send_signal(signal.SIGCONT)
            noted.over()
            out, words = process.communicate(timeout=300)
        assert changed.returncode == ExitCode.OK
        assert process.returncode == ExitCode.OK, out + words
        run = laptop.run_of(out + words)
        assert laptop.jobs()[run]["state"] == "completed"
        recover(lab, noted, alive)
