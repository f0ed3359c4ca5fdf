# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The address of a device: HOST or HOST:PORT, an IPv6 address in brackets."""

from __future__ import annotations

import re

_LABEL = "[A-Za-z0-9_-]{1,63}"
_ADDRESS = re.compile(rf"(?:\[([0-9A-Fa-f:.]+)\]|({_LABEL}(?:\.{_LABEL})*))(?::([0-9]{{1,5}}))?")


def split(address: str, port: int) -> tuple[str, int]:
    """Return the host and the port of an address.

    :param port: the one of an address without a port
    :raises ValueError: it is not an address

    >>> split("[fd00::9]", 623), split("bmc1:6230", 623)
    (('fd00::9', 623), ('bmc1', 6230))
    """
    found = _ADDRESS.fullmatch(address)
    number = int((found and found[3]) or port)
    if not found or not 1 <= number <= 65535:
        raise ValueError(f"{address} is not an address")
    return found[1] or found[2], number
