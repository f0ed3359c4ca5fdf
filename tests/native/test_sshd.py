"""Failed logins from a machine of the cluster lock no other user of that machine out, with the real sshd."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from slurmstead.paths import ROOT
from tests.native.network import PACKAGES, Network
from tests.native.test_network import write

GOLDEN = ROOT / "tests/unit/golden/os/sshd_penalties.conf"
SERVER = """exec /usr/sbin/sshd -D -h /run/host -o PidFile=none -o UsePAM=no -o StrictModes=no \\
    -o AuthorizedKeysFile=/run/good.pub"""
LOGIN = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-i")
FAILURES = 6


@pytest.fixture(scope="module")
def net(release: str) -> Iterator[Network]:
    """Control and a stranger, and node1, whose sshd has our file if it knows penalties."""
    with Network(release, (*PACKAGES, "ieee-data", "openssh-client", "openssh-server")) as net:
        for name, number in (("node1", 101), ("control", 103), ("stranger", 99)):
            net.machine(name)
            net.plug(name, "eth0", [f"192.168.1.{number}/24"])
        net.run("mkdir", "-p", "/run/sshd")
        for key in ("host", "good", "bad"):
            net.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"/run/{key}")
        if "persourcepenalties" in net.run("sshd", "-T", "-h", "/run/host"):
            write(net, "/etc/ssh/sshd_config.d/12-slurmstead-penalties.conf", GOLDEN.read_text())
        net.ask("sh", "-c", SERVER, on="node1", stays=True)
        end = time.monotonic() + 20
        while not net.ask("ssh-keyscan", "-T", "1", "192.168.1.101", on="control")[1]:
            assert time.monotonic() < end, "sshd does not answer"
            time.sleep(0.1)
        yield net


def logins(net: Network, name: str) -> tuple[int, str]:
    """Fail to log in from a machine, then log in; return exit code and error output of the last login."""
    for _ in range(FAILURES):
        net.ask("ssh", *LOGIN, "/run/bad", "root@192.168.1.101", "true", on=name)
    code, _, err = net.ask("ssh", *LOGIN, "/run/good", "root@192.168.1.101", "true", on=name)
    return code, err


def test_failed_logins_of_a_user_of_control_do_not_lock_control_out(net: Network) -> None:
    code, err = logins(net, "control")

    assert code == 0, err


def test_failed_logins_from_elsewhere_count_where_sshd_counts_them(net: Network, release: str) -> None:
    code, err = logins(net, "stranger")

    assert (code == 0) == (release == "bookworm"), err
