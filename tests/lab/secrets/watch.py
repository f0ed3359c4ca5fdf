"""Looks for secrets on a computer while something runs, and prints where they are as JSON. Runs there, as root.

Its argument is a directory with `secrets.json` (texts by name) and `roots` (the directories to search, one a line). It
ends when the file `stop` is there, or after LONGEST seconds.
"""

import base64
import contextlib
import json
import os
import pathlib
import stat
import subprocess
import sys
import time

LONGEST = 2400
LARGEST = 16 << 20
PAUSE = 0.1
"""Seconds between two looks at all processes."""
BETWEEN = 2.0
"""Seconds between two looks at files that changed."""

PLACE = pathlib.Path(sys.argv[1])
SECRETS = json.loads((PLACE / "secrets.json").read_text())
ROOTS = (PLACE / "roots").read_text().split()
NEEDLES = [
    (name, form)
    for name, text in SECRETS.items()
    # The texts have a length of 24, so that they look the same in the base64 form of their repetition.
    for form in (text.encode(), base64.b64encode(text.encode()), text.encode().hex().encode())
]
hits: set = set()


def names(content):
    """The secrets in a content."""
    return {name for name, needle in NEEDLES if needle in content}


def processes():
    """Look at the arguments and environment of every process."""
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        for kind in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                content = (directory / kind).read_bytes()
                for name in names(content):
                    program = (directory / "cmdline").read_bytes().replace(b"\0", b" ")[:60].decode(errors="replace")
                    hits.add((name, kind, program, ""))


def own_mounts():
    """Mount points of file systems that are kept on this computer; a /proc mounted elsewhere has endless files."""
    lines = pathlib.Path("/proc/self/mounts").read_text().splitlines()
    return {line.split()[1] for line in lines if line.split()[2] in ("btrfs", "ext4", "overlay", "tmpfs", "xfs")}


def files(since):
    """Look at the files that were written since a time."""
    count, mounts = 0, own_mounts()
    for root in ROOTS:
        for directory, below, found in os.walk(root):
            below[:] = [
                name
                for name in below
                if os.path.join(directory, name) != str(PLACE)
                and (not os.path.ismount(os.path.join(directory, name)) or os.path.join(directory, name) in mounts)
            ]
            for path in (os.path.join(directory, name) for name in found):
                with contextlib.suppress(OSError):
                    status = os.lstat(path)
                    if not stat.S_ISREG(status.st_mode) or status.st_ctime < since or status.st_size > LARGEST:
                        continue
                    count += 1
                    for name in names(pathlib.Path(path).read_bytes()):
                        hits.add((name, "file", path, "others" if for_others(path, status.st_mode) else "owner"))
    return count


def for_others(path, mode):
    """Say whether every user can read a file."""
    above = pathlib.Path(path).parents
    return bool(mode & 0o004) and all(os.stat(directory).st_mode & 0o001 for directory in above)


def journal(since):
    """Look at the journal."""
    with contextlib.suppress(FileNotFoundError):
        command = ["journalctl", "--quiet", "--output=export", f"--since=@{int(since)}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            for line in process.stdout:
                for name in names(line):
                    hits.add((name, "journal", line[:40].decode(errors="replace"), ""))


def main():
    """Watch."""
    began = at = time.time()
    looks = 0
    (PLACE / "ready").touch()
    while not (PLACE / "stop").exists() and time.time() < began + LONGEST:
        processes()
        looks += 1
        if time.time() > at + BETWEEN:
            # Also those that were written during the last look.
            before, at = at, time.time()
            files(before - 1)
        time.sleep(PAUSE)
    count = files(0 if "/etc" in ROOTS else began)
    journal(began)
    json.dump({"hits": sorted(hits), "files": count, "looks": looks}, sys.stdout)


main()
