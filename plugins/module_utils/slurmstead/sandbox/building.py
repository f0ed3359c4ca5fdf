# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Makes and removes images, as root on the machine that stores the share.

An image appears with one rename(2), and goes with one. What a killed call left is removed by the next.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import subprocess
import tarfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.sandbox import images
from ansible.module_utils.slurmstead.sandbox.images import ImageError

NEW, OLD, GIVEN = ".new-", ".old-", ".given-"
"""Begin the names of what is not a complete image: new, old, and copies of what goes into one (change-images.yml)."""

ABANDONED = 24 * 3600
"""Seconds after which a copy belongs to no call."""

ARCHIVE, REQUIREMENTS, WHEELS = "archive.tar", "requirements.txt", "wheels"
"""Names in the tar file that the controlling computer sends."""

MINUTE = 60.0

PIP = """
set -eu
cp -r "$GIVEN" "$1/given"
if [ -e /etc/pip.conf ]; then
    cp /etc/pip.conf "$1/given/pip.conf"
    cp /etc/ssl/certs/ca-certificates.crt "$1/given/ca.crt"
    export PIP_CONFIG_FILE=/given/pip.conf PIP_CERT=/given/ca.crt
fi
set -- "$1" --no-cache-dir --disable-pip-version-check --only-binary=:all: --requirement=/given/requirements.txt
[ ! -d "$1/given/wheels" ] || set -- "$@" --no-index --find-links=/given/wheels
root=$1
shift
chroot "$root" python3 -m venv VENV
chroot "$root" VENV/bin/python -m pip install --quiet "$@"
rm -r "$root/given"
""".replace("VENV", images.VENV)
"""Hook of mmdebstrap. Only wheels: a source distribution would run its own program as root on this machine."""


class Wanted(NamedTuple):
    """An image of a Debian release with packages, or of an archive."""

    name: str
    release: str = ""
    packages: Sequence[str] = ()
    given: str = ""
    """A tar file with requirements.txt, wheels or an archive; empty without them."""
    archive: str = ""
    """Name of the archive, for people."""


def sources(targets: str, release: str) -> list[str]:
    r"""Return sources.list for a release, from what this machine's `apt-get indextargets` says.

    >>> sources("Debian http://a/debian/\nDebian-Security http://a/security/\n", "trixie")[::2]
    ['deb http://a/debian/ trixie main', 'deb http://a/security/ trixie-security main']
    """
    found: dict[str, str] = {}
    for line in targets.splitlines():
        label, _, address = line.rpartition(" ")
        found.setdefault(label, address)
    if "Debian" not in found:
        raise ImageError("apt on this machine knows no Debian archive: check /etc/apt/sources.list")
    lines = [f"deb {found['Debian']} {release} main", f"deb {found['Debian']} {release}-updates main"]
    security = found.get("Debian-Security")
    return [lines[0], lines[1], *([f"deb {security} {release}-security main"] if security else [])]


def kind(archive: Path) -> str:
    """Return the name that skopeo has for the format of an archive."""
    try:
        with tarfile.open(archive) as packed:
            names = {os.path.normpath(name) for name in packed.getnames()}
    except (tarfile.TarError, OSError) as error:
        raise ImageError(f"it is not an image: {error}. Write one with `skopeo copy` or `podman save`") from None
    for member, name in (("oci-layout", "oci-archive"), ("manifest.json", "docker-archive")):
        if member in names:
            return name
    raise ImageError("it is a tar file, but not an image: it has neither oci-layout nor manifest.json")


def protect(rootfs: Path) -> int:
    """Make a tree root's and read-only for others, without setuid programs and devices; return its size in bytes.

    A site may mount the share without nosuid, so that a user could run an old `su` of an image outside of any image.
    """
    total = 0
    for directory, _, names in os.walk(rootfs):
        for path in [directory, *(os.path.join(directory, name) for name in names)]:
            found = os.lstat(path)
            total += found.st_blocks * 512
            if stat.S_ISLNK(found.st_mode):
                os.lchown(path, 0, 0)
            elif stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
                os.chown(path, 0, 0)
                execute = 0o111 if stat.S_ISDIR(found.st_mode) or found.st_mode & 0o111 else 0
                os.chmod(path, found.st_mode & 0o755 | 0o444 | execute)
                with contextlib.suppress(OSError):
                    os.removexattr(path, "security.capability")
            else:
                os.unlink(path)
    return total


def delete(directory: Path) -> None:
    """Remove a directory, and nothing that is mounted in it."""
    subprocess.run(["rm", "--recursive", "--force", "--one-file-system", str(directory)], check=False)


