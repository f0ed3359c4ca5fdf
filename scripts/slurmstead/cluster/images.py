"""Images in which jobs can run: what goes into one, and what the cluster has."""

import contextlib
import os
import pathlib
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from slurmstead import rooms
from slurmstead.cluster import operations
from slurmstead.errors import UsageError
from slurmstead.paths import PLAYBOOKS
from slurmstead.runner import playbook
from slurmstead.runner.progress import Progress

MIB = 1024 * 1024


class Found(NamedTuple):
    """All images, and the numbers of the jobs that use each, or may use it, by its name."""

    images: Sequence[Mapping[str, Any]]
    used: Mapping[str, Sequence[str]]


class Parts(NamedTuple):
    """What goes into an image: packages and a release of Debian, and files of this computer."""

    packages: Sequence[str] = ()
    release: str = ""
    requirements: pathlib.Path | None = None
    wheels: pathlib.Path | None = None
    archive: pathlib.Path | None = None


def check(name: str, parts: Parts | None = None) -> None:
    """Check a request before any machine is asked.

    :raises UsageError: a name is wrong, a file is missing, or options do not fit each other
    """
    images = rooms.module("sandbox.images")
    refused = images.refusal(name)
    if refused:
        raise UsageError(refused, "`scripts/stead image list` shows the images.")
    if parts is None:
        return
    if parts.archive and (parts.requirements or parts.wheels or parts.packages or parts.release):
        raise UsageError("--archive cannot be used with other options", "Install everything in the archive.")
    if parts.wheels and not parts.requirements:
        raise UsageError("--wheels needs --requirements", "Name the file that lists what to install.")
    for package in parts.packages:
        if not images.PACKAGE.fullmatch(package):
            raise UsageError(f"--packages: {package!r} is not a package of Debian", "Separate names with commas.")
    if parts.release and not images.RELEASE.fullmatch(parts.release):
        raise UsageError(f"--release: {parts.release!r} is not a release of Debian", "Write it as in `bookworm`.")
    for option, path in (("--requirements", parts.requirements), ("--archive", parts.archive)):
        if path and not path.is_file():
            raise UsageError(f"{option}: there is no file {path}", "Correct the path.")
    if parts.wheels and not list(parts.wheels.glob("*.whl")):
        raise UsageError(f"--wheels: no wheel is in {parts.wheels}", "`pip download -r FILE -d DIR` fills it.")


@contextlib.contextmanager
def given(parts: Parts) -> Iterator[str]:
    """Yield the path of a tar file with the files that go into an image; empty without any."""
    files = {"requirements.txt": parts.requirements, "archive.tar": parts.archive}
    wheels = {f"wheels/{path.name}": path for path in sorted(parts.wheels.glob("*.whl"))} if parts.wheels else {}
    chosen = {name: path for name, path in {**files, **wheels}.items() if path}
    if not chosen:
        yield ""
        return
    # Debian 13 has /tmp in memory, and an archive can have gigabytes.
    place = os.environ.get("TMPDIR") or "/var/tmp"
    with tempfile.NamedTemporaryFile(prefix="stead-image-", suffix=".tar", dir=place) as file:
        with tarfile.open(fileobj=file, mode="w") as packed:
            for name, path in chosen.items():
                packed.add(path.resolve(), name)
        file.flush()
        yield file.name


def run(console: Console, inventory: pathlib.Path, state: str, *, plain: bool = False, **variables: str) -> Found:
    """Make, list or remove images, with progress on `console`; `variables` are those of change-images.yml.

    :raises SteadError: it could not be done, or jobs of this inventory cannot run in images
    """
    listed = playbook.listed(inventory)
    hosts = operations.grouped(listed)["control"]
    known = listed.get("_meta", {}).get("hostvars", {})
    if not any(known.get(host, {}).get("sandbox_enabled") for host in hosts):
        raise UsageError(f"sandbox_enabled is not set in {inventory}", "Set it, then run `up`: see docs/sandbox.md.")
    name, words = "change-images.yml", {"image_state": state, **variables}
    with Progress(console, name) as progress:
        result = playbook.run(PLAYBOOKS / name, inventory, extra_vars=words, plain=plain, observer=progress)
    if result.error:
        raise result.error
    images = [image for found in result.results_of("sandbox_image") for image in found.get("images", [])]
    used = [found["used"] for found in result.results_of("sandbox_jobs") if "used" in found]
    jobs_of = rooms.module("sandbox.images").jobs_of
    return Found(images, {one["name"]: jobs_of(one["name"], used[0]) for one in images} if used else {})


def lines(found: Found) -> list[str]:
    """Return the images as a table: name, size, date, jobs, source.

    >>> lines(Found([{"name": "r", "bytes": 3 << 20, "made": "2026-11-26T10:00:00+00:00", "source": "r.tar"}], {}))
    ['r  3 MiB  2026-11-26  no job  r.tar']
    """
    rows = []
    for image in found.images:
        jobs = found.used.get(image["name"], [])
        size = f"{image['bytes'] / MIB:.0f} MiB" if image["bytes"] else "-"
        in_use = f"job {', '.join(jobs[:5])}{' …' if jobs[5:] else ''}" if jobs else "no job"
        rows.append((image["name"], size, image["made"][:10] or "-", in_use, image["source"]))
    widths = [max(len(row[index]) for row in rows) for index in range(5)] if rows else []
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def print_found(out: Console, found: Found) -> None:
    """Print the images."""
    for line in lines(found):
        out.print(Text(line), soft_wrap=True)
