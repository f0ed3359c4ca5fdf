"""A Ray cluster in a job of Slurm: the head on its first node, workers on all of them.

    with allocation.cluster() as nodes:
        ray.get(...)

Who can talk to Ray runs code as its user. So each job makes a token of its own, in a file that only its user reads, and
Ray answers nobody without it.
"""

import contextlib
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import node
import ray

DIRECTORY = pathlib.Path(f"ray-{os.environ['SLURM_JOB_ID']}").absolute()
START_SECONDS = 300
END_SECONDS = 30


@contextlib.contextmanager
def cluster() -> Iterator[int]:
    """Start Ray on the job's nodes, of which it returns the number, and end it, also when the job is cancelled."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # A job that was requeued finds what its first start left.
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    DIRECTORY.mkdir(mode=0o700)
    (DIRECTORY / "token").write_text(secrets.token_hex(32))
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=str(DIRECTORY / "token"))
    head = f"{node.own_address()}:{node.free_port(node.own_address())}"
    names = job_nodes()
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, DIRECTORY)
        log = stack.enter_context(open("ray.log", "w"))
        steps = [start(name, head, log.fileno()) for name in names]
        stack.callback(end, steps)
        stack.callback(ray.shutdown)
        connect(head, len(names), steps)
        yield len(names)


def job_nodes() -> list[str]:
    """Return the names of the job's nodes, its first one first."""
    command = ["scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def start(name: str, head: str, log: int) -> subprocess.Popen[bytes]:
    """Start Ray on a node, in a step of its own."""
    where = [
        "--nodes=1",
        "--ntasks=1",
        f"--nodelist={name}",
        f"--cpus-per-task={node.cpus()}",
        "--input=none",
        "--quiet",
    ]
    return subprocess.Popen(["srun", *where, sys.executable, "node.py", head], stdout=log, stderr=log)


def connect(head: str, count: int, steps: list[subprocess.Popen[bytes]]) -> None:
    """Connect to Ray when all of its nodes are there, and say where its dashboard is."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        if any(step.poll() is not None for step in steps) or time.monotonic() > deadline:
            raise RuntimeError("Ray did not start on all nodes: see ray.log")
        with contextlib.suppress(ConnectionError, RuntimeError, OSError):
            context = ray.init(address=head, _node_ip_address=node.own_address(), log_to_driver=False)
            break
        time.sleep(1)
    while len([one for one in ray.nodes() if one["Alive"]]) < count:
        if time.monotonic() > deadline:
            raise RuntimeError("Ray did not start on all nodes: see ray.log")
        time.sleep(0.5)
    print(f"dashboard at {context.dashboard_url}, its token in {DIRECTORY / 'token'}", file=sys.stderr)


def end(steps: list[subprocess.Popen[bytes]]) -> None:
    """End Ray on all nodes."""
    for step in steps:
        step.terminate()
    for step in steps:
        with contextlib.suppress(subprocess.TimeoutExpired):
            step.wait(END_SECONDS)
