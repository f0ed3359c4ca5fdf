"""A control node that lost everything has its queue again, and the jobs that ran meanwhile did not notice.

STEAD_LAB=NAME pytest tests/lab/backup/test_restore.py
"""

from __future__ import annotations

import json
import pathlib
import stat
from collections.abc import Callable
from typing import Any

from ansible.module_utils.slurmstead.backup import archive as backup_archive
from slurmstead.paths import PLAYBOOKS
from tests.lab.backup.survivors import KEY, forms, key_of, shown, states, wait

WIPE = f"systemctl stop slurmctld munge; rm -rf /var/lib/slurm/slurmctld /etc/slurm/* {KEY}"
CANARY = b"tweet-1337"


def test_a_wiped_control_node_goes_on_where_it_was(
    lab: Any, submit: Callable[..., list[str]], tmp_path: pathlib.Path
) -> None:
    archive, key = tmp_path / "lab.tar.gz", key_of(lab, lab.control)
    running = submit(240, 240, 240)
    wait(lab, running, "RUNNING", 90)
    pending = submit(1, 1, 1, 1, 1)
    before = shown(lab)

    backup = lab.ansible(
        "-vvv", "--diff", "-e", json.dumps({"backup_output": str(archive)}), str(PLAYBOOKS / "backup-cluster.yml"),
        plain=True,
    )  # fmt: skip

    assert backup.code == 0, backup.output[-5000:]
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [archive.name]
    manifest, files = backup_archive.unpack(archive.read_bytes())
    assert manifest["jobs"] == {"running": 3, "pending": 5}
    assert files["munge.key"] == key
    assert any(CANARY in content for content in files.values())
    restore = ("-e", json.dumps({"restore_archive": str(archive)}), str(PLAYBOOKS / "restore-cluster.yml"))

    refused = lab.ansible(*restore)

    assert refused.code != 0
    assert "has jobs, which would be lost" in refused.output
    assert states(lab, running + pending) == ["RUNNING"] * 3 + ["PENDING"] * 5

    lab.root(lab.control, WIPE)
    restored = lab.ansible("--diff", *restore)

    assert restored.code == 0, restored.output[-5000:]
    after = shown(lab)
    assert {number: after[number]["SubmitTime"] for number in running + pending} == {
        number: before[number]["SubmitTime"] for number in running + pending
    }
    assert [after[number]["StartTime"] for number in running] == [before[number]["StartTime"] for number in running]
    (following,) = submit(1)
    assert int(following) == int(pending[-1]) + 1
    wait(lab, [*running, *pending, following], "COMPLETED", 300)
    assert {shown(lab)[number]["Restarts"] for number in running + pending} == {"0"}
    assert key_of(lab, lab.control) == key

    again = lab.ansible("-e", json.dumps({"restore_force": True}), *restore)

    assert again.code == 0, again.output[-5000:]
    assert lab.user("squeue --noheader") == "", "the queue was set back a second time"
    journal = lab.root(lab.control, "journalctl --no-pager --all --since=-20min --output=cat")
    for form in [*forms(key), CANARY]:
        assert form not in (backup.output + restored.output + journal).encode(), "a secret is shown"
