"""What `stead power test` measured is remembered beside the hardware, and no `up` forgets it."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import yaml

from ansible.module_utils.slurmstead.hardware import record

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_times_are_recorded_once_and_survive_the_next_measurement(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "node1.yml"
    record.keep(path, b"cpus: 4\n")
    task = {"power_times": {"directory": str(tmp_path), "name": "node1", "off": "12.4", "on": 45.6}}
    play = [{"name": "Try", "hosts": "all", "tasks": [{"name": "Remember", **task}]}]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(play))
    command = [sys.executable, "-m", "ansible.cli.playbook", "-i", "node1,", str(tmp_path / "play.yml")]
    said = [subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    kept = yaml.safe_load(path.read_text())
    again = record.remembered(kept, {"cpus": 4, "slurm": "22.05.8", "disks": []})

    assert kept == {"cpus": 4, "power": {"off": 12, "on": 46}}
    assert ["changed=1" in text for text in said] == [True, False]
    assert again["power"] == kept["power"]
