"""Remembers on which cluster each run of this computer is: two clusters can have a job of the same number."""

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from slurmstead.client import head as heads
from slurmstead.client import pending
from slurmstead.client.head import Head
from slurmstead.client.records import Job
from slurmstead.client.remote import store
from slurmstead.errors import UsageError

RUNS = 1000
"""The number of runs that are remembered, the newest ones."""


def remember(head: Head, job: Job) -> None:
    """Store where a run is; without it the configured head node is asked, so a full disk is no failure."""
    directory = pending.directory() / "runs"
    digest = hashlib.sha256(json.dumps(dataclasses.astuple(head)).encode()).hexdigest()[:8]
    path = directory / f"{job.id}.{digest}.json"
    with contextlib.suppress(OSError):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps({"run": job.id, "jobs": job.jobs, "head": dataclasses.asdict(head)}))
        temporary.replace(path)
        for old in sorted(directory.iterdir(), key=lambda one: one.stat().st_mtime)[:-RUNS]:
            old.unlink(missing_ok=True)


def choose(names: Sequence[str], given: Mapping[str, str | None], project: Mapping[str, Any]) -> Head:
    """Return the head node of jobs or runs, with the directory in which this computer submitted them there.

    Without such a run it is the configured one.

    :param given: options of the command line, which decide
    :param project: the head node's settings in the stead.toml of the current directory
    :raises UsageError: it may be one of several, or none is configured
    """
    found = {name: head for name in names if (head := _of(name, given, project))}
    places = {name: _place(head) for name, head in found.items()}
    if len(set(places.values())) > 1:
        differs = len({host for host, _ in places.values()}) > 1
        where = (f"{name} is " + (f"on {host}" if differs else f"in '{path}'") for name, (host, path) in places.items())
        raise UsageError(", ".join(where), "Use one command for each.")
    return next(iter(found.values()), None) or heads.choose(given, project)


def _of(name: str, given: Mapping[str, str | None], project: Mapping[str, Any]) -> Head | None:
    """Return the head node of a job or run, or None if this computer knows of none."""
    said = {"ssh_config": heads.absolute(given.get("ssh_config")), "directory": given.get("directory")}
    options = {key: text for key, text in said.items() if text}
    found = (head for head in _heads(name) if given.get("head") in (None, head.host))
    # The configuration of ssh does not count: it says how this computer reaches the place.
    submitted = {_place(head): head for head in (dataclasses.replace(head, **options) for head in found)}
    if not submitted:
        return None
    try:
        configured = heads.choose(given, project)
    except heads.NotConfigured:
        if len(submitted) == 1:
            return submitted.popitem()[1]
        raise
    host, directory = _place(configured)
    fitting = [
        head
        for place, head in submitted.items()
        if not (project.get("head") and place[0] != host) and not (project.get("directory") and place[1] != directory)
    ]
    if len(fitting) == 1:
        return fitting[0]
    which, option, choices = "on", "--head", sorted({host, *(one for one, _ in submitted)})
    if len(choices) == 1:
        choices = sorted(f"'{one}'" for one in {directory, *(one for _, one in submitted)})
        which, option = "in", "--directory"
    raise UsageError(f"{name} could be {which} {' or '.join(choices)}", f"Choose one: {option} {choices[0]}")


def _place(head: Head) -> tuple[str, str]:
    return head.host, head.directory or store.DIRECTORY


def _heads(name: str) -> list[Head]:
    """Return the head nodes that have a run of this ID; without one, those with this job or task, or this beginning."""
    exact: list[Head] = []
    others: list[Head] = []
    number = name.partition("_")[0]
    with contextlib.suppress(OSError):
        for path in sorted((pending.directory() / "runs").glob("*.json")) if name else ():
            with contextlib.suppress(FileNotFoundError, ValueError, KeyError, TypeError):
                found = json.loads(path.read_text())
                if found["run"] == name:
                    exact.append(Head(**found["head"]))
                elif number in found["jobs"] or (not number.isdigit() and str(found["run"]).startswith(name)):
                    others.append(Head(**found["head"]))
    return exact or others
