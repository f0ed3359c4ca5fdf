"""The share belongs to the cluster's machines and its users."""

from __future__ import annotations

from typing import Any

import pytest


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
