# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The records of measured hardware beside an inventory: files in git, in which a merge can leave both sides."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ansible.module_utils.slurmstead.hardware import record
from ansible.module_utils.slurmstead.inventory.model import Problem


def problems(directory: str) -> Iterator[Problem]:
    """Yield the files that no run can read."""
    for path in sorted(Path(directory).glob("*.yml")):
        try:
            record.read(path)
        except record.RecordError as error:
            yield Problem(os.path.relpath(path), error.wrong, record.ADVICE)
