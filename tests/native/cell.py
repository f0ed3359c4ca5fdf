"""A cell of a notebook on the cluster itself: no ssh, no rsync, and nothing but the client's own wheel."""

from __future__ import annotations

import base64

from tests.client import library
from tests.native.cluster import Cluster


def run(cluster: Cluster, text: str, seconds: float) -> str:
    """Return what a cell of alice on node1 prints."""
    unpack = "cd /share/home/alice && mkdir library && base64 -d | tar -xz -C library --no-same-owner"
    cluster.run("sh", "-c", unpack, text=base64.b64encode(library()).decode())
    environment = ("env", "PYTHONPATH=/share/home/alice/library", "STEAD_HEAD=local")
    return cluster.run(*environment, "python3", "-c", text, user="alice", on="node1", seconds=seconds)
