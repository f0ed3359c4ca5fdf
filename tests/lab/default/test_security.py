"""The key stays where it is, and the share belongs to the cluster's machines and its users."""

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


@pytest.mark.parametrize(
    "command", ["touch /share/file", "touch /share/home/file", "ls /share/home/alice", "chown 0 {home}"]
)
def test_root_of_a_worker_is_nobody_on_the_share(lab: Any, worker: str, command: str) -> None:
    done = lab.host(worker).run("sudo timeout 60 sh -c %s", command.format(home="/share/home/alice"))

    assert done.rc != 0, f"{command} succeeded"
    assert "ermission denied" in done.stderr or "not permitted" in done.stderr


OUTSIDE = """
import json, socket, subprocess, sys
server, address, interface = sys.argv[1:]
inside = ["ip", "netns", "exec", "stranger"]
def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=90)
    return done.returncode, done.stdout + done.stderr
def must(*command):
    code, said = run(*command)
    assert code == 0, said
try:
    must("ip", "netns", "add", "stranger")
    must("ip", "link", "add", "stranger0", "link", interface, "type", "macvlan", "mode", "bridge")
    must("ip", "link", "set", "stranger0", "netns", "stranger")
    must(*inside, "ip", "address", "add", address, "dev", "stranger0")
    must(*inside, "ip", "link", "set", "stranger0", "up")
    connect = "import socket, sys; socket.create_connection((sys.argv[1], 2049), 30)"
    reached, why = run(*inside, "python3", "-c", connect, server)
    must("mkdir", "-p", "/run/stranger")
    options = "soft,timeo=50,retry=0"
    code, said = run(*inside, "mount", "-t", "nfs4", "-o", options, server + ":/srv/share", "/run/stranger")
    if code == 0:
        run("umount", "-f", "/run/stranger")
    print(json.dumps({"reached": reached == 0, "why": why, "mounted": code == 0, "said": said}))
finally:
    run("ip", "netns", "delete", "stranger")
    run("ip", "link", "delete", "stranger0")
    run("rmdir", "/run/stranger")
"""


def test_a_machine_outside_of_the_inventory_cannot_mount_the_share(lab: Any) -> None:
    """A worker plays one: a second network stack, with another address on the cluster's network."""
    worker = lab.workers[0]
    network = lab.address(lab.server).rpartition(".")[0]
    interface = lab.root(worker, f"ip -oneline address | grep -F ' {lab.address(worker)}/' | cut -d' ' -f2")

    arguments = (lab.address(lab.server), f"{network}.253/24", interface)

    closed = lab.python(worker, OUTSIDE, *arguments)
    # The firewall refuses it first, so it is opened to see what the server itself says.
    lab.root(lab.server, "nft insert rule inet slurmstead input tcp dport 2049 accept")
    try:
        seen = lab.python(worker, OUTSIDE, *arguments)
    finally:
        lab.root(lab.server, "systemctl reload slurmstead-firewall")

    assert not closed["reached"] and not closed["mounted"]
    assert seen["reached"], f"it is refused for another reason: {seen['why']}"
    assert not seen["mounted"]
    assert "denied" in seen["said"] or "not permitted" in seen["said"], seen["said"]
