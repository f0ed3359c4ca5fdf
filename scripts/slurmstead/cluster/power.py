"""Which machines can be switched, and what their devices say."""

import pathlib
from collections.abc import Sequence

from slurmstead.runner import playbook
from slurmstead.runner.outcome import Result


def switchable(inventory: pathlib.Path, nodes: Sequence[str]) -> list[str]:
    """Return the nodes for which the inventory sets power_method.

    :raises InventoryError: the inventory cannot be read
    """
    variables = playbook.listed(inventory).get("_meta", {}).get("hostvars", {})
    return [node for node in nodes if variables.get(node, {}).get("power_method")]


def lines(result: Result) -> list[str]:
    """Return a line for each machine: its name, and whether its device says that it is on."""
    found: dict[str, str] = {}
    for debug in result.results_of("debug"):
        said = debug.get("msg")
        if isinstance(said, dict) and "power" in said:
            found |= said["power"]
    width = max(map(len, found), default=0)
    return [f"{name:<{width}}  {power}" for name, power in sorted(found.items())]
