"""What CI leaves out for its time; run it before a release, or after a change of what it is about."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from slurmstead.paths import PLAYBOOKS
from tests.lab.engines.running import BROKER, directory_of, output, submit

COMPILER = json.dumps({"packages_extra": ["g++", "libpfm4", "make"]})

PULSE = """
import pathlib, time
import allocation

def slow(number):
    time.sleep(0.5)
    return number

with allocation.cluster() as client:
    numbers = client.map(slow, range(200))
    while not pathlib.Path("enough").exists():
        print(len(client.scheduler_info()["workers"]), flush=True)
        time.sleep(1)
    print("sum", sum(client.gather(numbers)))
"""
"""Prints the number of Dask workers until the file `enough` exists."""


def test_a_rank_of_mpi_that_fails_ends_the_others_and_the_job(cluster: Any, example: Any) -> None:
    folder = example("mpi")
    (folder / "fails.py").write_text(
        "import sys, time\nfrom mpi4py import MPI\n"
        "if MPI.COMM_WORLD.Get_rank() == 3:\n    sys.exit(7)\ntime.sleep(500)\n"
    )
    started = time.monotonic()
    run = submit(cluster, folder, "--", "fails.py", code=4)

    assert cluster.jobs()[run]["state"] == "failed"
    assert time.monotonic() - started < 300


def test_dask_grows_and_shrinks_while_it_works(lab: Any, cluster: Any, example: Any) -> None:
    folder = example("dask")
    (folder / "pulse.py").write_text(PULSE)
    run = cluster.run_of(cluster.stead("submit", folder, "--entry", "pulse.py", "--nodes", 2))
    (job,) = cluster.jobs()[run]["jobs"]

    def wait_for(workers: int) -> None:
        place = directory_of(cluster, run)
        deadline = time.monotonic() + 300
        while cluster.user(f"tail -n 1 {place}/stdout 2>/dev/null || true").strip() != str(workers):
            assert time.monotonic() < deadline, cluster.user(f"squeue; tail {place}/stdout {place}/stderr")
            time.sleep(2)

    wait_for(4)
    joined = cluster.run_of(cluster.stead("submit", folder, "--entry", "join.py", "--nodes", 1, "--", run))
    wait_for(6)
    cluster.stead("cancel", joined)
    wait_for(4)
    first, second = cluster.user(f"scontrol show hostnames $(squeue --noheader --jobs={job} --format=%N)").split()
    cluster.user(f"cd /tmp && scontrol update jobid={job} nodelist={first}")
    wait_for(2)
    cluster.user(f"touch {directory_of(cluster, run)}/work/enough")

    assert cluster.wait(run)["state"] == "completed"
    assert output(cluster, run).splitlines()[-1] == "sum 19900"
    assert f"{second} left the Dask cluster" in output(cluster, run, "stderr")


def test_an_island_of_deap_ends_where_its_seed_leads(cluster: Any, example: Any) -> None:
    folder = example("deap")
    one = submit(cluster, folder, "--array", "0-1", "--cpus", 1, "--", 5)
    two = submit(cluster, folder, "--array", "0-1", "--cpus", 2, "--", 5)
    below = f"{cluster.variables['STEAD_DIRECTORY']}/runs"
    first, second = (cluster.user(f"cat {below}/{run}/tasks/*/work/best-*.json") for run in (one, two))

    assert first == second
    assert len(set(first.splitlines())) == 2


def test_cfiddle_compiles_measures_and_draws(lab: Any, cluster: Any, example: Any) -> None:
    run = lab.ansible("--extra-vars", COMPILER, str(PLAYBOOKS / "configure-os.yml"))
    assert run.code == 0, run.output
    measured = submit(cluster, example("cfiddle"), "--", 1)
    columns, _, *rows = output(cluster, measured).splitlines()

    assert columns.split() == ["size", "256", "512", "1024", "2048"]
    assert [row.split()[-5] for row in rows] == 2 * ["along_columns", "along_rows"]
    assert cluster.user(f"head -c 8 {directory_of(cluster, measured)}/work/times.png | tail -c 7 | head -c 3") == "PNG"


def test_a_second_run_for_the_broker_changes_nothing(lab: Any, broker: Any) -> None:
    run = lab.ansible(*BROKER)

    assert (run.code, run.changed) == (0, {}), run.output


def test_only_what_reads_a_changed_file_is_restarted(lab: Any, broker: Any) -> None:
    units = "systemctl show --property=MainPID --value rabbitmq-server.service slurmstead-redis@alice.service"
    rabbitmq, redis = lab.root(lab.control, units).split()
    lab.root(lab.control, "echo '# changed by hand' >> /etc/redis/slurmstead.conf")
    run = lab.ansible(*BROKER)

    assert run.changed == {lab.control: ["celery_broker : Configure RabbitMQ and Redis"]}, run.output
    assert lab.root(lab.control, units).split()[0] == rabbitmq
    assert lab.root(lab.control, units).split()[1] != redis
    assert lab.ansible(*BROKER).changed == {}


def test_stead_submit_starts_the_workers_of_celery_and_what_gives_them_tasks(
    lab: Any, cluster: Any, example: Any, broker: Any
) -> None:
    folder = example("celery")
    workers = cluster.run_of(cluster.stead("submit", folder, "--array", "0-1"))
    try:
        run = submit(cluster, folder, "--entry", "main.py", "--array", "0", "--", 20_000, 10)
        shown = lab.user("scontrol show jobs")

        assert re.search(r"^2262 primes below 20000 in ", output(cluster, run, "tasks/0/stdout"), re.MULTILINE)
        assert "Nice=10000 " in shown
    finally:
        cluster.stead("cancel", workers)
