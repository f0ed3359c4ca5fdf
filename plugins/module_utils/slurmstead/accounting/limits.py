# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The keys of accounts, users and QOS, and when two of their values mean the same. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NAME = re.compile(r"[a-z_][a-z0-9_.-]{0,60}")
"""A name of an account or QOS: Slurm writes them in lower case."""

SAFE = re.compile(r"[A-Za-z0-9_.:=,/+-]*")
"""Characters of a value: sacctmgr reads a command per line, and words between spaces."""

TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<rest>\d+(?::\d\d){0,2})")
SIZES = {"": 1, "m": 1, "g": 1 << 10, "t": 1 << 20, "p": 1 << 30}
SIZE = re.compile(r"(\d+(?:\.\d+)?)([mgtp]?)", re.IGNORECASE)
TRES = re.compile(r"(cpu|mem|node|billing|energy|pages|vmem|(gres|license|fs|bb|ic)/[a-z0-9:_./-]+)=\d+[mgtp]?")
CLEARED = "-1"


@dataclass(frozen=True)
class Key:
    """A key of sacctmgr's commands: the column that shows it, and the kind of its value."""

    column: str
    kind: str
    """time, tres, set, word or one of FORMS"""
    default: str = ""
    """what is shown without a value"""


FORMS = {
    "factor": (re.compile(r"\d+(\.\d+)?"), "is neither a number nor null"),
    "name": (NAME, "is not a name in lower case, with digits, and . _ -"),
    "number": (re.compile(r"\d+"), "is neither a whole number nor null"),
    "seconds": (re.compile(r"\d+"), "is not a number of seconds"),
    "share": (re.compile(r"\d+|parent"), "is neither a whole number nor parent"),
}
"""What a value must look like, and what is wrong with others, by kind."""


ASSOCIATION = {
    "DefaultQOS": Key("DefaultQOS", "word"),
    "Fairshare": Key("Share", "share", "1"),
    "GrpJobs": Key("GrpJobs", "number"),
    "GrpSubmitJobs": Key("GrpSubmit", "number"),
    "GrpTRES": Key("GrpTRES", "tres"),
    "GrpTRESMins": Key("GrpTRESMins", "tres"),
    "GrpTRESRunMins": Key("GrpTRESRunMins", "tres"),
    "GrpWall": Key("GrpWall", "time"),
    "MaxJobs": Key("MaxJobs", "number"),
    "MaxSubmitJobs": Key("MaxSubmit", "number"),
    "MaxTRESPerJob": Key("MaxTRES", "tres"),
    "MaxTRESPerNode": Key("MaxTRESPerNode", "tres"),
    "MaxWall": Key("MaxWall", "time"),
    "QOS": Key("QOS", "set"),
}
"""Keys of an account, and of a user in an account."""

QOS = {
    "Flags": Key("Flags", "set"),
    "GraceTime": Key("GraceTime", "seconds", "0"),
    "GrpJobs": Key("GrpJobs", "number"),
    "GrpSubmitJobs": Key("GrpSubmit", "number"),
    "GrpTRES": Key("GrpTRES", "tres"),
    "GrpTRESMins": Key("GrpTRESMins", "tres"),
    "GrpWall": Key("GrpWall", "time"),
    "MaxJobsPerUser": Key("MaxJobsPU", "number"),
    "MaxSubmitJobsPerUser": Key("MaxSubmitPU", "number"),
    "MaxTRESPerJob": Key("MaxTRES", "tres"),
    "MaxTRESPerUser": Key("MaxTRESPU", "tres"),
    "MaxWall": Key("MaxWall", "time"),
    "MinTRESPerJob": Key("MinTRES", "tres"),
    "Preempt": Key("Preempt", "set"),
    "PreemptMode": Key("PreemptMode", "word", "cluster"),
    "Priority": Key("Priority", "number", "0"),
    "UsageFactor": Key("UsageFactor", "factor", "1"),
}

Value = Any
"""A value of the inventory: a text, number, list or mapping; None clears it."""


def text(value: Value) -> str:
    """Return a value of the inventory as sacctmgr reads it; None becomes an empty text.

    >>> text({"cpu": 8, "mem": "4G"}), text(["normal", "low"]), text(7), text(None)
    ('cpu=8,mem=4G', 'normal,low', '7', '')
    """
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={number}" for name, number in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(str(word) for word in value)
    return str(value)


