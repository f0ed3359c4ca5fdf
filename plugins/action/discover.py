# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Find the machines in control's networks that the inventory does not know. Changes nothing.

Arguments:

networks    more networks in which to look, if control is in them
users       accounts that are tried on new machines with the operator's key, in this order

In its result, `new` are the machines and `notes` what an operator should know (see module_utils/slurmstead/discover).
"""

from __future__ import annotations

import concurrent.futures
import importlib
import pathlib
from collections.abc import Mapping
from typing import Any

import ansible.module_utils
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
judge = importlib.import_module("ansible.module_utils.slurmstead.discover.judge")
login = importlib.import_module("ansible.module_utils.slurmstead.discover.login")
remote_call = importlib.import_module("ansible.module_utils.slurmstead.reach.remote_call")


class ActionModule(ActionBase):
    """Looks on control, then logs in to what answers."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the new machines."""
        del tmp
        variables = task_vars or {}
        hosts = variables["hostvars"]
        own = hosts[variables["inventory_hostname"]]
        arguments = {"addresses": [str(own["os_address"])], "networks": self._task.args["networks"]}
        result: dict[str, Any] = remote_call.ask(self._low_level_execute_command, "discover.look", "look", arguments)
        if "returned" not in result:
            return result
        found = result.pop("returned")
        known = [_known(name, hosts[name]) for name in variables["groups"]["all"]]
        records = _measured(found["records"], known, own, self._task.args["users"])
        judged = judge.judge(records, known)
        return {
            **result,
            **judged,
            "notes": [*found["notes"], *judged["notes"]],
            "addresses": [record["address"] for record in records],
        }


def _known(name: str, variables: Mapping[str, Any]) -> Any:
    macs = tuple(str(variables[key]) for key in ("router_mac", "power_mac") if variables.get(key))
    words = {
        field: str(variables.get(key) or "")
        for field, key in (
            ("address", "os_address"),
            ("serial", "os_serial"),
            ("host_key", "os_host_key"),
            ("device", "power_address"),
        )
    }
    return judge.Known(name=name, macs=macs, **words)


def _measured(records: list[Any], known: list[Any], own: Mapping[str, Any], users: list[str]) -> list[Any]:
    """Return the records, those of strangers that speak ssh with what a login found."""
    wanted = [record for record in judge.strangers(records, known) if record["host_keys"]]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda record: login.measure(own, record, users), wanted))
    more = {record["address"]: found for record, found in zip(wanted, done, strict=True)}
    return [{**record, **more.get(record["address"], {})} for record in records]
