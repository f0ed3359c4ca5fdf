"""Processes of this computer are found by their parent, whatever their names are."""

import os
import pathlib
import shutil
import subprocess

from slurmstead.runner import processes


def test_a_process_whose_name_is_cut_within_a_character_is_found(tmp_path: pathlib.Path) -> None:
    # Linux keeps 15 bytes of a name.
    program = shutil.copy("/bin/sleep", tmp_path / f"{'x' * 14}é")
    with subprocess.Popen([program, "30"]) as process:
        found = [one.pid for one in processes.descendants(os.getpid())]
        process.kill()
    assert process.pid in found
