# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Does slurmdbd answer, and what has slurmctld not yet told it?"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from ansible.module_utils.slurmstead.accounting import storage
from ansible.module_utils.slurmstead.reach.commands import run

WAITING = re.compile(r"^DBD Agent queue size: (\d+)$", re.MULTILINE)
"""In the output of sdiag(1)."""


def look(units: Collection[str]) -> dict[str, Any]:
    """Return the `error` of slurmdbd on control, and the number of messages that `wait` for it; {} elsewhere."""
    if "slurmdbd" not in units:
        return {}
    _, out, _ = run("sdiag", seconds=15)
    found = WAITING.search(out)
    return {"error": storage.unanswered("localhost"), "waiting": int(found[1]) if found else 0}
