"""The VPN gets a network of its own, not one in which its server is already."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

LINKS = [
    {"ifname": "wlan0", "addr_info": [{"family": "inet", "local": "192.168.1.7", "prefixlen": 24}]},
    {"ifname": "stead-vpn", "addr_info": [{"family": "inet", "local": "10.79.0.1", "prefixlen": 24}]},
]


@pytest.mark.parametrize(
    ("network", "said"),
    [("10.79.0.0/24", ""), ("192.168.0.0/16", "overlaps 192.168.1.0/24 on wlan0, whose computers would be locked out")],
)
def test_a_network_of_this_machine_is_refused(
    run_module: Callable[..., Any], load_module: Any, monkeypatch: pytest.MonkeyPatch, network: str, said: str
) -> None:
    monkeypatch.setattr(load_module("vpn_network"), "run", lambda *_: (0, json.dumps(LINKS), ""))
    done = run_module("vpn_network", network=network, interface="stead-vpn")

    assert said in done.result.get("msg", "")
    assert bool(said) is bool(done.failed)
