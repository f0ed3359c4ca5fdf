# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The text of slurm.conf(5): pure functions from values to lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def key_value(key: str, value: Any) -> str:
    """Return one `Key=Value`.

    >>> key_value("Features", ["arm64", "rk3588"])
    'Features=arm64,rk3588'
    >>> key_value("Default", True)
    'Default=YES'
    """
    if isinstance(value, bool):
        value = "YES" if value else "NO"
    elif isinstance(value, (list, tuple)):
        value = ",".join(str(item) for item in value)
    elif isinstance(value, str) and " " in value:
        value = f'"{value}"'
    return f"{key}={value}"


def without_null(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without those that are null, which delete a default."""
    return {key: value for key, value in values.items() if value is not None}


def slurm_keys(values: Mapping[str, Any]) -> str:
    """Return one key per line, sorted; a null value leaves its key out.

    >>> print(slurm_keys({"SlurmUser": "slurm", "AuthType": "auth/munge", "Epilog": None}))
    AuthType=auth/munge
    SlurmUser=slurm
    """
    return "\n".join(key_value(key, value) for key, value in sorted(without_null(values).items()))


def slurm_lines(sections: Mapping[str, Mapping[str, Any] | None], first_key: str) -> str:
    """Return one line for each section, such as a partition, with its name under `first_key`.

    `DEFAULT` comes first, because Slurm applies it to the lines below it only.

    >>> print(slurm_lines({"main": {"Nodes": "ALL", "Default": True}}, "PartitionName"))
    PartitionName=main Default=YES Nodes=ALL
    """
    lines = []
    for name, values in sorted(sections.items(), key=lambda section: (section[0] != "DEFAULT", section[0])):
        keys = sorted(without_null(values or {}).items())
        lines.append(" ".join([f"{first_key}={name}", *(key_value(key, value) for key, value in keys)]))
    return "\n".join(lines)
