# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Runs tasks through mitogen, to whom a machine that goes away is unreachable, as it is to Ansible alone.

mitogen says so of modules that share a process (ansible_mitogen/connection.py), but not of those that need one of their
own, as all of this repository do (planner.py): to Ansible they have failed. Where a task hides its result, nobody could
tell the two apart.
"""

from __future__ import annotations

import re
from typing import Any

import ansible_mitogen.loaders
import ansible_mitogen.planner
import ansible_mitogen.strategy
import mitogen.core
from ansible.errors import AnsibleConnectionFailure

LOST = re.compile(
    "the respondent Context has disconnected|Channel was disconnected while connection attempt was in progress|"
    r"Channel closed by remote end|no route to \S+, my ID is|EOF on stream; last \d+ lines received:\s*$|"
    "'NoneType' object has no attribute 'protocol'"
)
"""What mitogen 0.3 says of a machine that goes away (core.py, parent.py, service.py).

A stream that said something before its end is a `sudo` that refused.
"""

invoke = ansible_mitogen.planner.invoke


def reach(invocation: Any) -> Any:
    """Run a module; raises AnsibleConnectionFailure where its machine went away."""
    try:
        return invoke(invocation)
    except mitogen.core.Error as error:
        if LOST.search(str(error)):
            raise AnsibleConnectionFailure(str(error)) from error
        raise


ansible_mitogen.planner.invoke = reach


Linear: Any = ansible_mitogen.loaders.strategy_loader.get("linear", class_only=True)


class StrategyModule(ansible_mitogen.strategy.StrategyMixin, Linear):
    """Ansible's linear strategy."""
