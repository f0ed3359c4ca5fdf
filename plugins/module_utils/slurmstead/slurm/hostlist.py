# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Slurm's notation for many host names: `node[1-4,7]`, `rack[0-1]n[01-16]`, `a,b[2-3]` (slurm.conf(5), NodeName)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

MAX_HOSTS = 65536
"""An expression for more names than this counts as a typo (Slurm's own limit is 64k, MAX_RANGE in hostlist.c)."""

_PIECE = re.compile(r"[^\[\],\s]+|\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def expand(expression: str) -> list[str]:
    """All names of a host list in the order written.

    >>> expand("node[1-3,7],login")
    ['node1', 'node2', 'node3', 'node7', 'login']
    >>> expand("n[08-10]")
    ['n08', 'n09', 'n10']

    Raises ValueError, which names the wrong part.
    """
    return [name for item in _split(expression) for name in _expand_item(item)]


def compress(names: Iterable[str]) -> str:
    """The shortest host list of these names: numbered ones as ranges, all sorted.

    >>> compress(["node4", "node2", "node1", "login", "node3", "n08", "n09"])
    'login,n[08-09],node[1-4]'
    """
    numbers: dict[tuple[str, int], list[int]] = {}
    plain: list[str] = []
    for name in sorted(set(names)):
        match = re.fullmatch(r"(.*?)(\d+)", name)
        if match is None:
            plain.append(name)
        else:
            prefix, digits = match.groups()
            # Width 0 stands for "no leading zero": node9 and node10 are one range, n09 and n10 another.
            numbers.setdefault((prefix, len(digits) if digits[0] == "0" else 0), []).append(int(digits))
    for prefix, width in [key for key in numbers if key[1]]:
        _adopt_same_width(numbers, prefix, width)
    items = plain + [_item(prefix, width, values) for (prefix, width), values in numbers.items() if values]
    return ",".join(sorted(items))


def _adopt_same_width(numbers: dict[tuple[str, int], list[int]], prefix: str, width: int) -> None:
    """Move n10 to n08 and n09: it has the same number of digits, so one range can contain them."""
    free = numbers.get((prefix, 0), [])
    numbers[prefix, width] += [number for number in free if len(str(number)) == width]
    numbers[prefix, 0] = [number for number in free if len(str(number)) != width]


def _item(prefix: str, width: int, values: list[int]) -> str:
    spans: list[tuple[int, int]] = []
    for value in sorted(values):
        if spans and spans[-1][1] == value - 1:
            spans[-1] = (spans[-1][0], value)
        else:
            spans.append((value, value))
    written = [f"{a:0{width}d}" if a == b else f"{a:0{width}d}-{b:0{width}d}" for a, b in spans]
    return f"{prefix}{written[0]}" if len(values) == 1 else f"{prefix}[{','.join(written)}]"


def _split(expression: str) -> Iterator[str]:
    """The parts between commas outside brackets."""
    depth, start = 0, 0
    for position, letter in enumerate(expression + ","):
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if depth not in (0, 1):
            raise ValueError(f"the brackets of {expression!r} do not match")
        if letter == "," and depth == 0:
            item = expression[start:position].strip()
            if not item:
                raise ValueError(f"{expression!r} has an empty name")
            yield item
            start = position + 1
    if depth:
        raise ValueError(f"the brackets of {expression!r} do not match")


def _expand_item(item: str) -> list[str]:
    pieces: list[list[str]] = []
    end = 0
    for match in _PIECE.finditer(item):
        if match.start() != end:
            break
        end = match.end()
        pieces.append([match[0]] if match[1] is None else _numbers(match[1], item))
    if end != len(item):
        raise ValueError(f"{item!r} is not a host name or range such as node[1-4]")
    count = 1
    for piece in pieces:
        count *= len(piece)
    if count > MAX_HOSTS:
        raise ValueError(f"{item!r} stands for {count} hosts; more than {MAX_HOSTS} are not possible")
    return ["".join(parts) for parts in itertools.product(*pieces)]


def _numbers(text: str, item: str) -> list[str]:
    """The numbers of one pair of brackets, each with its leading zeros."""
    result: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part!r} in {item!r} is not a number or a range such as 1-4")
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            raise ValueError(f"the range {part!r} in {item!r} runs backwards")
        if int(last) - int(first) >= MAX_HOSTS:
            raise ValueError(f"the range {part!r} in {item!r} is longer than {MAX_HOSTS} hosts")
        result += [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
    return result
