"""Ray, which needs nodes with more memory than those of a lab have: one that was made with STEAD_LAB_MEMORY=3584."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from tests.lab.engines.running import directory_of, output, submit

DASHBOARD = re.compile(r"^dashboard at (\S+), its token in (\S+)$", re.MULTILINE)


def test_ray_computes_on_all_nodes_of_the_job_and_leaves_nothing(lab: Any, cluster: Any, example: Any) -> None:
    run = submit(cluster, example("ray"), "--", 40_000_000)
    below = directory_of(cluster, run)

    assert output(cluster, run) == "40000000 darts: pi is about 3.141292"
    assert "\n2 of 2 nodes, " in output(cluster, run, "stderr")
    assert cluster.user(f"ls -d {below}/work/ray-* || true") == ""
    # A run has ended when its program has, before the Epilog.
    lab.wait_until_idle(120)


@contextlib.contextmanager
def tunnel(lab: Any, place: str) -> Iterator[str]:
    """Connect a free port of this computer with a place in the cluster's network, through the head node."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        here = f"127.0.0.1:{free.getsockname()[1]}"
    options = ["-F", str(lab.directory / "ssh_config"), "-o", "ControlPath=none", "-o", "ExitOnForwardFailure=yes"]
    command = ["ssh", *options, "-N", "-L", f"{here}:{place}", f"alice@{lab.control}"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as ssh:
        try:
            yield here
        finally:
            ssh.terminate()


def asked(place: str, token: str) -> tuple[int, str]:
    """Return the status and the text of the dashboard's list of nodes, once it listens."""
    wanted = urllib.request.Request(f"http://{place}/nodes?view=summary", headers={"Authorization": f"Bearer {token}"})
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(wanted, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            assert time.monotonic() < deadline, f"nobody listens at {place}"
            time.sleep(1)


def test_the_dashboard_answers_through_ssh_whoever_has_the_token_until_the_job_is_cancelled(
    lab: Any, cluster: Any, example: Any
) -> None:
    run = cluster.run_of(cluster.stead("submit", example("ray"), "--", 10**12))
    below = directory_of(cluster, run)
    deadline = time.monotonic() + 600
    while not (seen := DASHBOARD.search(cluster.user(f"cat {below}/stderr 2>/dev/null || true"))):
        assert time.monotonic() < deadline, cluster.user(f"squeue; tail {below}/stderr {below}/work/ray.log")
        time.sleep(3)
    with tunnel(lab, seen[1]) as here:
        known, nodes = asked(here, cluster.user(f"cat {seen[2]}"))
        unknown, _ = asked(here, "0" * 64)
    started = time.monotonic()
    cluster.stead("cancel", run)
    lab.wait_until_idle(120)
    print(f"idle {time.monotonic() - started:.0f} s after the cancellation")

    assert (known, unknown) == (200, 403), nodes
    assert len(json.loads(nodes)["data"]["summary"]) == 2
    assert cluster.user(f"ls -d {below}/work/ray-* || true") == ""
