"""What control knows of the VPN, and the run that gives it the peers of the site."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from slurmstead.cluster import operations
from slurmstead.cluster.ask import ask
from slurmstead.errors import CheckFailed, SteadError


@dataclasses.dataclass(frozen=True)
class Control:
    """What control knows: its public key, the variables of the role, and its peers by public key."""

    key: str
    endpoint: str
    network: str
    port: int
    seen: Mapping[str, int]
    """seconds since the last handshake, or -1 without one"""


def state(console: Console, inventory: pathlib.Path, *, plain: bool = False) -> Control:
    """Ask control, with progress on `console`.

    :raises SteadError: control could not be asked, or has no VPN
    """
    unasked = CheckFailed("control was not asked", "The inventory needs a group `control`.")
    return judged(ask(console, "show-vpn.yml", inventory, "vpn_state", "key", unasked=unasked, plain=plain))


def judged(found: Mapping[str, Any]) -> Control:
    """Return what the module vpn_state returned.

    :raises CheckFailed: control has no VPN
    """
    if not found["enabled"]:
        raise CheckFailed("control has no VPN", "Write vpn_enabled: true in group_vars/control.yml: see docs/vpn.md.")
    if not found["key"]:
        raise CheckFailed("the VPN of control has never run", "Run `scripts/stead up`, then this command again.")
    return Control(found["key"], found["endpoint"], found["network"], int(found["port"]), found["seen"])


def apply(out: Console, messages: Console, inventory: pathlib.Path, left: str, *, plain: bool = False) -> None:
    """Give control the peers that the site's file has now.

    :param left: what is still the case if the run fails
    :raises SteadError: the run failed
    :raises CheckFailed: the run succeeded without a task on control
    """
    try:
        result = operations.run(
            *(out, messages, "reload-vpn.yml", inventory),
            limit=",".join(operations.groups(inventory)["control"]),
            plain=plain,
        )
    except SteadError as error:
        error.hint = f"{left} `scripts/stead up --tags vpn` applies the file. {error.hint}".strip()
        raise
    # Where vpn_enabled is not set any more, this playbook does not know whether control still has the VPN.
    if not result.results_of("config_files"):
        raise CheckFailed("control was not changed", f"{left} `scripts/stead up` applies the inventory.")
