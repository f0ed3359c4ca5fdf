"""Celery in the lab: the broker of site.yml, examples/celery as alice uses it, and a worker that is killed."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

LAST, TASKS, PRIMES = 600_000, 60, 49098
"""Tasks of half a second on an emulated CPU, and what they find together."""

# As alice, because root of a node may not read what she has on the share. A worker that stands still says nothing more,
# so what is looked at is what it dies with.
KILL = """
runuser --user alice -- timeout 240 sh -c '
    send() (pkill --signal $1 --uid alice --full "[c]elery --app")
    until grep --quiet succeeded "$0"; do sleep 0.2; done
    until send STOP && tail --lines=1 "$0" | grep --quiet " received$"; do send CONT; sleep 0.1; done
    send KILL' {}
"""

REFUSED = """
import amqp, redis, sys

address = sys.argv[1]
try:
    amqp.Connection(f"{address}:5672", userid="guest", password="guest").connect()
except amqp.AccessRefused:
    print("guest is refused")
try:
    redis.Redis(host=address).ping()
except redis.AuthenticationError:
    print("nobody is refused")
"""

# The password stays in the machine: sudo writes the arguments of a command into the journal.
PASSWORD = """
import json, os, pathlib, pwd, subprocess

path = pathlib.Path("/etc/slurmstead/celery/alice.json")
password = json.loads(path.read_text())["broker_url"].split(":")[2].split("@")[0]
journal = subprocess.run(["journalctl", "--boot", "--no-pager"], stdout=subprocess.PIPE, check=True).stdout
shown = oct(path.stat().st_mode & 0o7777), pwd.getpwuid(path.stat().st_uid).pw_name
print(json.dumps({"file": shown, "long": len(password) > 40, "in the journal": password.encode() in journal}))
"""


@pytest.fixture(scope="module")
def workers(lab: Any, home: str) -> str:
    """The job of the workers, one of which is ready on each node."""
    array = f"--array=0-{len(lab.workers) - 1}"
    job = str(lab.user(f"cd {home} && sbatch --parsable --exclusive {array} worker.sh")).strip()
    deadline = time.monotonic() + 600
    ready = f"cat {home}/worker-{job}_*.out 2>/dev/null | grep --count ' ready\\.$' || true"
    while lab.user(ready).strip() != str(len(lab.workers)):
        assert time.monotonic() < deadline, lab.user(f"squeue; tail {home}/worker-{job}_*.out")
        time.sleep(3)
    return job


def tasks_in(text: str, what: str) -> set[str]:
    """Return the tasks that a worker says it has received, or that it says succeeded."""
    return set(re.findall(rf"Task tasks\.count_primes\[([0-9a-f-]+)\] {what}", text))


def test_a_worker_that_is_killed_loses_no_task(lab: Any, home: str, workers: str) -> None:
    node = lab.workers[0]
    (victim,) = lab.user(f"grep --files-with-matches '@{node} ready' {home}/worker-{workers}_*.out").split()
    lab.user(f"cd {home} && (setsid env/bin/python main.py {LAST} {TASKS} > main.out 2>&1 &)")
    lab.root(node, KILL.format(victim), seconds=300)
    deadline = time.monotonic() + 300
    while "primes below" not in (said := lab.user(f"cat {home}/main.out")):
        assert time.monotonic() < deadline, f"{said}\n{lab.user(f'tail {home}/worker-*.out')}"
        time.sleep(2)

    others = lab.user(f"ls {home}/worker-{workers}_*.out").replace(victim, "")
    dead = lab.user(f"cat {victim}")
    lost = tasks_in(dead, "received") - tasks_in(dead, "succeeded")
    assert lost, f"the worker was killed between two tasks:\n{dead[-2000:]}"
    # A node keeps what it writes to the share for up to half a minute (vm.dirty_expire_centisecs).
    while not lost <= tasks_in(lab.user(f"cat {' '.join(others.split())}"), "succeeded"):
        assert time.monotonic() < deadline, f"nobody did {lost}"
        time.sleep(2)
    assert re.search(rf"^{PRIMES} primes below {LAST} ", said, re.MULTILINE), said


def test_workers_give_way_to_other_jobs_and_programs(lab: Any, workers: str) -> None:
    shown = lab.user(f"scontrol show job {workers}")
    nice = lab.root(lab.workers[1], "ps --no-headers -o ni,args -u alice | grep '[c]elery --app'")

    assert "Nice=10000 " in shown
    assert {line.split()[0] for line in nice.splitlines()} == {"19"}


def test_nobody_gets_in_without_a_password(lab: Any, home: str) -> None:
    program = f"{home}/env/bin/python -c '{REFUSED}' {lab.address(lab.control)}"

    assert lab.user(program).splitlines() == ["guest is refused", "nobody is refused"]


def test_the_broker_listens_in_the_network_of_the_cluster_only(lab: Any, broker: Any) -> None:
    lines = lab.root(lab.control, "ss --no-header --listening --numeric --tcp").splitlines()
    listening = {line.split()[3] for line in lines}
    ports = {place for place in listening if place.rpartition(":")[2] in ("5672", "6379", "25672", "4369")}
    reachable = {place for place in ports if not place.startswith(("127.0.0.1:", "[::1]:"))}

    own = lab.address(lab.control)
    assert reachable == {f"{own}:5672", f"{own}:6379"}


def test_a_password_is_for_its_user_alone_and_in_no_journal(lab: Any, broker: Any) -> None:
    seen = lab.everywhere(lambda name: lab.python(name, PASSWORD))

    right = {"file": ["0o400", "alice"], "long": True, "in the journal": False}
    assert seen == dict.fromkeys(lab.names, right)
    assert "amqp://" not in broker.output
