# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The changes that an upgrade of a machine would make, and what prevents it, according to dpkg and apt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FIELDS = ("Package", "Version", "source:Package", "db:Status-Status", "db:Status-Want", "db:Status-Eflag")
FORMAT = "\\t".join(f"${{{field}}}" for field in FIELDS) + "\\n"
"""For `dpkg-query --showformat`; see dpkg-query(1)."""

WHOLE = ("installed", "config-files", "not-installed")
"""Final states of a package in dpkg; in any other state, dpkg was interrupted."""

SOURCES = ("slurm-wlm", "munge")
"""Source packages whose versions must be equal on all machines. Debian builds several packages from each."""

STEP = re.compile(
    r"^Inst (?P<name>\S+)(?: \[(?P<before>[^]]+)\])? \((?P<after>\S+)(?P<origin>[^)]*?)(?: \[\S+\])?\)", re.M
)
"""A package in the output of `apt-get --simulate`: Inst slurmd [1] (2 Debian:12.12/oldstable, ... [amd64])."""

KEPT = re.compile(r"^The following packages have been kept back:\n((?:  .*\n)+)", re.M)

RELEASE = re.compile(r"\b(?P<system>Debian|Debian-Security|Ubuntu):(?P<version>[0-9.]+)/")
"""The release of a package, in the origin of a step."""

CONFFILE = re.compile(r"^Configuration file '([^']+)'$", re.M)
"""Beginning of dpkg's message about a file that both an administrator and the package changed."""


@dataclass(frozen=True)
class Package:
    """A package in dpkg's database; `held` is whether it is on hold (apt-mark(8))."""

    version: str
    source: str
    status: str
    held: bool = False


@dataclass(frozen=True)
class Step:
    """A package that would be installed; `before` is empty for a new one."""

    name: str
    before: str
    after: str
    origin: str = ""


@dataclass(frozen=True)
class Plan:
    """The plan of an upgrade; `kept` are names of packages with a newer version that would not be upgraded."""

    steps: tuple[Step, ...] = ()
    kept: tuple[str, ...] = ()


def read_packages(text: str) -> dict[str, Package]:
    """Return the packages that dpkg knows, by name, from a listing in FORMAT.

    >>> read_packages("slurmd\\t22.05.8-4\\tslurm-wlm\\tinstalled\\thold\\tok\\n")["slurmd"].held
    True
    """
    found = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == len(FIELDS):
            name, version, source, status, want, error = fields
            found[name] = Package(version, source, status if error == "ok" else error, want == "hold")
    return found


def read_plan(text: str) -> Plan:
    """Return the plan that `apt-get --simulate upgrade` prints in the locale C."""
    steps = (Step(m["name"], m["before"] or "", m["after"], m["origin"].strip()) for m in STEP.finditer(text))
    return Plan(tuple(steps), tuple(name for block in KEPT.findall(text) for name in block.split()))


def conffiles(text: str) -> list[str]:
    """Return the files that an administrator changed and dpkg kept, although the package has new versions."""
    return list(dict.fromkeys(CONFFILE.findall(text)))


def versions(packages: Mapping[str, Package]) -> dict[str, str]:
    """Return the versions of the packages that are installed."""
    return {name: package.version for name, package in packages.items() if package.status == "installed"}


def concerning(names: Iterable[str], packages: Mapping[str, Package]) -> list[str]:
    """Return the packages that belong to Slurm or MUNGE."""
    return [name for name in names if name in packages and packages[name].source in SOURCES]


def problems(packages: Mapping[str, Package], plan: Plan, release: Mapping[str, str]) -> list[str]:
    """Return why the packages of a machine must not be upgraded; `release` is what os-release(5) says."""
    return [*_interrupted(packages), *_other_release(plan, release), *_left_behind(packages, plan)]


def _interrupted(packages: Mapping[str, Package]) -> list[str]:
    broken = [f"{name} is {package.status}" for name, package in packages.items() if package.status not in WHOLE]
    if not broken:
        return []
    return [f"dpkg was interrupted ({_some(broken)}): run `dpkg --configure -a` there, then run this again"]


def _other_release(plan: Plan, release: Mapping[str, str]) -> list[str]:
    own = release.get("VERSION_ID", "")
    others = [
        f"{step.name} {step.after} of {found['system'].partition('-')[0]} {found['version']}"
        for step in plan.steps
        for found in [RELEASE.search(step.origin)]
        if found and found["version"] != own and not found["version"].startswith(f"{own}.")
    ]
    if not others:
        return []
    return [
        f"it is {release.get('PRETTY_NAME', own)}, but would get {_some(others)}: another release. This "
        "command does not upgrade to it; complete that upgrade, or correct the package sources (/etc/apt/sources.list*)"
    ]


def _left_behind(packages: Mapping[str, Package], plan: Plan) -> list[str]:
    names = concerning(plan.kept, packages)
    held = [name for name in names if packages[name].held]
    if held:
        # A held package keeps back the packages that depend on its newer version.
        return [f"{_some(held)} on hold, but newer versions are available: `apt-mark unhold {' '.join(held)}` there"]
    if names:
        return [f"apt keeps {_some(names)} back: `apt-get --simulate dist-upgrade` there shows why"]
    return []


def _some(words: list[str], most: int = 4) -> str:
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")
