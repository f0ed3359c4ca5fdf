"""The rollback of PAM's files, by the shell that systemd starts."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ansible.module_utils.slurmstead.login import live


def test_a_rollback_restores_files_and_leaves_their_directory_alone(tmp_path: Path) -> None:
    trial, etc = tmp_path / "trial", tmp_path / "etc"
    for directory, mode in {trial: 0o700, trial / "previous": 0o700, etc: 0o755}.items():
        directory.mkdir(mode=mode)
    (trial / "new").touch()
    (trial / "previous/sshd").write_text("before")
    (trial / "created").write_text(f"{etc}/cron\n")
    (etc / "sshd").write_text("on trial")
    (etc / "cron").write_text("on trial")

    words = live.TRIAL.words.replace("/etc/pam.d", str(etc)).replace(str(live.TRIAL.directory), str(trial))
    subprocess.run(["sh", "-c", words], check=True)

    assert {path.name: path.read_text() for path in etc.iterdir()} == {"sshd": "before"}
    assert etc.stat().st_mode & 0o777 == 0o755
