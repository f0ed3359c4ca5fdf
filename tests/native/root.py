"""The packages of a Debian release, installed below a directory of their own in the user's cache.

Nothing of this machine is touched: mmdebstrap installs from the archive that apt here is configured for.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from slurmstead.paths import ROOT

RELEASES = {"bookworm": "22.05.8", "trixie": "24.11.5"}
"""The tested releases of Debian, each with its version of Slurm."""

PACKAGES = ("iproute2", "mount", "munge", "procps", "python3", "slurm-client", "slurmctld", "slurmd")

SOURCES = ROOT / "roles/lab/files/image/sources"

# A key that all clusters had would be no secret.
HOOKS = ('rm -f "$1/etc/munge/munge.key"',)


def root(release: str) -> pathlib.Path:
    """Return the directory with the packages of a release; builds it where it does not exist, in about a minute."""
    recipe = "\n".join([release, *PACKAGES, *HOOKS])
    name = f"native-{release}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "slurmstead"
    directory = cache / name
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            for remains in cache.glob(f".{name}.*"):
                shutil.rmtree(remains)
            work = pathlib.Path(tempfile.mkdtemp(prefix=f".{name}.", dir=cache))
            _install(work / "root", release)
            (work / "root").rename(directory)
            work.rmdir()
    return directory


def _install(directory: pathlib.Path, release: str) -> None:
    sources = ["bash", "-euc", '. "$0"; sources "$1"', str(SOURCES), release]
    listed = subprocess.run(sources, check=True, stdout=subprocess.PIPE, text=True).stdout
    command = [
        *("mmdebstrap", "--quiet", "--variant=essential", "--format=directory", f"--include={','.join(PACKAGES)}"),
        *('--aptopt=Acquire::Languages "none"', "--dpkgopt=force-unsafe-io"),
        *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "locale", "man")),
        *(f"--customize-hook={hook}" for hook in HOOKS),
        *(release, str(directory), "-"),
    ]
    subprocess.run(command, input=listed, check=True, text=True)
