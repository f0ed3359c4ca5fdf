"""Another key reaches all nodes; no job notices, and nothing that the old key signed is worth anything.

STEAD_LAB=NAME pytest tests/lab/backup/test_rotate_key.py
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurmstead.errors import ExitCode
from slurmstead.paths import PLAYBOOKS
from tests.lab.backup.survivors import forms, key_of, shown, states, wait

ROTATE = str(PLAYBOOKS / "rotate-key.yml")
SIGN = "munge --no-input --ttl=3600"


@pytest.fixture
def off(lab: Any) -> Iterator[str]:
    """A worker without power; it is on again in the end, and has the key."""
    name = lab.workers[-1]
    lab.cut_power(name)
    yield name
    lab.boot(name)
    if key_of(lab, name) != key_of(lab, lab.control):
        lab.ansible()


def refusal(lab: Any, credential: str, name: str) -> str:
    """Return what a machine says of a credential that it does not believe."""
    done = lab.host(name).run("echo %s | sudo unmunge", credential)
    assert done.rc != 0, f"{name} believes what the old key signed"
    return str(done.stdout + done.stderr)


def test_jobs_survive_another_key_which_nobody_sees(lab: Any, submit: Callable[..., list[str]]) -> None:
    running = submit(30, 240, 240)
    wait(lab, running, "RUNNING", 90)
    pending = submit(1, 1, 1, 1, 1)
    before, old = shown(lab), key_of(lab, lab.control)
    signed = lab.user(SIGN)

    run = lab.ansible("-vvv", "--diff", ROTATE, plain=True, seconds=400)

    assert run.code == 0, run.output[-5000:]
    assert states(lab, running[1:]) == ["RUNNING", "RUNNING"]
    keys = lab.everywhere(lambda name: key_of(lab, name))
    assert len(set(keys.values())) == 1
    assert old not in keys.values()
    assert "Invalid credential" in refusal(lab, signed, lab.control)
    wait(lab, running + pending, "COMPLETED", 240)
    after = shown(lab)
    for number in running:
        fields = ("StartTime", "BatchHost", "Restarts")
        assert [after[number][name] for name in fields] == [before[number][name] for name in fields]
    assert {after[number]["ExitCode"] for number in running + pending} == {"0:0"}
    assert {after[number]["Restarts"] for number in running + pending} == {"0"}
    for form in [*forms(old), *forms(keys[lab.control])]:
        assert form not in run.output.encode(), "a key is in the output"


def test_a_rotation_that_was_killed_is_completed_by_the_next_run_of_site_yml(lab: Any) -> None:
    old = key_of(lab, lab.control)

    def kill(task: str, process: int) -> None:
        if task == "Install the new MUNGE key":
            os.kill(process, signal.SIGKILL)

    run = lab.ansible(ROTATE, began=kill)
    assert run.code == -signal.SIGKILL, run.output
    new = key_of(lab, lab.control)
    run = lab.ansible()

    assert run.code == 0, run.output[-5000:]
    assert new != old
    assert set(lab.everywhere(lambda name: key_of(lab, name)).values()) == {new}
    assert lab.user(f"srun --nodes={len(lab.workers)} --mem=50 true", seconds=300) == ""


def test_a_worker_that_is_off_gets_the_key_from_the_run_after_its_return(
    lab: Any, stead: Callable[..., Any], submit: Callable[..., list[str]], off: str
) -> None:
    others = [name for name in lab.names if name != off]
    running = submit(900, 900)
    wait(lab, running, "RUNNING", 90)
    before, old, signed = shown(lab), key_of(lab, lab.control), lab.user(SIGN)
    assert off not in {before[number]["BatchHost"] for number in running}

    done = stead("rotate-key")

    assert done.returncode == ExitCode.UNREACHABLE
    assert f"{off} could not be reached; the other hosts were completed" in done.stdout
    (new,) = set(lab.everywhere(lambda name: key_of(lab, name), others).values())
    assert new != old
    reasons = lab.root(lab.control, f"sinfo --noheader --nodes={off} --format=%E")
    assert "has not got the new MUNGE key; run site.yml when it is back" in reasons

    lab.boot(off)

    assert key_of(lab, off) == old
    for credential in (signed, lab.insist(off, SIGN)):
        for name in others:
            assert "Invalid credential" in refusal(lab, credential, name)

    run = lab.ansible()

    assert run.code == 0, run.output[-5000:]
    assert "munge : Install the key" in run.changed[off]
    assert list(run.changed) == [off]
    assert key_of(lab, off) == new
    assert "Invalid credential" in refusal(lab, signed, off)
    assert lab.user(f"srun --nodelist={off} --mem=50 hostname", seconds=300) == off
    after = shown(lab)
    for number in running:
        fields = ("JobState", "StartTime", "BatchHost", "Restarts")
        assert [after[number][name] for name in fields] == [before[number][name] for name in fields]
