# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Judge a cluster from the facts of its machines. Opens no connection, changes nothing.

Arguments:

control            name of the machine that runs slurmctld
addresses          address by name of machine
facts              name under which the machines' results of doctor_facts were registered
credentials        name under which the results of doctor_credentials were registered
files              Slurm's configuration files as rendered from the inventory, text by name
groups, users      the declared accounts, see local_accounts
by_hand            accounts that are not reported

It fails if there is a finding. In its result, `findings` lists each finding's host, about, seen and advice, and
`machines` is the number of machines to check.
"""

from __future__ import annotations

import importlib
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import ansible.module_utils
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
accounts = importlib.import_module("ansible.module_utils.slurmstead.identity.accounts")
doctor = importlib.import_module("ansible.module_utils.slurmstead.doctor.findings")


class ActionModule(ActionBase):
    """Judges all machines of the play at once."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the findings; fail if there are any."""
        del tmp
        variables, arguments = task_vars or {}, self._task.args
        heard = {name: variables["hostvars"][name] for name in variables["ansible_play_hosts_all"]}
        found = doctor.findings(cluster(arguments, heard))
        shown = [{key: getattr(finding, key) for key in ("host", "about", "seen", "advice")} for finding in found]
        return {
            "failed": bool(found),
            "msg": "\n".join(finding.line for finding in found) or f"nothing found on {len(heard)} machines",
            "findings": shown,
            "machines": len(heard),
        }


def cluster(arguments: Mapping[str, Any], hosts: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the cluster to judge; `hosts` has the variables of each machine."""
    results = {name: host.get(arguments["facts"]) or {} for name, host in hosts.items()}
    # A machine that could not sign was not asked to decode.
    read = {name: host[arguments["credentials"]] for name, host in hosts.items() if arguments["credentials"] in host}
    silent = {name: _why(result) for name, result in read.items() if not result.keys() & {"refused", "skipped"}}
    silent |= {name: _why(result) for name, result in results.items() if "facts" not in result}
    declared = accounts.wanted(arguments.get("groups") or (), arguments.get("users") or ())
    logins = (host.get(key) for host in hosts.values() for key in ("ansible_user", "bootstrap_user"))
    return doctor.Cluster(
        control=arguments["control"],
        addresses=arguments["addresses"],
        machines={
            name: {**result["facts"], "offset": result["offset"]}
            for name, result in results.items()
            if name not in silent
        },
        silent=silent,
        refused={name: result["refused"] for name, result in read.items() if result.get("refused")},
        files=arguments.get("files") or {},
        accounts=_numbers(*declared),
        groups={group.name: group.gid for group in declared[0]},
        users={user.name: user for user in declared[1]},
        by_hand=frozenset(str(login) for login in logins if login) | frozenset(arguments.get("by_hand") or ()),
    )


def _why(result: Mapping[str, Any]) -> str:
    """Return why a machine was not checked, in one line."""
    said = str(result.get("msg") or result.get("module_stderr") or "no answer").strip()
    return " ".join(said.splitlines()[-1].split()) if said else "no answer"


def _numbers(groups: Iterable[Any], users: Iterable[Any]) -> dict[str, tuple[int, int]]:
    """Return the numbers of each declared user whose group is declared too."""
    numbers = {group.name: group.gid for group in groups}
    return {user.name: (user.uid, numbers[user.group]) for user in users if user.group in numbers}
