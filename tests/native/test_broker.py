"""The broker's ports on control: no user who listens there first is sent a password."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

from tests.native.cluster import CONTROL, Cluster

TABLE = pathlib.Path(__file__).resolve().parents[2] / "roles/celery_broker/templates/broker.nft.j2"
PACKAGES = ("rabbitmq-server", "redis-server")
RABBITMQ, REDIS, LAST, OTHER = 5672, 6379, 6799, 6800

LISTEN = """
import socket, sys
for port in sys.argv[1:]:
    globals()["_" + port] = socket.create_server(("0.0.0.0", int(port)))
open("/tmp/listens", "w").close()
import time; time.sleep(600)
"""

CONNECT = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 3):
        print("connected")
except OSError as error:
    print(type(error).__name__)
"""

BOTH_AT_ONCE = """
import socket, sys
one = socket.socket()
one.bind((sys.argv[1], int(sys.argv[2])))
one.settimeout(3)
try:
    one.connect((sys.argv[3], int(sys.argv[4])))
    print("connected")
except OSError as error:
    print(type(error).__name__)
"""
"""Two programs that connect to each other need no listener (RFC 9293, simultaneous open)."""

PING = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 3) as one:
    one.sendall(b"PING\\r\\n")
    print(one.recv(64).decode().strip())
"""


@pytest.fixture(scope="module")
def cluster(release: str) -> Iterator[Cluster]:
    """A cluster whose control has the broker's packages and table."""
    with Cluster(release, packages=PACKAGES) as cluster:
        cluster.run("nft", "--file", "-", text=TABLE.read_text().replace("{{ ansible_managed | comment }}", ""))
        yield cluster


@pytest.fixture
def alice(cluster: Cluster) -> Iterator[None]:
    """Alice listens on the broker's ports, and on one that is not."""
    ports = [str(port) for port in (RABBITMQ, REDIS, LAST, OTHER)]
    start = 'rm -f /tmp/listens; setsid "$@" </dev/null >/dev/null 2>&1 & echo $!'
    pid = cluster.run("sh", "-c", start, "sh", "python3", "-c", LISTEN, *ports, user="alice").strip()
    cluster.run("sh", "-c", "until test -e /tmp/listens; do sleep 0.05; done")
    yield
    cluster.run("kill", pid)


def connect(cluster: Cluster, port: int, on: str) -> str:
    """What a client on a machine sees that connects to a port of control."""
    return cluster.run("python3", "-c", CONNECT, cluster.addresses[CONTROL], str(port), on=on).strip()


@pytest.mark.parametrize("on", [CONTROL, "node1"])
@pytest.mark.parametrize("port", [RABBITMQ, REDIS, LAST])
def test_nobody_connects_to_a_user_on_the_ports_of_the_broker(
    cluster: Cluster, alice: None, port: int, on: str
) -> None:
    assert connect(cluster, port, on) == "TimeoutError"


def test_a_syn_cookie_which_is_of_no_process_begins_no_connection(cluster: Cluster, alice: None) -> None:
    cluster.run("tee", "/proc/sys/net/ipv4/tcp_syncookies", text="2")
    seen = {port: connect(cluster, port, "node1") for port in (REDIS, OTHER)}
    cluster.run("tee", "/proc/sys/net/ipv4/tcp_syncookies", text="1")

    assert seen == {REDIS: "TimeoutError", OTHER: "connected"}


def test_other_ports_are_the_users(cluster: Cluster, alice: None) -> None:
    assert connect(cluster, OTHER, "node1") == "connected"


def test_a_user_begins_no_connection_from_the_ports_of_the_broker(cluster: Cluster) -> None:
    place = (cluster.addresses[CONTROL], str(REDIS), cluster.addresses["node1"], "6818")
    seen = cluster.run("python3", "-c", BOTH_AT_ONCE, *place, user="alice").strip()

    assert seen == "TimeoutError"


def test_redis_answers_on_its_port(cluster: Cluster) -> None:
    address = cluster.addresses[CONTROL]
    server = ("redis-server", "--bind", address, "--port", str(REDIS), "--protected-mode", "no", "--save", "''")
    as_redis = ("setpriv", "--reuid=redis", "--regid=redis", "--clear-groups")
    start = 'cd /; setsid "$@" </dev/null >/dev/null 2>&1 & echo $!'
    pid = cluster.run("sh", "-c", start, "sh", *as_redis, *server).strip()
    cluster.run("sh", "-c", f"until ss --listening --tcp --numeric | grep --quiet ':{REDIS} '; do sleep 0.05; done")

    for on in (CONTROL, "node1"):
        assert cluster.run("python3", "-c", PING, address, str(REDIS), on=on).strip() == "+PONG"
    assert connect(cluster, RABBITMQ, "node1") == "ConnectionRefusedError", "a broker that is down is not silent"
    cluster.run("kill", pid)
