"""Another key reaches all nodes; no job notices, and nothing that the old key signed is worth anything.

STEAD_LAB=NAME pytest tests/lab/backup/test_rotate_key.py
"""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable
from typing import Any

from slurmstead.paths import PLAYBOOKS
from tests.lab.backup.survivors import forms, key_of, shown, states, wait

ROTATE = str(PLAYBOOKS / "rotate-key.yml")


def test_jobs_survive_another_key_which_nobody_sees(lab: Any, submit: Callable[..., list[str]]) -> None:
    running = submit(30, 240, 240)
    wait(lab, running, "RUNNING", 90)
    pending = submit(1, 1, 1, 1, 1)
    before, old = shown(lab), key_of(lab, lab.control)
    signed = lab.user("munge --no-input --ttl=3600")

    run = lab.ansible("-vvv", "--diff", ROTATE, plain=True, seconds=400)

    assert run.code == 0, run.output[-5000:]
    assert states(lab, running[1:]) == ["RUNNING", "RUNNING"]
    keys = lab.everywhere(lambda name: key_of(lab, name))
    assert len(set(keys.values())) == 1
    assert old not in keys.values()
    refused = lab.host(lab.control, "alice").run("echo %s | unmunge", signed)
    assert "Invalid credential" in refused.stdout + refused.stderr
    wait(lab, running + pending, "COMPLETED", 240)
    after = shown(lab)
    for number in running:
        fields = ("StartTime", "BatchHost", "Restarts")
        assert [after[number][name] for name in fields] == [before[number][name] for name in fields]
    assert {after[number]["ExitCode"] for number in running + pending} == {"0:0"}
    assert {after[number]["Restarts"] for number in running + pending} == {"0"}
    for form in [*forms(old), *forms(keys[lab.control])]:
        assert form not in run.output.encode(), "a key is in the output"


def test_a_node_that_was_off_has_no_jobs_until_a_run_brings_the_key(lab: Any, tmp_path: pathlib.Path) -> None:
    name = lab.workers[-1]
    lab.wait_until_idle(180)
    # Port 9 (discard) is closed on every machine.
    off = tmp_path / "off.yml"
    off.write_text(f"all: {{hosts: {{{name}: {{ansible_port: 9}}}}}}\n")

    run = lab.ansible("-i", str(off), ROTATE, seconds=400)

    assert run.recap[name]["unreachable"] == 1, run.output[-5000:]
    assert all(not counts["failed"] for counts in run.recap.values()), run.output[-5000:]
    assert key_of(lab, name) != key_of(lab, lab.control)
    node = lab.root(lab.control, f"scontrol --oneliner show node {name}")
    assert "DRAIN" in node
    assert "Reason=slurmstead: has not got the new MUNGE key" in node

    assert lab.ansible("--tags", "munge").code == 0
    lab.wait_until_idle(240)
    assert key_of(lab, name) == key_of(lab, lab.control)


def test_a_run_that_was_ended_on_the_way_is_completed_by_the_next(lab: Any, submit: Callable[..., list[str]]) -> None:
    running = submit(200)
    wait(lab, running, "RUNNING", 90)
    process = lab.begin(ROTATE)
    try:
        until = time.monotonic() + 200
        while lab.host(lab.control).run("systemctl is-active slurmctld").stdout.strip() == "active":
            assert time.monotonic() < until, "slurmctld was not stopped"
            time.sleep(0.2)
    finally:
        lab.end(process)

    run = lab.ansible(ROTATE, seconds=400)

    assert run.code == 0, run.output[-5000:]
    assert len(set(lab.everywhere(lambda name: key_of(lab, name)).values())) == 1
    assert states(lab, running) == ["RUNNING"]
