"""A lab whose control is the router of the others, and a computer outside: a network namespace of control."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from slurmstead.paths import LAB_INVENTORY, ROOT

HERE, LAPTOP = "192.168.1.1", "192.168.1.7"
"""Control's address outside, and that of the computer there."""

OUTSIDE = f"""
printf '[Match]\\nName=house0\\n\\n[Link]\\nUnmanaged=yes\\n' > /etc/systemd/network/05-house.network
networkctl reload
ip netns add laptop
ip link add house0 type veth peer name eth0 netns laptop
ip address add {HERE}/24 dev house0
ip link set house0 up
ip -n laptop link set lo up
ip -n laptop address add {LAPTOP}/24 dev eth0
ip -n laptop link set eth0 up
ip -n laptop route add default via {HERE}
"""

REPLUG = """
printf '[Match]\\nMACAddress={mac}\\n\\n[Network]\\nDHCP=ipv4\\n' > /etc/systemd/network/10-cluster.network
sed -i /^Gateway=/d /etc/systemd/network/90-uplink.network
networkctl reload
ip route delete default || true
for interface in $(networkctl --no-legend list | awk '$3 == "ether" {{print $2}}'); do
    networkctl reconfigure $interface
done
until ip route show default | grep -q ' via {router} '; do sleep 1; done
sed -n 's/^DNS=/nameserver /p' /run/systemd/netif/leases/* > /etc/resolv.conf
"""
"""Leaves a worker its cable to the switch and DHCP; without a default route, the uplink leads to the operator only.

systemd-networkd leaves /etc/resolv.conf to systemd-resolved, which the image does not have.
"""


CABLE = "ip -o -4 address | awk '/ {address}\\//{{print $2}}'"
"""Prints the interface with an address."""


class House:
    """The cluster behind control, and the computer outside."""

    def __init__(self, lab: Any, site: pathlib.Path) -> None:
        self.lab, self.site = lab, site
        self.inside = lab.address(lab.control)

    def send(self, path: str, content: bytes) -> None:
        """Write a file of control that only root reads; the content is in no argument list."""
        ssh = ["ssh", "-F", str(self.lab.directory / "ssh_config"), f"debian@{self.lab.control}"]
        write = f"sudo sh -c 'umask 077; cat > {path}'"
        subprocess.run([*ssh, write], input=content, check=True, timeout=120)

    def stead(self, *words: str) -> str:
        """Run a verb of stead, as a person would; returns its standard output."""
        done = subprocess.run(
            [str(ROOT / "scripts/stead"), *words, "-i", str(self.site)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1500, check=False,
        )  # fmt: skip
        # What `vpn add` prints has a private key.
        print(f"$ stead {' '.join(words)}: {done.returncode}\n{done.stderr}")
        assert done.returncode == 0, done.stderr[-5000:]
        return done.stdout

    def laptop(self, command: str) -> Any:
        """Run a shell command as root on the computer outside; returns the result."""
        return self.lab.host(self.lab.control).run("sudo ip netns exec laptop timeout 120 sh -c %s", command)


@pytest.fixture(scope="session")
def house(lab: Any, tmp_path_factory: pytest.TempPathFactory) -> House:
    """A cluster whose workers have no way out but control, configured through it."""
    site = tmp_path_factory.mktemp("house") / "site"
    shutil.copytree(LAB_INVENTORY, site)
    (site / "host_vars").mkdir()
    found = House(lab, site / "hosts.yml")
    cables = lab.everywhere(lambda name: lab.root(name, CABLE.format(address=lab.address(name))))
    macs = lab.everywhere(lambda name: lab.root(name, f"cat /sys/class/net/{cables[name]}/address"), lab.workers)
    router = {
        "router_interface": cables[lab.control],
        "router_network": "10.77.0.0/24",
        "router_pool": ["10.77.0.200", "10.77.0.250"],
        "vpn_enabled": True,
        "vpn_endpoint": HERE,
    }
    (site / f"host_vars/{lab.control}.yml").write_text(yaml.safe_dump(router))
    for name in lab.workers:
        (site / f"host_vars/{name}.yml").write_text(yaml.safe_dump({"router_mac": macs[name]}))
    lab.root(lab.control, OUTSIDE)
    found.stead("up", "--limit", lab.control)
    lab.everywhere(lambda name: lab.root(name, REPLUG.format(mac=macs[name], router=found.inside)), lab.workers)
    lab.everywhere(lambda name: lab.root(name, "apt-get -qq purge -y python3-venv"), lab.workers)
    found.stead("up")
    return found