def wrong(key: Key, value: Value) -> str:
    """Return why a value of the inventory cannot be one of this key; empty if it can.

    >>> wrong(ASSOCIATION["MaxWall"], 14400)
    'is not a text: YAML reads 4:00:00 as a number; write it in quotes'
    >>> wrong(ASSOCIATION["MaxJobs"], "many")
    'is neither a whole number nor null'
    """
    if value is None:
        return ""
    if not SAFE.fullmatch(text(value)):
        return "has a character that sacctmgr would misread"
    if key.kind == "time" and not isinstance(value, str):
        return "is not a text: YAML reads 4:00:00 as a number; write it in quotes"
    if key.kind in FORMS:
        form, why = FORMS[key.kind]
        return "" if form.fullmatch(text(value)) else why
    meant = meaning(key, text(value))
    if key.kind == "time" and meant is None:
        return "is not a time such as '4:00:00', '1-00:00:00' or '240' (minutes)"
    if key.kind == "time" and meant % 60:
        return "has seconds, but Slurm counts whole minutes"
    if key.kind == "tres" and not all(TRES.fullmatch(word) for word in text(value).lower().split(",") if word):
        return "is not a list such as cpu=8,mem=4G"
    return ""


def meaning(key: Key, shown: str) -> Any:
    """Return what can be compared with another value of the key; None, or an empty set, without one.

    >>> meaning(QOS["MaxWall"], "240") == meaning(QOS["MaxWall"], "04:00:00")
    True
    >>> meaning(QOS["GrpTRES"], "cpu=8,mem=4G") == meaning(QOS["GrpTRES"], "mem=4096M,cpu=8")
    True
    """
    shown = shown.strip()
    if key.kind in ("set", "tres"):
        words = [word for word in shown.lower().split(",") if word]
        return frozenset(_tres(word) for word in words) if key.kind == "tres" else frozenset(words)
    if not shown:
        return None
    if key.kind == "time":
        return _seconds(shown)
    if key.kind == "seconds":
        return _seconds(shown) if ":" in shown else int(shown)
    if key.kind in ("factor", "number", "share"):
        try:
            return float(shown)
        except ValueError:
            return shown.lower()
    return shown.lower()


def _tres(word: str) -> tuple[str, str]:
    name, _, number = word.partition("=")
    size = SIZE.fullmatch(number)
    return name, f"{float(size[1]) * SIZES[size[2].lower()]:g}" if size else number


def _seconds(shown: str) -> int | None:
    """Return the seconds of a time as sbatch(1) reads it: minutes, or [days-]hours:minutes:seconds."""
    found = TIME.fullmatch(shown)
    if not found:
        return None
    parts = [int(part) for part in found["rest"].split(":")]
    if found["days"]:
        parts = [*parts, 0, 0][:3]
    elif len(parts) < 3:
        # Minutes, or minutes:seconds.
        parts = [0, *parts, 0][:3]
    return int(found["days"] or 0) * 86400 + parts[0] * 3600 + parts[1] * 60 + parts[2]


def setting(name: str, key: Key, wanted: Value, shown: str) -> str:
    """Return the word of a command that changes a value from what is shown to what is wanted.

    >>> setting("GrpTRES", ASSOCIATION["GrpTRES"], {"cpu": 16}, "cpu=8,mem=4G")
    'GrpTRES=cpu=16,mem=-1'
    >>> setting("MaxJobs", ASSOCIATION["MaxJobs"], None, "7"), setting("Flags", QOS["Flags"], None, "DenyOnLimit")
    ('MaxJobs=-1', 'Flags=-1')
    """
    new = text(wanted) or key.default
    if key.kind == "tres":
        gone = sorted({one for one, _ in meaning(key, shown)} - {one for one, _ in meaning(key, new)})
        new = ",".join([*([new] if new else []), *(f"{one}={CLEARED}" for one in gone)])
    elif not new and (key.kind in ("number", "time") or name in ("DefaultQOS", "Flags")):
        new = CLEARED
    return f"{name}={new}"


def differing(keys: Mapping[str, Key], wanted: Mapping[str, Value], shown: Mapping[str, str]) -> list[str]:
    """Return the keys whose wanted value is not the one that is shown."""
    return [
        name
        for name in sorted(wanted)
        if meaning(keys[name], text(wanted[name]) or keys[name].default) != meaning(keys[name], shown.get(name, ""))
    ]
