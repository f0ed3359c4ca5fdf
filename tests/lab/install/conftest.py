"""A cluster whose control is a router, and a blank server on its switch."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests import blank_pc
from tests.lab.install.server import Server
from tests.lab.power.supplies import redfish
from tests.lab.router.conftest import CABLE
from tests.lab.run import STEAD, as_person

SSH = """Include {lab}/ssh_config
Host 10.77.0.*
    ProxyJump {control}
    IdentityFile {lab}/key
    IdentitiesOnly yes
    UserKnownHostsFile {home}/known_hosts
    StrictHostKeyChecking yes
"""
"""How this computer reaches the machines of the lab, and by control what is behind it."""

NAME = "server1"
REACH = {"ansible_host": "{{ os_address }}", "ansible_user": "ansible", "lab_number": 77}


class Rack:
    """The site of the cluster, and the blank server with its BMC."""

    def __init__(self, lab: Any, home: pathlib.Path) -> None:
        self.lab, self.server = lab, Server(lab, home)
        self.bmc: dict[str, Any] = {}
        self.hosts = home / "site/hosts.yml"
        shutil.copytree(lab.inventory, self.hosts.parent)
        (home / "ssh_config").write_text(SSH.format(lab=lab.directory, control=lab.control, home=home))
        shared = self.hosts.parent / "group_vars/all.yml"
        shared.write_text(shared.read_text().replace("{{ lab_directory }}/ssh_config", f"{home}/ssh_config"))
        keys = {"bootstrap_authorized_keys": [(lab.directory / "key.pub").read_text().strip()]}
        self.write("group_vars/workers.yml", keys)

    def write(self, path: str, variables: dict[str, Any]) -> None:
        """Write a file of variables of the site."""
        file = self.hosts.parent / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(variables))

    def stead(self, *words: str, code: int = 0) -> str:
        """Run a verb of stead, as a person would; returns what it says. `code` is the exit code that it must have."""
        done = as_person([STEAD, *words, "-i", self.hosts], 5400)
        assert done.returncode == code, f"{done.stdout[-5000:]}\n{blank_pc.console(self.server.home)}"
        return done.stdout


@pytest.fixture(scope="session")
def rack(lab: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """A cluster whose control is a router."""
    found = Rack(lab, tmp_path_factory.mktemp("rack"))
    router = {
        "router_interface": lab.root(lab.control, CABLE.format(address=lab.address(lab.control))).strip(),
        "router_network": "10.77.0.0/24",
        "router_pool": ["10.77.0.200", "10.77.0.250"],
    }
    found.write(f"host_vars/{lab.control}.yml", router)
    for name in lab.workers:
        card = CABLE.format(address=lab.address(name))
        found.write(f"host_vars/{name}.yml", {"router_mac": lab.root(name, f"cat /sys/class/net/$({card})/address")})
    with redfish(found.server, found.server.home) as bmc:
        found.bmc = bmc
        found.stead("up")
        yield found
        found.server.on = False
