"""How tests run the examples: what they need on the share, and a submission until it has ended."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from slurmstead.paths import PLAYBOOKS, ROOT

EXAMPLES = ROOT / "examples"

BROKER_USERS = json.dumps({"celery_broker_users": ["alice"]})
BROKER = ("--extra-vars", BROKER_USERS, str(PLAYBOOKS / "configure-os.yml"), str(PLAYBOOKS / "configure-broker.yml"))
"""What brings the broker: its packages, and the rest."""


def requirements(names: Iterable[str]) -> str:
    """Return what examples need together, each package once."""
    lines = [line for name in names for line in (EXAMPLES / name / "requirements.txt").read_text().splitlines()]
    return "".join(f"{line}\n" for line in dict.fromkeys(lines) if not line.startswith("#"))


def download(needed: str, directory: Path, version: str) -> None:
    """Put the wheels for a version of Python on amd64 into a directory."""
    directory.mkdir()
    named = directory.with_suffix(".txt")
    named.write_text(needed)
    # 2014 is 2_17, and pip takes the one for the other only where it chooses the platform itself.
    platforms = [f"--platform=manylinux{of}_x86_64" for of in ("_2_28", "_2_27", "_2_17", "2014", "_2_12", "_2_5")]
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *platforms]
        + [f"--python-version={version}", "--dest", directory, "--requirement", named],
        check=True,
        timeout=600,
    )


def send(lab: Any, directory: Path, place: str) -> None:
    """Copy a directory's files into another one, which alice has on the share."""
    packed = subprocess.run(["tar", "--create", "--directory", directory, "."], stdout=subprocess.PIPE, check=True)
    ssh = ["ssh", "-F", str(lab.directory / "ssh_config"), f"alice@{lab.control}"]
    command = f"mkdir -p {place} && tar --extract --directory {place}"
    subprocess.run([*ssh, command], input=packed.stdout, check=True, timeout=300)


def submit(cluster: Any, *arguments: object, code: int = 0) -> str:
    """Return the run of a submission that has ended."""
    return str(cluster.run_of(cluster.stead("submit", "--wait", *arguments, code=code, seconds=1200)))


def directory_of(cluster: Any, run: str) -> str:
    """Return where a run is on the share."""
    return f"{cluster.variables['STEAD_DIRECTORY']}/runs/{run}"


def output(cluster: Any, run: str, name: str = "stdout") -> str:
    """Return what a run printed."""
    return str(cluster.user(f"cat {directory_of(cluster, run)}/{name}"))
