# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A transaction that replaces a table: nft applies a file as a whole, so no packet sees the gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def removal(family: str, name: str) -> str:
    """Return the lines that remove a table, also if it does not exist."""
    return f"table {family} {name}\ndelete table {family} {name}\n"


def text(family: str, name: str, chains: Mapping[str, Sequence[str]], sets: str = "") -> str:
    """Return the transaction that replaces a table.

    :param chains: the lines of each chain by its name; an empty line stays one
    :param sets: their indented text

    >>> print(text("ip", "one", {"input": ["type filter hook input priority 0;", "counter"]}), end="")
    table ip one
    delete table ip one
    table ip one {
        chain input {
            type filter hook input priority 0;
            counter
        }
    }
    """
    body = "".join(
        f"    chain {chain} {{\n" + "".join(f"        {line}".rstrip() + "\n" for line in lines) + "    }\n"
        for chain, lines in chains.items()
    )
    return f"{removal(family, name)}table {family} {name} {{\n{sets}{body}}}\n"