def build(directory: str, **given: Any) -> None:
    """Make an image in a directory of images; the file `given` of Wanted is removed in any case.

    :param given: the fields of Wanted
    :raises ImageError: it exists, or a program failed; nothing is left
    """
    store, wanted = Path(directory), Wanted(**given)
    with contextlib.ExitStack() as ended:
        if wanted.given:
            ended.callback(Path(wanted.given).unlink, missing_ok=True)
        refused = images.refusal(wanted.name)
        if refused:
            raise ImageError(refused)
        ended.enter_context(locked(store))
        if (store / wanted.name).exists():
            raise ImageError(f"the image {wanted.name} exists: remove it first, or choose another name")
        new = store / f"{NEW}{wanted.name}"
        new.mkdir(mode=0o700)
        try:
            (new / "given").mkdir()
            if wanted.given:
                _checked("tar", "--extract", f"--file={wanted.given}", f"--directory={new / 'given'}")
            variables, source = _unpacked(new, wanted) if wanted.archive else _debian(new, wanted)
            delete(new / "given")
            made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            note = {"source": source, "made": made, "bytes": protect(new / "rootfs")}
            for file, content in (("config.json", images.bundle(variables)), ("image.json", note)):
                (new / file).write_text(json.dumps(content, indent=2) + "\n")
            _checked("sync", "--file-system", str(new))
            new.chmod(0o755)
            new.rename(store / wanted.name)
        except OSError as error:
            raise ImageError(f"{error.strerror or error}: {error.filename or new}") from None
        finally:
            delete(new)


def remove(directory: str, name: str, used: Sequence[str]) -> None:
    """Remove an image from a directory of images.

    :param used: numbers of the jobs that use it, or may use it
    :raises ImageError: it does not exist, or it is in use; it stays
    """
    store = Path(directory)
    with locked(store):
        known = [image["name"] for image in images.listed(store)]
        if name not in known:
            raise ImageError(f"there is no image {name}: the images are {', '.join(known) or 'none'}")
        if used:
            raise ImageError(
                f"the image {name} is or may be used by job {', '.join(used[:5])}{' and others' if used[5:] else ''}: "
                "wait until they have ended, or cancel them with `scancel`"
            )
        old = store / f"{OLD}{name}"
        (store / name).rename(old)
        delete(old)


def _debian(new: Path, wanted: Wanted) -> tuple[list[str], str]:
    """Install a release and the packages of requirements.txt."""
    given = new / "given"
    packages = list(wanted.packages)
    requirements = (given / REQUIREMENTS).is_file()
    if requirements:
        packages += ["python3", "python3-venv", "ca-certificates"]
    code, targets, said = run(
        "apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages", seconds=MINUTE
    )
    if code:
        raise ImageError(f"`apt-get indextargets` failed: {said.strip()}")
    environment = {**os.environ, "GIVEN": str(given), "TMPDIR": str(new), "HOME": "/"}
    lines = "".join(f"{line}\n" for line in sources(targets, wanted.release))
    command = [
        *("mmdebstrap", "--quiet", "--variant=essential", "--format=tar", '--aptopt=Acquire::Languages "none"'),
        *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "locale", "man")),
        *([f"--include={','.join(packages)}"] if packages else []),
        *([f"--customize-hook={PIP}"] if requirements else []),
        *(wanted.release, str(new / "rootfs.tar"), "-"),
    ]
    # A killed call takes its mounts of /proc and /dev with it: what is removed later is files only.
    own = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    _checked(*own, *command, text=lines, environment=environment)
    (new / "rootfs").mkdir()
    # Without extended attributes: no capability of a file is restored.
    _checked(
        *("tar", "--extract", "--numeric-owner", "--exclude=./dev/*"),
        *(f"--file={new / 'rootfs.tar'}", f"--directory={new / 'rootfs'}"),
    )
    (new / "rootfs.tar").unlink()
    path = f"{images.VENV}/bin:{images.PATH}" if requirements else images.PATH
    words = [f"Debian {wanted.release}", *wanted.packages, *(["requirements.txt"] if requirements else [])]
    return [f"PATH={path}", "LANG=C.UTF-8"], " ".join(words)


def _unpacked(new: Path, wanted: Wanted) -> tuple[list[str], str]:
    """Unpack an archive. umoci does not let a path leave the image."""
    archive = new / "given" / ARCHIVE
    try:
        source = f"{kind(archive)}:{archive}"
    except ImageError as error:
        raise ImageError(f"{wanted.archive}: {error}") from None
    _checked("skopeo", "--insecure-policy", "--tmpdir", str(new), "copy", "--quiet", source, f"oci:{new}/layers:image")
    # Rootless, it makes no device and leaves all files to us.
    _checked("umoci", "unpack", "--rootless", "--image", f"{new}/layers:image", f"{new}/unpacked")
    variables = images.environment(json.loads((new / "unpacked/config.json").read_text()))
    (new / "unpacked/rootfs").rename(new / "rootfs")
    delete(new / "unpacked")
    delete(new / "layers")
    return variables, wanted.archive


@contextlib.contextmanager
def locked(store: Path) -> Iterator[None]:
    """Keep other calls out, and remove what killed ones left; what a call that begins has copied is new."""
    with (store / ".lock").open("w") as lock:
        # A user who could open it could hold it.
        os.fchmod(lock.fileno(), 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ImageError("another command is making or removing an image: wait until it has ended") from None
        for path in store.iterdir():
            is_old = path.name.startswith(GIVEN) and time.time() - path.lstat().st_mtime > ABANDONED
            if path.name.startswith((NEW, OLD)) or is_old:
                delete(path)
        yield


def _checked(*command: str, text: str = "", environment: dict[str, str] | None = None) -> None:
    """Run a program for as long as it takes."""
    try:
        done = subprocess.run(
            command, input=text, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError:
        raise ImageError(f"{command[0]} is not installed") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-12:]
        raise ImageError("\n".join([f"{command[0]} failed with {done.returncode}:", *said]))
