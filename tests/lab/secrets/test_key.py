"""The MUNGE key stays where it is."""

from __future__ import annotations

import base64
import os
import pathlib
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import pytest

KEY = "/etc/munge/munge.key"
CANARY = (pathlib.Path(__file__).parent / "canary.py").read_text()
LARGEST = 64 << 20
"""Bytes: larger files of this computer are the disks of machines."""


def test_no_other_file_and_no_log_of_a_machine_has_the_key(lab: Any) -> None:
    found = lab.everywhere(lambda name: lab.python(name, CANARY))

    assert {name: seen["found"] for name, seen in found.items()} == dict.fromkeys(lab.names, [KEY])
    assert all(seen["files"] > 500 and seen["journal"] > 10_000 for seen in found.values()), found


@pytest.fixture
def stranger(lab: Any) -> Iterator[str]:
    """A worker whose file has another key, so that a run has to bring the right one; its daemon is left alone."""
    name = lab.workers[-1]
    lab.root(name, f"cp -a {KEY} /run/munge.key.good && mungekey --create --force && chown munge:munge {KEY}")
    yield name
    lab.root(name, "rm -f /run/munge.key.good")


def forms(key: bytes) -> list[bytes]:
    """The forms in which a key could be printed; parts of them, because lines are cut."""
    encoded = [base64.b64encode(key[start:])[:40] for start in range(3)]
    return [key[:32], key[-32:], *encoded, key[:20].hex().encode(), repr(key[:12])[2:-1].encode()]


def new_files(since: float) -> Iterator[tuple[pathlib.Path, bytes]]:
    """What this computer has written in Ansible's directory and among temporary files, on the file system of each."""
    for top in {pathlib.Path.home() / ".ansible", pathlib.Path(tempfile.gettempdir())}:
        for directory, below, names in os.walk(top, onerror=None):
            # A /proc mounted there has endless files.
            below[:] = [name for name in below if not os.path.ismount(os.path.join(directory, name))]
            for path in (pathlib.Path(directory, name) for name in names):
                try:
                    status = path.stat()
                    if not path.is_file() or status.st_mtime < since or status.st_size > LARGEST:
                        continue
                    content = path.read_bytes()
                except OSError:  # it was removed meanwhile
                    continue
                yield path, content


def test_a_run_that_brings_the_key_shows_it_to_nobody(lab: Any, stranger: str) -> None:
    good = base64.b64decode(lab.root(lab.control, f"base64 {KEY}"))
    bad = base64.b64decode(lab.root(stranger, f"base64 {KEY}"))
    started = time.time()

    run = lab.ansible("-vvv", "--diff", "--tags", "munge", plain=True)

    assert run.code == 0, run.output[-5000:]
    assert list(run.changed) == [stranger]
    assert base64.b64decode(lab.root(stranger, f"base64 {KEY}")) == good
    secrets = forms(good) + forms(bad)
    assert not any(form in run.output.encode() for form in secrets), "the key is in the output"
    leaks = [str(path) for path, content in new_files(started) if any(form in content for form in secrets)]
    assert leaks == []
