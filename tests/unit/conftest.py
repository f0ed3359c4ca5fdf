"""What several unit tests share."""

from __future__ import annotations

import pathlib
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import yaml

from ansible.module_utils.slurmstead.inventory.check import problems
from ansible.module_utils.slurmstead.inventory.model import DropIn, Groups, Inventory, Specs, Variable, VariableFile

ROOT = pathlib.Path(__file__).resolve().parents[2]

WORKERS = ("node1", "node2", "node4")
GROUPS = {
    "all": ("node1", "node2", "node3", "node4"),
    "ungrouped": (),
    "control": ("node3",),
    "nfs_server": ("node3",),
    "workers": WORKERS,
}


@pytest.fixture(scope="session")
def specs() -> Specs:
    """The variables of all roles of this repository."""
    roles = {
        path.parts[-3]: yaml.safe_load(path.read_text())["argument_specs"]["main"].get("options") or {}
        for path in ROOT.glob("roles/*/meta/argument_specs.yml")
    }
    computed = frozenset(yaml.safe_load((ROOT / "playbooks/vars/cluster.yml").read_text()))
    return Specs(roles, computed, optional=frozenset({"bootstrap", "lab"}))


@pytest.fixture
def said(specs: Specs) -> Callable[..., list[str]]:
    """What is said of four good hosts, node1 to node4, that are changed in one respect."""

    def check(
        everywhere: Mapping[str, Any] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        files: Sequence[VariableFile] = (),
        drop_ins: Sequence[DropIn] = (),
        **own: Mapping[str, Any],
    ) -> list[str]:
        members = {**GROUPS, **(groups or {})}
        hosts = {}
        for number, host in enumerate(members["all"], start=1):
            variables = {"os_address": f"192.168.1.{number}", **(everywhere or {}), **own.get(host, {})}
            hosts[host] = {
                name: value if isinstance(value, Variable) else Variable(value) for name, value in variables.items()
            }
        inventory = Inventory(members, hosts, files, drop_ins=drop_ins)
        return [str(problem) for problem in problems(inventory, Groups("control", "nfs_server", "workers"), specs)]

    return check


class Refuse(socketserver.BaseRequestHandler):
    """A listener that says nothing to ssh."""

    def handle(self) -> None:
        self.request.recv(64)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port on which a process listens: a machine that is on, and accepts no login."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Refuse) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()
