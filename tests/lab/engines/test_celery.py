"""Celery in the lab: the broker of site.yml, examples/celery as alice uses it, and a worker that is killed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from slurmstead.paths import PLAYBOOKS, ROOT

BROKER = str(PLAYBOOKS / "configure-broker.yml")
EXAMPLE = ROOT / "examples" / "celery"
USERS = json.dumps({"celery_broker_users": ["alice"]})

LAST, TASKS, PRIMES = 1_000_000, 60, 78498
"""Tasks of a second or two on an emulated CPU, and what they find together."""

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


@pytest.fixture(scope="module")
def broker(lab: Any) -> Any:
    """How the run ended that brought the broker; its packages come before it, as in site.yml."""
    packages = lab.ansible("--extra-vars", USERS, "--limit", lab.control, str(PLAYBOOKS / "configure-os.yml"))
    assert packages.code == 0, packages.output
    run = lab.ansible("--extra-vars", USERS, BROKER)
    assert run.code == 0, run.output
    return run


@pytest.fixture(scope="module")
def example(lab: Any, broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """alice's copy of examples/celery with its environment: the directory below her home."""
    folder = tmp_path_factory.mktemp("celery")
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--dest", f"{folder}/wheels"]
    subprocess.run([*download, "--requirement", f"{EXAMPLE}/requirements.txt"], check=True, timeout=300)
    packed = subprocess.run(
        ["tar", "--create", "--directory", folder, "wheels", "--directory", EXAMPLE, "."],
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    lab.user("rm -rf celery && mkdir celery")
    to_alice = ["ssh", "-F", str(lab.directory / "ssh_config"), f"alice@{lab.control}"]
    subprocess.run([*to_alice, "tar --extract --directory celery"], input=packed.stdout, check=True, timeout=120)
    lab.user(
        "cd celery && srun python3 -m venv env && "
        "srun env/bin/pip install --quiet --no-index --find-links wheels --requirement requirements.txt",
        seconds=480,
    )
    yield "celery"
    lab.user("scancel --user=alice")
    lab.wait_until_idle(120)
    lab.user("rm -rf celery")


@pytest.fixture(scope="module")
def workers(lab: Any, example: str) -> str:
    """The job of the workers, three of which are ready."""
    job = str(lab.user(f"cd {example} && sbatch --parsable --exclusive worker.sh")).strip()
    deadline = time.monotonic() + 240
    ready = f"cd {example} && cat worker-{job}_*.out 2>/dev/null | grep --count ' ready\\.$' || true"
    while lab.user(ready).strip() != str(len(lab.workers)):
        assert time.monotonic() < deadline, lab.user(f"cd {example} && squeue; tail worker-{job}_*.out")
        time.sleep(3)
    return job


def tasks_in(text: str, what: str) -> set[str]:
    """Return the tasks that a worker says it has received, or that it says succeeded."""
    return set(re.findall(rf"Task tasks\.count_primes\[([0-9a-f-]+)\] {what}", text))


def test_a_worker_that_is_killed_loses_no_task(lab: Any, example: str, workers: str) -> None:
    lab.user(f"cd {example} && (setsid env/bin/python main.py {LAST} {TASKS} > main.out 2>&1 &)")
    node, deadline = lab.workers[0], time.monotonic() + 120
    outputs = f"cd {example} && grep --files-with-matches '@{node} ready' worker-{workers}_*.out"
    (victim,) = lab.user(outputs).split()
    while not tasks_in(lab.user(f"cat {example}/{victim}"), "succeeded"):
        assert time.monotonic() < deadline, lab.user(f"tail {example}/*.out")
    lab.root(node, "pkill --signal KILL --uid alice --full 'celery --app'")
    while "primes below" not in lab.user(f"cat {example}/main.out"):
        assert time.monotonic() < deadline + 240, lab.user(f"tail {example}/*.out")
        time.sleep(2)

    texts = {name: lab.user(f"cat {example}/{name}") for name in lab.user(f"cd {example} && ls worker-*").split()}
    lost = tasks_in(texts.pop(victim), "received") - tasks_in(lab.user(f"cat {example}/{victim}"), "succeeded")
    assert lost, "the worker was killed between two tasks"
    assert lost <= set().union(*(tasks_in(text, "succeeded") for text in texts.values()))
    assert lab.user(f"grep primes {example}/main.out").startswith(f"{PRIMES} primes below {LAST} ")


def test_workers_give_way_to_other_jobs_and_programs(lab: Any, workers: str) -> None:
    shown = lab.user(f"scontrol show job {workers}")
    nice = lab.root(lab.workers[1], "ps --no-headers -o ni,args -u alice | grep 'celery --app'")

    assert "Nice=10000 " in shown
    assert {line.split()[0] for line in nice.splitlines()} == {"19"}


def test_nobody_gets_in_without_a_password(lab: Any, example: str) -> None:
    program = f"{example}/env/bin/python -c '{REFUSED}' {lab.address(lab.control)}"

    assert lab.user(program).splitlines() == ["guest is refused", "nobody is refused"]


def test_the_broker_listens_in_the_network_of_the_cluster_only(lab: Any, broker: Any) -> None:
    lines = lab.root(lab.control, "ss --no-header --listening --numeric --tcp").splitlines()
    listening = {line.split()[3] for line in lines}
    ports = {place for place in listening if place.rpartition(":")[2] in ("5672", "6379", "25672", "4369")}

    own = lab.address(lab.control)
    assert ports == {f"{own}:5672", f"{own}:6379", "127.0.0.1:25672", "127.0.0.1:4369"}


def test_a_password_is_for_its_user_alone_and_in_no_log(lab: Any, broker: Any, node: str) -> None:
    path = "/etc/slurmstead/celery/alice.json"
    settings = json.loads(lab.root(node, f"cat {path}"))
    password = settings["broker_url"].split(":")[2].split("@")[0]

    assert lab.root(node, f"stat --format='%a %U' {path}").strip() == "400 alice"
    assert password not in broker.output
    assert lab.root(node, f"journalctl --boot --no-pager | grep --count --fixed-strings -e {password} || true") in (
        "0",
        "0\n",
    )


def test_a_second_run_changes_nothing(lab: Any, broker: Any) -> None:
    run = lab.ansible("--extra-vars", USERS, BROKER)

    assert (run.code, run.changed) == (0, {}), run.output
