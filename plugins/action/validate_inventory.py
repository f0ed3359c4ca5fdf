# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Check the whole inventory on the controller. Opens no connection, changes nothing.

Arguments:

control, nfs_server, workers   names of the cluster's groups
optional_roles                 roles that apply only to hosts that set one of their variables; default none
hardware                       directory of the records of measured hardware; default none
files                          directory whose drop-ins, people.yml and vpn.yml are checked; default none

It checks all hosts, also with --limit: an address used twice is wrong whichever host is being configured.
The variables are defined in the roles' meta/argument_specs.yml.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ansible.module_utils
from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.template import Templar

try:  # A private API: if it moves, messages lack file and line.
    from ansible._internal._datatag._tags import Origin
except ImportError:
    Origin = None

PROJECT = Path(__file__).parents[2]
CLUSTER_VARS = PROJECT / "playbooks/vars/cluster.yml"
"""Variables that the playbooks compute; an inventory cannot set them."""

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(PROJECT / "plugins/module_utils"))

from ansible.module_utils.slurmstead.inventory import people, records, vpn
from ansible.module_utils.slurmstead.inventory.check import problems
from ansible.module_utils.slurmstead.inventory.files import (
    drop_ins,
    nodes,
    repeated_keys,
    sexagesimals,
    unread,
    variable_files,
)
from ansible.module_utils.slurmstead.inventory.model import Groups, Inventory, Specs, Variable
from ansible.module_utils.slurmstead.inventory.variables import COMPARED_CONNECTION_VARIABLES


class ActionModule(ActionBase):
    """The action `validate_inventory`."""

    _requires_connection = False
    _supports_check_mode = True
    _VALID_ARGS = frozenset({"control", "nfs_server", "workers", "optional_roles", "files", "hardware"})

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Fail with all problems of the inventory in one message, one per line."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        args = self._task.args
        missing = sorted(self._VALID_ARGS - {"optional_roles", "files", "hardware"} - set(args))
        if missing:
            raise AnsibleActionFail(f"validate_inventory needs the names of these groups: {', '.join(missing)}.")
        groups = Groups(args["control"], args["nfs_server"], args["workers"])
        specs = Specs(
            roles=self._argument_specs(),
            computed=frozenset(self._loader.load_from_file(str(CLUSTER_VARS))),
            optional=frozenset(args.get("optional_roles", ())),
        )
        inventory = self._inventory(task_vars, specs)
        found = problems(inventory, groups, specs)
        if args.get("hardware"):
            found += records.problems(args["hardware"])
        if args.get("files"):
            found += people.problems(inventory, args["files"], groups.control)
            network = str(specs.options["vpn_network"]["default"])
            found += vpn.problems(inventory, args["files"], groups.control, network)
        if found:
            count = "one problem" if len(found) == 1 else f"{len(found)} problems"
            lines = [f"The inventory has {count}. No machine was touched.", *(f"- {problem}" for problem in found)]
            result |= {"failed": True, "msg": "\n".join(lines)}
        else:
            result["msg"] = f"The inventory of {len(task_vars['groups']['all'])} hosts is valid."
        return result

    def _argument_specs(self) -> dict[str, Mapping[str, Any]]:
        """The options of the entry point `main` of every role that has argument specs."""
        specs = {}
        for path in sorted(PROJECT.glob("roles/*/meta/argument_specs.yml")):
            specs[path.parts[-3]] = (
                self._loader.load_from_file(str(path))["argument_specs"]["main"].get("options") or {}
            )
        return specs

    def _inventory(self, task_vars: dict[str, Any], specs: Specs) -> Inventory:
        sources = task_vars["ansible_inventory_sources"]
        read = tuple(nodes(sources))
        return Inventory(
            groups=task_vars["groups"],
            hosts={host: self._variables(host, task_vars, specs) for host in task_vars["groups"]["all"]},
            files=tuple(variable_files(sources)),
            repeated_keys=tuple(repeated_keys(read)),
            sexagesimals=tuple(sexagesimals(read)),
            unread=tuple(unread(sources)),
            drop_ins=tuple(drop_ins(self._task.args["files"])) if self._task.args.get("files") else (),
        )

    def _variables(self, host: str, task_vars: dict[str, Any], specs: Specs) -> dict[str, Variable]:
        """All variables of the host; values of variables that no role defines are not computed."""
        hostvars = task_vars["hostvars"]
        raw = hostvars.raw_get(host)
        # A value may refer to other hosts, as in a play.
        templar = self._templar.copy_with_new_env(available_variables={**raw, "hostvars": hostvars})
        # YAML reads some names in group_vars/ as numbers or booleans.
        return {
            str(name): _variable(templar, value, name in specs.options or name in COMPARED_CONNECTION_VARIABLES)
            for name, value in raw.items()
        }


def _variable(templar: Templar, raw: Any, compute: bool) -> Variable:
    origin = _origin(raw)
    if not compute:
        return Variable(origin=origin)
    try:
        return Variable(templar.template(raw), origin)
    except AnsibleError as error:
        reason = str(error.message).splitlines()[0].removesuffix(" Use -vvvvv to see paths searched.").rstrip(".")
        return Variable(origin=origin, error=f"cannot be computed: {reason}")


def _origin(raw: Any) -> str:
    """File and line of a value; Ansible keeps them for all values but true, false and null."""
    tag = Origin.get_tag(raw) if Origin else None
    if tag is None or tag.path is None:
        return ""
    line = "" if tag.line_num is None else f":{tag.line_num}"
    return f"{os.path.relpath(tag.path)}{line}"
