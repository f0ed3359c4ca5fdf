"""The packages of a Debian release, installed below a directory of their own in the user's cache.

Nothing of this machine is touched: mmdebstrap installs from the archive that apt here is configured for.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Sequence

from slurmstead.paths import ROOT

RELEASES = {"bookworm": "22.05.8", "trixie": "24.11.5"}
"""The tested releases of Debian, each with its version of Slurm."""

PACKAGES = (
    "iproute2",
    "mount",
    "munge",
    "nftables",
    "procps",
    "python3",
    "rsync",
    "slurm-client",
    "slurmctld",
    "slurmd",
)

DATABASE = ("mariadb-server", "slurmdbd")
"""What a cluster with accounting has in addition; the others do not wait for it."""

SANDBOX = ("crun", "fuse-overlayfs")
"""What a cluster with images has in addition."""

AS_ROOT = () if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--map-auto")
"""Begins a command that has to be root; for an ordinary user it is root of the user's own ids (subuid(5)) only."""

SOURCES = ROOT / "roles/lab/files/image/sources"

# A key that all clusters had would be no secret.
HOOKS = ('rm -f "$1/etc/munge/munge.key"',)


def root(release: str, packages: Sequence[str] = PACKAGES) -> pathlib.Path:
    """Return the directory with packages of a release; builds it where it does not exist, in about a minute."""
    recipe = "\n".join([release, *packages, *HOOKS])
    name = f"native-{release}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "slurmstead"
    directory = cache / name
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            for remains in cache.glob(f".{name}.*"):
                subprocess.run([*AS_ROOT, "rm", "-rf", str(remains)], check=True)
            work = pathlib.Path(tempfile.mkdtemp(prefix=f".{name}.", dir=cache))
            (work / "root").mkdir()
            _install(work / "root", release, packages)
            (work / "root").rename(directory)
            work.rmdir()
    return directory


def _install(directory: pathlib.Path, release: str, packages: Sequence[str]) -> None:
    sources = ["bash", "-euc", '. "$0"; sources "$1"', str(SOURCES), release]
    listed = subprocess.run(sources, check=True, stdout=subprocess.PIPE, text=True).stdout
    command = [
        *("mmdebstrap", "--quiet", "--variant=essential", "--format=tar", f"--include={','.join(packages)}"),
        *('--aptopt=Acquire::Languages "none"', "--dpkgopt=force-unsafe-io"),
        *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "locale", "man")),
        *(f"--customize-hook={hook}" for hook in HOOKS),
        *(release, "-", "-"),
    ]
    # As in roles/lab/files/build-image: an ordinary user's mmdebstrap can enter neither a home nor this directory.
    with tempfile.TemporaryFile() as packed:
        own = {**os.environ, "HOME": "/"}
        subprocess.run(command, input=listed.encode(), stdout=packed, check=True, cwd="/", env=own)
        packed.seek(0)
        unpack = ["tar", "--extract", "--numeric-owner", "--exclude=./dev/*", f"--directory={directory}"]
        subprocess.run([*AS_ROOT, *unpack], stdin=packed, check=True)
