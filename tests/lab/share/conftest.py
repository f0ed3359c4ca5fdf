"""A share with files whose properties a move has to keep."""

from __future__ import annotations

import copy
import json
import pathlib
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from slurmstead.paths import PLAYBOOKS
from tests.lab.run import Began, Run

MOVE = str(PLAYBOOKS / "move-share.yml")

WRITE = """
mkdir -p kept/deep
seq 100000 > kept/deep/numbers
ln -f kept/deep/numbers kept/same
ln -sfn deep/numbers kept/link
chmod 640 kept/deep/numbers
touch -d 2001-02-03T04:05:06 kept/deep/numbers
truncate -s 100M kept/sparse
printf x >> kept/sparse
"""
DIGEST = (
    "cd /share/home/alice/kept && find . -printf '%p %y %m %u %g %n %T@ %l\\n' | sort && "
    "find . -type f -print0 | sort -z | xargs -0 sha256sum && du --block-size=1M sparse"
)


@pytest.fixture
def files(lab: Any) -> Iterator[Callable[[], str]]:
    """Files of alice; returns a function that returns their properties and checksums, as a worker sees them."""
    lab.user(WRITE)
    # Root on a worker has no special rights on the share.
    yield lambda: str(lab.without_login(lab.workers[0], "alice", DIGEST))


class Places:
    """Places of the share in the inventory: each call of `site` or `move` has those of `at`."""

    def __init__(self, lab: Any, directory: pathlib.Path) -> None:
        self.lab = copy.copy(lab)
        self.lab.inventory = directory / "inventory"
        shutil.copytree(lab.inventory, self.lab.inventory)
        self.variables: dict[str, str] = {}

    def at(self, source: str, server: str | None = None) -> None:
        """Set the directory of the share, and its server."""
        self.variables = {"nfs_server_path": source, "nfs_client_source": source}
        if server:
            path = self.lab.inventory / "hosts.yml"
            hosts = yaml.safe_load(path.read_text())
            hosts["nfs_server"]["hosts"] = {server: None}
            # The spare disks of the lab stay with the machine that has them.
            self.variables["nfs_server_size"] = "1G"
            path.write_text(yaml.safe_dump(hosts))

    def site(self, *arguments: str) -> Run:
        """Run site.yml."""
        return self.lab.ansible("--extra-vars", json.dumps(self.variables), *arguments, seconds=1800)

    def move(self, began: Began | None = None, **given: str) -> Run:
        """Run move-share.yml."""
        variables = json.dumps({**self.variables, **given})
        return self.lab.ansible("--extra-vars", variables, MOVE, seconds=2400, began=began)


@pytest.fixture
def places(lab: Any, tmp_path: pathlib.Path) -> Places:
    """The places of the share."""
    return Places(lab, tmp_path)
