# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for packages that a site adds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ansible.module_utils.slurmstead.inventory.model import Violation, shown

NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*[a-z0-9+.]")
"""Debian Policy 5.6.1, without a hyphen at the end, which would make apt remove the package."""


def package_names_are_possible(packages_extra: Sequence[str]) -> Iterator[Violation]:
    """A name alone: no version, file or pattern."""
    for name in packages_extra:
        if not NAME.fullmatch(name):
            yield (
                "packages_extra",
                f"has {shown(name)}, which is not a package's name",
                "Write names such as g++ or make",
            )
