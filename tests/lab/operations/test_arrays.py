"""A worker that is taken out of service loses its own tasks of an array, and no other."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

PLAY = """
- name: Take a worker out of service for a moment
  hosts: control
  become: true
  tasks:
    - name: Take the node out of service
      worker_service: {{workers: [{name}], state: out, operation: shutdown, jobs: cancel, deadline: 3}}
    - name: Bring it back
      worker_service: {{workers: [{name}], state: in, operation: shutdown, deadline: 3}}
"""


def running(lab: Any, array: str) -> dict[str, str]:
    """Return the worker of each task that runs, by the number that Slurm gave the task."""
    lines = lab.user(f"squeue --noheader --job={array} --states=running --format='%A %N'").splitlines()
    return dict(line.split() for line in lines)


def cancel_on(lab: Any, name: str, directory: pathlib.Path) -> None:
    """Take a worker out of service, which cancels what runs there."""
    play = directory / "take-out.yml"
    play.write_text(PLAY.format(name=name))
    run = lab.ansible(str(play))
    assert run.code == 0, run.output


@pytest.mark.usefixtures("submit")
def test_only_the_tasks_of_an_array_that_are_on_a_worker_are_cancelled(lab: Any, tmp_path: pathlib.Path) -> None:
    lab.wait_until_idle(180)
    array = lab.user("sbatch --parsable --array=1-3 --exclusive --output=/dev/null --wrap='sleep 1800'")
    lab.user(f"until [ $(squeue --noheader --job={array} --states=running | wc -l) = 3 ]; do sleep 1; done")
    tasks = running(lab, array)
    second, third = (number for number in tasks if number != array)

    # The task that started last has the number of the array.
    cancel_on(lab, tasks[array], tmp_path)

    assert running(lab, array).keys() == {second, third}

    cancel_on(lab, tasks[second], tmp_path)

    assert running(lab, array).keys() == {third}
