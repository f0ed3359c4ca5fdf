"""A laptop of alice's: a directory is its home, and its ssh leads to a native cluster."""

from __future__ import annotations

import json
import os
import pathlib

from slurmstead.paths import ROOT
from tests.native.cluster import Cluster


def environment(cluster: Cluster, home: pathlib.Path) -> dict[str, str]:
    """Make an ssh in a new home that enters control as alice; return the variables of the laptop's commands."""
    programs = home / "bin"
    programs.mkdir()
    (programs / "ssh").symlink_to(ROOT / "tests/native/submit/ssh")
    return {
        **os.environ,
        "HOME": str(home),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "scripts"),
        "STEAD_ENTER": json.dumps(cluster.command("sh", "-c", user="alice", seconds=300)),
    }
