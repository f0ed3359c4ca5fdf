# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""PAM's files on this machine, and the trial of changed ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from ansible.module_utils.slurmstead.login import pam
from ansible.module_utils.slurmstead.reach import durable
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.reach.trial import Trial

ROOT = Path("/")

TRIAL = Trial(
    # On the disk: PAM's files survive a boot, so what restores them must, too.
    Path("/var/lib/slurmstead/login-trial"),
    "slurmstead-login-trial",
    # File by file: a copy of the whole directory would also give /etc/pam.d the mode of the directory.
    "find previous -type f -exec cp --archive --target-directory=/etc/pam.d {} + && "
    r"xargs --no-run-if-empty --delimiter='\n' rm --force -- < created",
)

BOOT = Path("/etc/systemd/system/slurmstead-login-rollback.service")
BOOT_TEXT = f"""# Rolls back a trial that a boot interrupted. It exists during a trial only.
[Unit]
ConditionPathExists={TRIAL.new}
Before=ssh.service systemd-user-sessions.service

[Service]
Type=oneshot
ExecStart=/bin/sh -c "{TRIAL.words}"

[Install]
WantedBy=multi-user.target
"""


class LoginError(Exception):
    """A file or systemd is not as it must be; the message says what."""


def texts() -> dict[Path, str]:
    """Return the PAM files that exist here. Debian 13's for systemd --user is below /usr; /etc overrides it."""
    found = {}
    for service in pam.SERVICES:
        path = ROOT / "etc/pam.d" / service
        for source in (path, ROOT / "usr/lib/pam.d" / service):
            if source.is_file():
                found[path] = source.read_text()
                break
    return found


def wanted(only_with_jobs: bool, limited: bool = False, dry: bool = False) -> dict[Path, str | None]:
    """Return the text of each PAM file as it must be; None if it must not exist.

    :param only_with_jobs: users without a job are refused
    :param limited: what cron and at run belongs to the slice of its user
    :param dry: nothing will be written, so the package may be missing
    :raises LoginError: the machine has no pam_slurm_adopt, or its sshd does not ask PAM
    :raises pam.PamError: a file has an unknown structure
    """
    # Debian 12's is in the first of these directories.
    places = ("usr/lib/security", "usr/lib/*/security")
    if only_with_jobs and not dry and not any([*ROOT.glob(f"{place}/pam_slurm_adopt.so")] for place in places):
        raise LoginError("libpam-slurm-adopt is not installed; run `stead up` without --tags")
    if only_with_jobs and "usepam no" in run("sshd", "-T")[1].splitlines():
        raise LoginError("sshd does not ask PAM: remove `UsePAM no` from /etc/ssh/sshd_config and its .d directory")
    found: dict[Path, str | None] = {}
    for path, text in texts().items():
        plain = pam.plain(text)
        name = path.name
        ours = pam.closed(name, plain) if only_with_jobs else pam.limited(name, plain) if limited else plain
        original = ROOT / "usr/lib/pam.d" / name
        overrides = original.is_file() and (not path.is_file() or plain == original.read_text() != text)
        found[path] = None if overrides and ours == plain else ours
    return found


def differing(files: Mapping[Path, str | None]) -> dict[Path, str | None]:
    """Return those that are not as they must be."""
    return {path: text for path, text in files.items() if (path.read_text() if path.is_file() else None) != text}


def list_text(users: Iterable[str]) -> str:
    """Return the list of users who need no job."""
    return "".join(f"{user}\n" for user in sorted({"root", *users}))


def begin(files: Mapping[Path, str | None], seconds: int) -> None:
    """Write files on trial. Unless `confirm` is called within that many seconds, or if the machine boots, they go.

    :raises LoginError: systemd refuses; nothing was changed
    """
    shutil.rmtree(TRIAL.directory, ignore_errors=True)
    TRIAL.directory.mkdir(mode=0o700, parents=True)
    previous = TRIAL.directory / "previous"
    previous.mkdir()
    for path in files:
        if path.is_file():
            durable.sync(Path(shutil.copy2(path, previous)))
    durable.write(TRIAL.directory / "created", "".join(f"{path}\n" for path in files if not path.is_file()).encode())
    durable.write(BOOT, BOOT_TEXT.encode())
    run("systemctl", "daemon-reload", seconds=30)
    run("systemctl", "enable", "--quiet", BOOT.name, seconds=30)
    durable.write(TRIAL.new, b"")
    error = TRIAL.arm(seconds)
    if error:
        forget(roll_back=True)
        raise LoginError(f"systemd does not start the timer of the rollback: {error}")
    try:
        put(files)
    except OSError:
        forget(roll_back=True)
        raise


def put(files: Mapping[Path, str | None]) -> None:
    """Write or remove files."""
    for path, text in files.items():
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            durable.write(path, text.encode())


def forget(roll_back: bool) -> None:
    """End a trial and remove the unit that a boot would run."""
    if roll_back:
        TRIAL.roll_back()
    run("systemctl", "disable", "--quiet", BOOT.name, seconds=30)
    BOOT.unlink(missing_ok=True)
    run("systemctl", "daemon-reload", seconds=30)


def confirm() -> None:
    """End the trial: the files stay.

    :raises LoginError: they were rolled back before
    """
    try:
        TRIAL.confirm()
    except FileNotFoundError:
        raise LoginError("the previous PAM files were restored before the new ones were confirmed") from None
    forget(roll_back=False)
