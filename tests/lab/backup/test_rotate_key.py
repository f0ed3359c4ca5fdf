"""Another key reaches all nodes; no job notices, and nothing that the old key signed is worth anything.

STEAD_LAB=NAME pytest tests/lab/backup/test_rotate_key.py
"""

from __future__ import annotations

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
