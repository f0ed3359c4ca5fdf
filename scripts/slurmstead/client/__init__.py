"""Submits work to a Slurm cluster and fetches its results, from any computer that can log in to the head node by ssh.

    from slurmstead.client import Client

    client = Client("alice@node3")
    job = client.submit("my-project", ["--steps", "1000"], entry="main.py", cpus=4, mem="8G")
    print(client.result(job).stdout)

docs/first-hundred-jobs.md shows it in full. All errors are below slurmstead.errors.SteadError.
"""

from slurmstead.client.api import Client
from slurmstead.client.records import Event, Job, Result, State, TaskState
from slurmstead.errors import JobFailed

__all__ = ["Client", "Event", "Job", "JobFailed", "Result", "State", "TaskState"]
