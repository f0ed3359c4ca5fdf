"""Messages about a machine name it, and hide its password."""

from __future__ import annotations

from tests import power_devices as devices
from tests.unit.modules.conftest import RunModule


def test_a_refused_password_is_hidden_and_its_machine_is_named(run_module: RunModule) -> None:
    with devices.served(devices.ShellyHandler) as device:
        node = {"name": "node1", "method": "plug", "plug": "shelly_1", "address": device.address}
        done = run_module("power", machines=[{**node, "user": "admin", "password": "canary-word"}], state="on")

    assert done.result["problems"] == [f"node1: {device.address} refuses the credentials of node1 (HTTP 401)"]
    assert "canary-word" not in str(done.result)
