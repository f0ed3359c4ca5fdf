"""Becomes one rank, which uses the cluster's network: python3 rank.py PROGRAM [ARGUMENT...]

MPICH takes the network of the default route. On a machine with several that may be one on which its neighbours do not
answer, and then all ranks wait for ever.
"""

import fcntl
import os
import socket
import struct
import sys

SIOCGIFADDR = 0x8915  # netdevice(7)


def device(address: str) -> str:
    """Return the network device of this machine that has the address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", name.encode()))
            except OSError:
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    raise SystemExit(f"{os.uname().nodename}: no network device has its own address {address}")


os.environ.setdefault("MPIR_CVAR_CH4_NETMOD", "ofi")
os.environ.setdefault("FI_PROVIDER", "tcp")
os.environ.setdefault("FI_TCP_IFACE", device(socket.gethostbyname(os.environ["SLURMD_NODENAME"])))

program = [sys.executable, *sys.argv[1:]] if sys.argv[1].endswith(".py") else sys.argv[1:]
os.execvp(program[0], program)
