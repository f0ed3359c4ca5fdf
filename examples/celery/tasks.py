"""Tasks that a worker on any node can do. A worker that dies loses none of them."""

import getpass
import json
import os
import pathlib

from celery import Celery

# The addresses of the broker and your password, which only you can read; the same file is on every node.
SETTINGS = pathlib.Path("/etc/slurmstead/celery", f"{getpass.getuser()}.json")

if not SETTINGS.exists():
    raise SystemExit(f"{SETTINGS} is not there: an administrator has to name you in celery_broker_users")

app = Celery("tasks")
app.conf.update(
    json.loads(SETTINGS.read_text()),
    # `delay` returns when RabbitMQ has the task on its disk.
    broker_transport_options={"confirm_publish": True},
    broker_connection_retry_on_startup=True,
    # In seconds: a node without power is noticed after two or three of these, a process that ended at once.
    broker_heartbeat=30,
    # A task is acknowledged when it is done, so what a dead worker had goes to another one. It can be done twice.
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    # A worker has what it works on, and nothing in reserve that others could do.
    worker_prefetch_multiplier=1,
    result_expires=24 * 3600,
)


@app.task
def count_primes(first: int, last: int) -> tuple[int, str]:
    """Return how many of the numbers from first to last - 1 are prime, and who counted."""
    count = sum(all(number % divisor for divisor in range(2, int(number**0.5) + 1)) for number in range(first, last))
    return count, f"{os.uname().nodename} {os.getpid()}"
