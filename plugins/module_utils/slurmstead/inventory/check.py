# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""All checks of an inventory, run at once."""

from __future__ import annotations

from ansible.module_utils.slurmstead.inventory import relations, structure
from ansible.module_utils.slurmstead.inventory.model import Groups, Inventory, Problem, Specs, merged
from ansible.module_utils.slurmstead.inventory.variables import Checked


def problems(inventory: Inventory, groups: Groups, specs: Specs) -> list[Problem]:
    """Return all problems of the inventory; none means that the playbooks can start."""
    variables = Checked(inventory, specs)
    return merged(
        [
            *(problem for check in structure.CHECKS for problem in check(inventory, groups)),
            *variables.problems,
            *relations.problems(variables, groups),
        ]
    )
