"""Credentials with which keys are compared, made and decoded by real munged."""

from __future__ import annotations

from ansible.module_utils.slurmstead.identity import credentials
from tests.native.cluster import Cluster


def test_a_credential_outlives_a_long_task(four: Cluster) -> None:
    signed = four.run(*credentials.SIGN.split(), user="alice", on="node1")

    decoded = dict(
        line.split(":", 1) for line in four.run("unmunge", text=signed, on="node2").splitlines() if ":" in line
    )

    assert decoded["STATUS"].strip() == "Success (0)"
    assert decoded["TTL"].split()[0] == "3600"
