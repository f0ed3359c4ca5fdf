"""Paths of files and directories."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAYBOOKS = ROOT / "playbooks"
SITE = ROOT / "site.yml"
LAB_INVENTORY = ROOT / "inventory" / "lab"


def lab_directory(name: str) -> pathlib.Path:
    """Return the state directory of a lab, as inventory/lab computes it; it need not exist."""
    state = os.environ.get("XDG_STATE_HOME") or pathlib.Path.home() / ".local" / "state"
    return pathlib.Path(state) / "slurmstead" / "lab" / name
