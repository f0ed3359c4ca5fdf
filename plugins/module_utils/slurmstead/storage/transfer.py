# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Copies a directory with all of its properties, from this machine or another one, and compares the copy.

The other machine runs an sshd of its own for this: its key lets one machine read one directory, and is gone with the
next boot. NFS would lose access control lists and most extended attributes.

No user can enter the copy while rsync writes to it: root follows the names of directories, and their owners could
replace one by a link to a directory of the system.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
import time
from pathlib import Path

from ansible.module_utils.slurmstead.storage import disks, share
from ansible.module_utils.slurmstead.storage.disks import DiskError
from ansible.module_utils.slurmstead.storage.users import users

RUN = Path("/run/slurmstead-move")
"""Keys and settings of a transfer, on both machines; only root can read it."""

UNIT = "slurmstead-move.service"
PORT = 8730
"""Port of the sshd that serves the original."""

SSHD = Path("/run/sshd")
"""Directory that sshd(8) needs; with socket activation it is missing while no one is logged in."""

DEADLINE = 60.0
"""Timeout in seconds for tools that copy nothing."""

VANISHED = 24
"""Exit code of rsync(1): files vanished while they were copied, as those of running jobs do."""

SHOWN = 5
"""Number of differences that a message contains."""

OPTIONS = (
    *("--archive", "--hard-links", "--acls", "--xattrs", "--sparse", "--numeric-ids", "--one-file-system"),
    # What was removed from the original since the first copy must not come back. Only the copy is changed.
    *("--delete", f"--exclude=/{share.MARK}", "--exclude=/lost+found"),
)

SEND = r"""#!/bin/sh
# Runs rsync to read {source}, and nothing else.
case $SSH_ORIGINAL_COMMAND in
    *[!A-Za-z0-9_.,/=\ -]*) ;;
    "rsync --server --sender "*" . {source}/") exec $SSH_ORIGINAL_COMMAND ;;
esac
echo "not allowed: $SSH_ORIGINAL_COMMAND" >&2
exit 1
"""

CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {run}/host_key
AuthorizedKeysFile {run}/authorized_keys
AllowUsers root
PermitRootLogin forced-commands-only
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM yes
PidFile none
"""


@dataclasses.dataclass(frozen=True)
class Original:
    """A directory, on this machine if `address` is empty; `host_key` is the public key of its sshd."""

    source: str
    address: str = ""
    host_key: str = ""


def check(command: list[str], deadline: float = DEADLINE) -> str:
    """Run a tool that must succeed and return its output. Raises DiskError."""
    done = disks.run(command, deadline)
    if done.returncode:
        raise DiskError(f"`{shlex.join(command)}` exited with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def public_key(name: str) -> str:
    """Return the public half of a key in RUN, which is created if it does not exist."""
    RUN.mkdir(mode=0o700, exist_ok=True)
    private, public = RUN / name, RUN / f"{name}.pub"
    if not public.exists():
        private.unlink(missing_ok=True)
        check(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "slurmstead-move", "-f", str(private)])
    return public.read_text().strip()


def serve(source: str, address: str, client: str, client_key: str) -> str:
    """Let one machine read a directory of this one; return the public host key. Replaces an earlier server.

    :param address: address of this machine on which the server listens
    :param client: address of the machine that may read
    :param client_key: its public key
    """
    host_key = public_key("host_key")
    (RUN / "send").write_text(SEND.format(source=source))
    (RUN / "authorized_keys").write_text(f'restrict,from="{client}",command="sh {RUN}/send" {client_key}\n')
    (RUN / "sshd_config").write_text(CONFIG.format(port=PORT, address=address, run=RUN))
    SSHD.mkdir(mode=0o755, exist_ok=True)
    stop()
    check(["systemd-run", "--quiet", "--collect", f"--unit={UNIT}", "sshd", "-D", "-e", "-f", f"{RUN}/sshd_config"])
    return host_key


def stop() -> None:
    """Stop serving."""
    disks.run(["systemctl", "stop", UNIT], DEADLINE)
    until = time.monotonic() + DEADLINE
    while disks.run(["systemctl", "is-active", UNIT], DEADLINE).stdout.strip() in ("active", "deactivating"):
        if time.monotonic() > until:
            raise DiskError(f"{UNIT} does not stop; see `systemctl status {UNIT}`")
        time.sleep(0.2)


def rsync_command(original: Original, directory: str, *more: str) -> list[str]:
    """Return the command that makes a directory equal to the original."""
    place = f"{original.source}/"
    remote = []
    if original.address:
        ssh = ["ssh", "-F", "none", "-p", str(PORT), "-i", str(RUN / "key")]
        for setting in ("BatchMode=yes", "IdentitiesOnly=yes", "StrictHostKeyChecking=yes", "ServerAliveInterval=15"):
            ssh += ["-o", setting]
        ssh += ["-o", f"UserKnownHostsFile={RUN}/known_hosts"]
        remote = [f"--rsh={shlex.join(ssh)}"]
        place = f"root@{original.address}:{place}"
    return ["rsync", *OPTIONS, *more, *remote, place, f"{directory}/"]


def copy(original: Original, directory: str, *, final: bool, deadline: float, inherit: tuple[int, ...] = ()) -> int:
    """Make a directory that has the mark of a copy equal to the original; return the number of copied bytes.

    :param final: the original does not change any more; compare the checksums of all files afterwards, then show them
    :raises DiskError: it could not be copied, the copy differs, or a process uses it
    """
    if not share.original(directory):
        raise DiskError(f"expected {directory} to be a copy that this move has begun; nothing was written to it")
    files = hide(directory)
    if original.address:
        RUN.mkdir(mode=0o700, exist_ok=True)
        (RUN / "known_hosts").write_text(f"[{original.address}]:{PORT} {original.host_key}\n")
    done = disks.run(rsync_command(original, files, "--stats"), deadline, inherit)
    if done.returncode and (final or done.returncode != VANISHED):
        raise DiskError(f"rsync exited with {done.returncode}: {done.stderr.strip()[-2000:]}; repeat the command")
    sent = [
        line.rpartition(":")[2] for line in done.stdout.splitlines() if line.startswith("Total transferred file size")
    ]
    if final:
        compare(original, files, deadline, inherit)
        os.sync()
        show(directory)
        os.sync()
    return int("".join(filter(str.isdigit, sent[0]))) if sent else 0


def hide(directory: str) -> str:
    """Return the directory of an incomplete copy's files, with those that an interrupted run has shown.

    :raises DiskError: a process uses one of them
    """
    files = Path(directory, share.MARK, "files")
    _rename(Path(directory), files)
    if found := users([str(files)], of_jobs=True):
        raise DiskError(
            f"no process may use the copy before it is complete: {found[0]}: end it, then repeat the command"
        )
    return str(files)


def show(directory: str) -> None:
    """Make a directory have the files that were copied to it, and the owner and mode of the original."""
    files = Path(directory, share.MARK, "files")
    _rename(files, Path(directory))
    state = files.stat()
    os.chown(directory, state.st_uid, state.st_gid)
    shutil.copystat(files, directory)


def _rename(source: Path, target: Path) -> None:
    """Move what is in a directory to another one of its file system, which has nothing of the same name."""
    for path in source.iterdir():
        if path.name not in (share.MARK, "lost+found"):
            if os.path.lexists(target / path.name):
                raise DiskError(f"both {source} and {target} contain {path.name}: move one of them away")
            path.rename(target / path.name)


def compare(original: Original, directory: str, deadline: float, inherit: tuple[int, ...] = ()) -> None:
    """Compare checksums of all files, and all other properties. Raises DiskError with the first differences."""
    done = disks.run(
        rsync_command(original, directory, "--checksum", "--dry-run", "--itemize-changes"), deadline, inherit
    )
    if done.returncode:
        raise DiskError(f"the copy could not be compared, rsync exited with {done.returncode}: {done.stderr.strip()}")
    if differences := done.stdout.splitlines():
        shown = "; ".join(differences[:SHOWN])
        raise DiskError(
            f"{len(differences)} files of the copy differ from the original, such as {shown}. A process may have "
            "written to the original: repeat the command"
        )
