"""Names are not resolved, or something announces another network: a run and the jobs do not need that.

STEAD_LAB=NAME pytest tests/lab/faults/test_network.py
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.faults.fault import NOTHING_FAILED, Fault, survive

KEPT = "/etc/resolv.conf.slurmstead-kept"

# Nobody answers there (RFC 5737).
NO_DNS = f"mv /etc/resolv.conf {KEPT}; echo nameserver 192.0.2.53 > /etc/resolv.conf"
DNS = f"test ! -e {KEPT} || mv {KEPT} /etc/resolv.conf"

# A router advertisement each second (RFC 4861, 4.2 and 4.6.2): a default router and a prefix for addresses (RFC 3849),
# each for a minute.
ANNOUNCE = """
import socket, struct, sys, time
header = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 60, 0, 0)
prefix = struct.pack("!BBBBIII16s", 3, 4, 64, 0xC0, 60, 60, 0, socket.inet_pton(socket.AF_INET6, "2001:db8::"))
with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as link:
    link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
    link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex(sys.argv[1]))
    for _ in range(900):
        link.sendto(header + prefix, ("ff02::1", 0))
        time.sleep(1)
"""
NOISE = """
link=$(ip -o -4 address show to ADDRESS | awk '{ print $2 }')
cat > /run/slurmstead-noise.py << 'END'
ANNOUNCE
END
systemd-run --quiet --collect --unit=slurmstead-noise python3 /run/slurmstead-noise.py $link
""".replace("ANNOUNCE", ANNOUNCE)
SILENCE = "systemctl stop slurmstead-noise; rm -f /run/slurmstead-noise.py"


def test_a_cluster_works_without_dns(lab: Any) -> None:
    assert survive(lab, [Fault("DNS gone", name, NO_DNS, DNS, NOTHING_FAILED) for name in lab.names]) == {}


@pytest.mark.kernel  # Containers have the network of this computer.
def test_a_cluster_ignores_another_router(lab: Any) -> None:
    name = lab.workers[-1]
    fault = Fault(
        "router advertisements for IPv6 from a worker",
        name,
        NOISE.replace("ADDRESS", lab.address(name)),
        SILENCE,
        NOTHING_FAILED,
    )

    assert survive(lab, [fault]) == {}
