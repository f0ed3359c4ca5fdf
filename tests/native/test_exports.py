"""The NFS server's list of addresses, as mountd reads it: another machine cannot mount the share.

Files are served by the kernel, which is the same for all machines here, so mountd's answer is where a mount ends.
"""

from __future__ import annotations

import jinja2
import pytest

from slurmstead.paths import ROOT
from tests.native.cluster import CONTROL, MUNGE, Cluster

TEMPLATE = ROOT / "roles/nfs_server/templates/exports.j2"
STRANGER = MUNGE
"""A machine of the same network that the cluster does not know."""

START = """
mkdir --parents /srv/share /run/rpcbind
exportfs -ra
setsid rpcbind -f -w >/dev/null 2>&1 </dev/null &
setsid rpc.mountd --foreground --debug all >/var/log/mountd 2>&1 </dev/null &
until rpcinfo -t localhost mountd 3 >/dev/null 2>&1; do sleep 0.1; done
"""

MOUNT = """
import socket, struct, sys
def call(port, program, version, procedure, body):
    connection = socket.create_connection((sys.argv[1], port), 20, ("", 700 + procedure))
    sent = struct.pack(">10I", 7, 0, 2, program, version, procedure, 0, 0, 0, 0) + body
    connection.sendall(struct.pack(">I", 1 << 31 | len(sent)) + sent)
    return struct.unpack(">I", connection.recv(4096)[28:32])[0]
mountd = call(111, 100000, 2, 3, struct.pack(">4I", 100005, 3, socket.IPPROTO_TCP, 0))
print(call(mountd, 100005, 3, 1, struct.pack(">I", 10) + b"/srv/share".ljust(12, b"\\0")))
"""
"""Asks the portmapper for mountd (RFC 1833), and mountd for the share (RFC 1813); prints its answer, 0 or an error."""


@pytest.mark.slow
def test_a_machine_that_is_not_in_the_list_cannot_mount_the_share(release: str) -> None:
    environment = jinja2.Environment()
    environment.filters["comment"] = lambda text: f"# {text}"
    template = environment.from_string(TEMPLATE.read_text())
    with Cluster(release, nodes=1, packages=("nfs-kernel-server", "rpcbind")) as cluster:
        inside = [cluster.addresses[name] for name in (CONTROL, "node1")]
        text = template.render(ansible_managed="of the test", nfs_server_path="/srv/share", nfs_server_clients=inside)
        cluster.run("mkdir", "--parents", "/etc/exports.d")
        cluster.run("tee", "/etc/exports.d/slurmstead.exports", text=text)
        cluster.run("sh", "-c", START)
        for name in (STRANGER, "node1"):
            cluster.run("python3", "-c", MOUNT, cluster.addresses[CONTROL], on=name)
        said = cluster.run("cat", "/var/log/mountd")

    assert f"refused mount request from {cluster.addresses[STRANGER]} for /srv/share (/srv/share): unmatched" in said
    assert f"authenticated mount request from {cluster.addresses['node1']}:" in said
