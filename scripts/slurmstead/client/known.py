"""Remembers on which cluster each run of this computer is: two clusters can have a job of the same number."""

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slurmstead.client import head as heads
from slurmstead.client import pending
from slurmstead.client.head import Head
from slurmstead.client.records import Job
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
    """Return the head node of jobs or runs: the one to which this computer submitted them, or the configured one.

    :param given: options of the command line, which decide
    :param project: the head node's settings in the stead.toml of the current directory
    :raises UsageError: it may be one of several, or none is configured
    """
    submitted = {} if given.get("head") else {head.host: head for name in names for head in _heads(name)}
    try:
        configured = heads.choose(given, project)
    except heads.NotConfigured:
        if len(submitted) == 1:
            return submitted.popitem()[1]
        raise
    if not submitted or (configured.host in submitted and (len(submitted) == 1 or project.get("head"))):
        return configured
    if len(submitted) == 1 and not project.get("head"):
        return submitted.popitem()[1]
    hosts = sorted({*submitted, configured.host})
    raise UsageError(f"{', '.join(names)} could be on {' or '.join(hosts)}", f"Choose one: --head {hosts[0]}")


def _heads(name: str) -> Iterator[Head]:
    """Yield the head nodes that have a run of this ID, or of this beginning, or with this job or task."""
    if not name:
        return
    number = name.partition("_")[0]
    with contextlib.suppress(OSError):
        for path in (pending.directory() / "runs").glob("*.json"):
            with contextlib.suppress(FileNotFoundError, ValueError, KeyError, TypeError):
                found = json.loads(path.read_text())
                if number in found["jobs"] or (not number.isdigit() and str(found["run"]).startswith(name)):
                    yield Head(**found["head"])
