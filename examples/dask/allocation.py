"""A Dask cluster in a job of Slurm: the scheduler on its first node, and on every node a process for each CPU.

    with allocation.cluster() as client:
        client.map(...)

Who can talk to Dask runs code as its user. So each job makes a key of its own, in a directory that only its user reads,
and Dask's processes talk to nobody without it. A node that leaves the job loses nothing: what ran there runs again on
the others. Other jobs of the user can join and leave, see join.py.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator

import tls_errors
import worker
from distributed import Client, Security

DIRECTORY = pathlib.Path(f"dask-{os.environ['SLURM_JOB_ID']}")
START_SECONDS = 300
END_SECONDS = 30


@contextlib.contextmanager
def cluster() -> Iterator[Client]:
    """Start Dask on the job's nodes, and end it on the way out, also when the job is cancelled."""
    tls_errors.forget_always()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # A job that was requeued finds what its first start left.
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    DIRECTORY.mkdir(mode=0o700)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, DIRECTORY)
        make_key()
        scheduler = start_scheduler()
        stack.callback(end, [scheduler])
        steps = {node: start_workers(node) for node in job_nodes()}
        stack.callback(end, steps.values())
        over = threading.Event()
        threading.Thread(target=watch, args=(steps, over), daemon=True).start()
        client = Client(scheduler_file=str(DIRECTORY / "scheduler.json"), security=security(), timeout=START_SECONDS)
        stack.callback(client.shutdown)
        stack.callback(over.set)
        client.wait_for_workers(len(steps) * worker.cpus(), timeout=START_SECONDS)
        yield client


def make_key() -> None:
    """Write a key, and the certificate that proves that one has it."""
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-days", "365", "-subj", "/CN=dask"]
    files = ["-keyout", DIRECTORY / "key.pem", "-out", DIRECTORY / "cert.pem"]
    subprocess.run(["openssl", "req", "-x509", *kind, *files], check=True, stderr=subprocess.DEVNULL)


def security() -> Security:
    """Return what a client of the job's cluster needs."""
    cert, key = str(DIRECTORY / "cert.pem"), str(DIRECTORY / "key.pem")
    return Security(tls_ca_file=cert, tls_client_cert=cert, tls_client_key=key, require_encryption=True)


def job_nodes() -> list[str]:
    """Return the names of the job's nodes."""
    command = ["scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def start_scheduler() -> subprocess.Popen[bytes]:
    """Start the scheduler on a free port of the cluster's network, and return when it listens."""
    place = DIRECTORY / "scheduler.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", "scheduler", *worker.tls_options(DIRECTORY), f"--scheduler-file={place}"]
        + [f"--host=tls://{worker.own_address()}", "--port=0", "--no-dashboard", "--dashboard-address=127.0.0.1:0"],
        env={**os.environ, **worker.SETTINGS},
    )
    deadline = time.monotonic() + START_SECONDS
    while not place.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            end([process])
            raise RuntimeError("Dask's scheduler did not start")
        time.sleep(0.1)
    return process


def start_workers(node: str) -> subprocess.Popen[bytes]:
    """Start the workers of a node, in a step of their own: it ends alone when the job loses the node."""
    where = ["--nodes=1", "--ntasks=1", f"--nodelist={node}", f"--cpus-per-task={worker.cpus()}"]
    where += ["--input=none", "--quiet"]
    return subprocess.Popen(["srun", *where, sys.executable, "worker.py", DIRECTORY])


def watch(steps: dict[str, subprocess.Popen[bytes]], over: threading.Event) -> None:
    """Say which nodes leave before it is over; without any, the program would wait for ever."""
    left = dict(steps)
    while left:
        if over.wait(1):
            return
        for node in [node for node, step in left.items() if step.poll() is not None]:
            print(f"{node} left the Dask cluster (srun ended with {left.pop(node).returncode})", file=sys.stderr)
    print("no node is left", file=sys.stderr)
    os.kill(os.getpid(), signal.SIGTERM)


def end(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """Wait for processes that were told to end, and make them."""
    deadline = time.monotonic() + END_SECONDS
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
