"""A blank server on the switch asks for an address, and control finds it.

STEAD_LAB=NAME pytest tests/lab/install
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.install.conftest import NAME, Rack
from tests.lab.install.server import MAC

pytestmark = pytest.mark.kernel

ASKING = 600
"""Seconds until a server that was switched on has asked for an address."""


def test_a_server_that_asks_for_an_address_is_found(lab: Any, rack: Rack) -> None:
    rack.server.on = True
    lab.insist(lab.control, f"grep {MAC} /var/lib/misc/slurmstead.leases", ASKING)
    assert MAC in rack.stead("discover")
    rack.stead("discover", f"{MAC}={NAME}", "--yes")
    written = rack.hosts.read_text()
    assert f'      router_mac: "{MAC}"\n      install_disk: ""\n' in written
