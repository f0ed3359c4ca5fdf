"""What the machines of a lab offer to other networks, and the rights of the daemons."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

UNITS = {"munge": 2.0, "slurmctld": 9.2, "slurmstead-firewall": 3.0}
"""The highest accepted exposure by systemd-analyze(1), from 0 to 10; both have more than 9 in Debian."""


def test_nothing_of_nfs_3_listens(lab: Any, node: str) -> None:
    listening = lab.root(node, "ss --no-header --listening --numeric --processes --tcp --udp")

    assert "sshd" in listening
    assert not [line for line in listening.splitlines() if "rpcbind" in line or "rpc." in line or ":111 " in line]
    assert lab.root(node, "systemctl is-enabled rpcbind.socket rpc-statd.service || true").split() == ["masked"] * 2


@pytest.mark.parametrize("unit", UNITS)
def test_a_daemon_has_few_rights(lab: Any, unit: str) -> None:
    shown = lab.root(lab.control, f"systemd-analyze security --no-pager {unit}.service | tail --lines=1")

    assert float(shown.split(":")[1].split()[0]) <= UNITS[unit], shown


WARNINGS = {
    # Without these two, clients older than OpenSSH 8.5 could not log in; both have no answer to quantum computers.
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    # Nor could those that know neither GCM nor ETM, such as libssh2 1.10 of Debian 12.
    "hmac-sha2-256",
    "hmac-sha2-512",
}
"""The algorithms that ssh-audit warns of and that stay for the sake of older clients."""


def test_ssh_audit_fails_no_algorithm_and_warns_of_no_other(lab: Any, node: str) -> None:
    settings = (lab.directory / node / "ssh_config").read_text().split()
    port = settings[settings.index("Port") + 1]
    audit = [sys.executable, "-m", "ssh_audit.ssh_audit", "--json", "--skip-rate-test", "--port", port, "127.0.0.1"]
    done = subprocess.run(audit, capture_output=True, text=True, timeout=180, check=False)
    found = json.loads(done.stdout)
    seen = {one["algorithm"]: one["notes"] for part in ("kex", "key", "enc", "mac") for one in found[part]}

    assert {"ssh-ed25519", "curve25519-sha256", "aes256-ctr"} <= seen.keys()
    assert {name for name, notes in seen.items() if notes.get("fail")} == set()
    assert {name for name, notes in seen.items() if notes.get("warn")} <= WARNINGS


def test_rsa_keys_of_users_are_accepted_with_sha2(lab: Any, node: str) -> None:
    settings = dict(line.split(" ", 1) for line in lab.root(node, "sshd -T").splitlines() if " " in line)

    assert {"rsa-sha2-256", "rsa-sha2-512"} <= set(settings["pubkeyacceptedalgorithms"].split(","))
    assert int(settings.get("requiredrsasize", "1024")) <= 2048
