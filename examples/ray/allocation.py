"""A Ray cluster in a job of Slurm: the head on its first node, workers on all of them.

    with allocation.cluster() as nodes:
        ray.get(...)

Who can talk to Ray runs code as its user. So each job makes a token of its own, in a file that only its user reads, and
Ray answers nobody without it.
"""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NoReturn

import node
import ray

START_SECONDS = 600
END_SECONDS = 30


@contextlib.contextmanager
def cluster() -> Iterator[int]:
    """Start Ray on the job's nodes, of which it returns the number, and end it, also when the job is cancelled."""
    signal.signal(signal.SIGTERM, cancelled)
    # A job that was requeued finds what its first start left.
    shutil.rmtree(node.DIRECTORY, ignore_errors=True)
    node.DIRECTORY.mkdir(mode=0o700)
    (node.DIRECTORY / "token").write_text(secrets.token_hex(32))
    address = node.own_address()
    head, dashboard = f"{address}:{node.free_port(address)}", node.free_port(address)
    names = job_nodes()
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, node.DIRECTORY)
        log = stack.enter_context(open("ray.log", "w"))
        steps = [start(name, [head, str(dashboard)], log.fileno()) for name in names]
        stack.callback(end, steps)
        stack.callback(ray.shutdown)
        connect(head, len(names), steps)
        # Ray has put its own in the place of ours.
        signal.signal(signal.SIGTERM, cancelled)
        print(f"dashboard at {address}:{dashboard}, its token in {node.DIRECTORY / 'token'}", file=sys.stderr)
        yield len(names)


def cancelled(*_: object) -> NoReturn:
    """End at once: Slurm ends all other processes of the job, and Ray's library aborts when it finds them gone."""
    shutil.rmtree(node.DIRECTORY, ignore_errors=True)
    os._exit(128 + signal.SIGTERM)


def job_nodes() -> list[str]:
    """Return the names of the job's nodes, its first one first."""
    command = ["scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def start(name: str, arguments: list[str], log: int) -> subprocess.Popen[bytes]:
    """Start Ray on a node, in a step of its own."""
    where = ["--nodes=1", "--ntasks=1", f"--nodelist={name}", f"--cpus-per-task={node.cpus()}"]
    where += ["--input=none", "--quiet"]
    return subprocess.Popen(["srun", *where, sys.executable, "node.py", *arguments], stdout=log, stderr=log)


def connect(head: str, count: int, steps: list[subprocess.Popen[bytes]]) -> None:
    """Connect to Ray, and wait until all of its nodes are there."""
    deadline = time.monotonic() + START_SECONDS
    while not is_ready(head, count):
        if any(step.poll() is not None for step in steps) or time.monotonic() > deadline:
            raise RuntimeError("Ray did not start on all nodes: see ray.log")
        time.sleep(1)


def is_ready(head: str, count: int) -> bool:
    """Connect to Ray as soon as it is on this node, and return whether it is on all nodes."""
    # Earlier, it would take another node for this one.
    if not (node.SCRATCH / "session_latest/sockets/raylet").exists():
        return False
    if not ray.is_initialized():
        try:
            ray.init(address=head, _node_ip_address=node.own_address(), log_to_driver=False)
        except (RuntimeError, OSError):
            return False
    return len([one for one in ray.nodes() if one["Alive"]]) >= count


def end(steps: list[subprocess.Popen[bytes]]) -> None:
    """End Ray on all nodes."""
    for step in steps:
        step.terminate()
    for step in steps:
        with contextlib.suppress(subprocess.TimeoutExpired):
            step.wait(END_SECONDS)
