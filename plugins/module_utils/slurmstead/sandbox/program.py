# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Runs one task of a job in an image. slurmstepd calls it as the job's user: sandbox BUNDLE JOB.

BUNDLE is a directory in which slurmstepd wrote a config.json. The environment is slurmstepd's, not the user's.

The layer is made by fuse-overlayfs, because it shows the image's files as the user's. The kernel's overlay cannot copy
up a file whose owner the user's namespace does not know.
"""

from __future__ import annotations

import contextlib
import grp
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

from ansible.module_utils.slurmstead.sandbox import bundle

SETTINGS = Path("/etc/slurmstead/sandbox.json")
RESOLVER = ("/etc/hosts", "/etc/resolv.conf")

FORWARDED = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM),
    *(signal.SIGALRM, signal.SIGCONT, signal.SIGUSR1, signal.SIGUSR2),
)
"""Signals that Slurm may send to this process only, and that the task is meant to get."""

# $1: options of the layer, $2: directory of the task. The shell is the first process of its namespace, so that
# fuse-overlayfs ends with it. crun as the first process would wait for fuse-overlayfs. Tasks cannot use keyrings
# (bundle.REFUSED), and where the machine is a container itself, crun could not make one.
RUN = """
fuse-overlayfs -o "$1" "$2/root" > "$2/log" 2>&1 || { cat "$2/log" >&2; exit 1; }
crun --cgroup-manager=disabled --root="$2/state" run --no-new-keyring --bundle="$2" task
exit $?
"""


def refuse(reason: str) -> NoReturn:
    """End with a reason, which the user finds in the output of the job."""
    sys.exit(f"sandbox: {reason}")


def image_of(given: dict[str, Any], images: str) -> Path:
    """Return the root file system of the image: IMAGES/NAME/rootfs, and nothing else."""
    rootfs = Path(os.path.realpath(given.get("root", {}).get("path", "")))
    if rootfs.parent.parent != Path(os.path.realpath(images)) or rootfs.name != "rootfs":
        refuse(f"{rootfs} is not an image. The images are the directories of {images}.")
    if not rootfs.is_dir():
        refuse(f"the image {rootfs.parent} has no directory rootfs")
    if set(",:\\") & set(str(rootfs)):
        refuse(f"the name of the image {rootfs.parent} may not contain `,`, `:` or `\\`")
    return rootfs


def script_of(given: dict[str, Any]) -> str:
    """Return the script of a batch job, or nothing. A user's own bundle may name any file of the machine for it."""
    for one in given.get("mounts", []):
        path = Path(one.get("source", "")).resolve()
        if one.get("destination") == bundle.STARTUP and path.name == bundle.SCRIPT and path.is_file():
            directory = path.parent.stat()
            # Users can write neither there nor, as in /tmp, beside it.
            if directory.st_uid == 0 and not directory.st_mode & 0o022:
                return str(path)
    return ""


def write_accounts(rootfs: Path, etc: Path, user: pwd.struct_passwd) -> None:
    """Write passwd and group of the image, with the user and the user's groups, into the layer."""
    etc.mkdir()
    groups = []
    for number in {user.pw_gid, *os.getgroups()}:
        with contextlib.suppress(KeyError):
            groups.append(f"{grp.getgrgid(number).gr_name}:x:{number}:")
    own = {
        "passwd": [f"{user.pw_name}:x:{user.pw_uid}:{user.pw_gid}::{user.pw_dir}:/bin/sh"],
        "group": groups,
    }
    for name, lines in own.items():
        path = rootfs / "etc" / name
        (etc / name).write_text(bundle.with_lines(path.read_text() if path.exists() else "", lines))


def run(options: str, own: Path) -> int:
    """Run the task and return its exit code. Signals that only this process gets are passed on to crun."""
    for number in FORWARDED:
        # `unshare` must survive them; within, they have their usual meaning again.
        signal.signal(number, signal.SIG_IGN)
    process = subprocess.Popen(
        [
            *("setpriv", "--pdeathsig", "KILL", "unshare", "--user", "--map-root-user", "--mount", "--mount-proc"),
            *("--pid", "--fork", "--kill-child", "env", "--default-signal", "/bin/sh", "-c", RUN, "sandbox"),
            *(options, str(own)),
        ],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )

    def forward(number: int, _: object) -> None:
        found = [process.pid]
        for _generation in range(2):
            found = [int(child) for pid in found for child in _children(pid)]
        for pid in found:
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text() == "crun\n":
                    os.kill(pid, number)

    for number in FORWARDED:
        signal.signal(number, forward)
    return process.wait()


def _children(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return []


def main() -> None:
    """Make the layer and run the task in it."""
    os.umask(0o022)
    settings = json.loads(SETTINGS.read_text())
    given = json.loads(Path(sys.argv[1], "config.json").read_text())
    user = pwd.getpwuid(os.getuid())
    rootfs = image_of(given, settings["images"])
    scratch = Path(settings["scratch"], f"job-{int(sys.argv[2])}")
    if not os.access(scratch, os.W_OK):
        refuse(f"this job has no directory {scratch}: is the disk of scratch missing?")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        refuse("cannot open /dev/fuse: `modprobe fuse` loads it")
    # No task sees this directory: another task of the job must not change what is written here.
    (scratch / ".sandbox").mkdir(mode=0o700, exist_ok=True)
    (scratch / "files").mkdir(mode=0o700, exist_ok=True)
    own = Path(tempfile.mkdtemp(prefix="task-", dir=scratch / ".sandbox"))
    for name in ("upper", "work", "root", "state", "tmp"):
        (own / name).mkdir()
    (own / "tmp").chmod(0o1777)
    write_accounts(rootfs, own / "upper/etc", user)

    paths = [path for path in settings["paths"] if os.path.isdir(path)]
    # A home that is not the user's own directory, such as `/`, is nothing that a sandbox should show.
    if os.path.isdir(user.pw_dir) and os.stat(user.pw_dir).st_uid == user.pw_uid:
        paths.insert(0, user.pw_dir)
    task = bundle.Task(
        uid=user.pw_uid,
        gid=user.pw_gid,
        home=user.pw_dir,
        own=str(own),
        scratch=str(scratch),
        paths=paths,
        network=settings["network"] or rootfs.parent.name in settings["network_images"],
        resolver=[path for path in RESOLVER if os.path.isfile(path)],
        processes=settings["processes"],
        host=os.uname().nodename,
        script=script_of(given),
    )
    wanted = bundle.environment(given, task).get("PWD", "/")
    shown = any(Path(wanted).is_relative_to(path) for path in paths) and os.path.isdir(wanted)
    config = bundle.configuration(given, task, wanted if shown else [*paths, "/"][0])
    (own / "config.json").write_text(json.dumps(config))
    try:
        # With a cache for writes, a program would not notice that the disk is full: it would write on, into nothing.
        options = f"upperdir={own / 'upper'},workdir={own / 'work'},squash_to_root,writeback=0"
        code = run(f"lowerdir={rootfs},{options}", own)
    finally:
        # The Epilog removes what is left, with the job's directory.
        shutil.rmtree(own, ignore_errors=True)
    sys.exit(code)
