"""Arguments of Slurm's commands, and parsers for their output: pure functions, for Slurm 22.05 to 24.11."""

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from slurmstead.client.remote.arrays import Chunk

QUEUE = ("squeue", "--me", "--all", "--array", "--states=all", "--noheader", "--format=%e|%F|%K|%T|%r|%N|%k")
"""The input of parse_queue; --states=all adds jobs that ended within MinJobAge. The comment is last: it may have |.

Without --all, jobs in a partition that the user may not see (Hidden, AllowGroups) are missing; scontrol shows them.
"""

PENDING = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"})
RUNNING = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"})

SILENT = re.compile(
    "unable to contact slurm controller|connection refused|zero bytes were transmitted|socket timed out"
    "|unexpected message|communication|connect failure|slurm_receive_msg|slurm temporarily unable",
    re.IGNORECASE,
)
"""Messages after which slurmctld may or may not have done what was requested."""


class Row(NamedTuple):
    """A job or a task of an array, as squeue shows it.

    `number` is None outside of arrays; `end`, in seconds since the epoch, is its end or its time limit.
    """

    run: str
    chunk: int
    job: str
    number: int | None
    state: str
    reason: str
    node: str
    end: float

    @property
    def ended(self) -> bool:
        """Whether the job has ended for good."""
        return self.state not in PENDING | RUNNING


def comment(run: str, chunk: int) -> str:
    """Return the comment of a Slurm job, which names its run and chunk."""
    return f"stead:{run}:{chunk}"


def parse_queue(text: str) -> list[Row]:
    """Return the rows of QUEUE that belong to runs.

    A job that sbatch refused can be in the queue too (`sbatch --mem=500G` fails and leaves FAILED, BadConstraints); it
    is left out.
    """
    rows = []
    for line in text.splitlines():
        fields = line.split("|", 6)
        if len(fields) != 7 or not fields[6].startswith("stead:"):
            continue
        end, job, index, state, reason, node, said = fields
        run, _, chunk = said.removeprefix("stead:").rpartition(":")
        if run and chunk.isdigit() and reason != "BadConstraints":
            number = int(index) if index.isdigit() else None
            rows.append(Row(run, int(chunk), job, number, state, reason, node, _seconds(end)))
    return rows


def _seconds(text: str) -> float:
    """Return a time printed by Slurm (local time of the head node) in seconds since the epoch; 0 for NONE and N/A."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def parse_config(text: str) -> dict[str, str]:
    """Return the settings in the output of `scontrol show config`, by name."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def parse_job(text: str, job: str) -> dict[str, str]:
    """Return the fields of a job in `scontrol show job -o` that say why it ends; their values have no spaces.

    For a job whose number is also its array's, scontrol prints a line for each task.
    """
    line = next((line for line in text.splitlines() if line.startswith(f"JobId={job} ")), "")
    return dict(re.findall(r"(?:^|\s)(JobState|Reason|RunTime|TimeLimit)=(\S*)", line))


def seconds(span: str) -> int | None:
    """Return the seconds of a duration in Slurm's notation, or None for UNLIMITED and similar words.

    >>> seconds("1-02:00:10"), seconds("UNLIMITED")
    (93610, None)
    """
    match = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)", span)
    if not match:
        return None
    days, hours, minutes, rest = (int(number or 0) for number in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest


def end_of_signalled(job: Mapping[str, str]) -> str:
    """Return why Slurm ends a job that it has just signalled; its JobState is COMPLETING for every reason."""
    limit, ran = seconds(job.get("TimeLimit", "")), seconds(job.get("RunTime", ""))
    over = limit is not None and ran is not None and ran >= limit
    if over or "TIMEOUT" in (job.get("JobState"), job.get("Reason", "").upper()) or job.get("Reason") == "TimeLimit":
        return "timeout"
    return {"PREEMPTED": "preempted", "NODE_FAIL": "failed"}.get(job.get("JobState", ""), "cancelled")


def answers(ping: str) -> bool:
    """Whether `scontrol ping` reached a slurmctld; its exit code does not show that."""
    return " is UP" in ping


def sbatch(
    request: Mapping[str, Any],
    run: str,
    chunk: int,
    part: Chunk | None,
    dependencies: Sequence[str],
    previous: str | None = None,
) -> list[str]:
    """Return the command line that submits a chunk of a run; its script comes from standard input.

    The chunk waits for the end of the job `previous`: Slurm limits simultaneous tasks only within a job.
    """
    given = {
        "--cpus-per-task": request.get("cpus"),
        "--mem": request.get("mem"),
        "--time": request.get("time"),
        "--nodes": request.get("nodes"),
        "--gres": request.get("gres"),
        "--constraint": request.get("constraint"),
        "--partition": request.get("partition"),
        "--nice": request.get("nice"),
        "--qos": request.get("qos"),
        "--container": request.get("container"),
    }
    command = ["sbatch", "--parsable", f"--comment={comment(run, chunk)}", f"--job-name={request['name']}"]
    command += [f"{option}={value}" for option, value in given.items() if value is not None]
    if part:
        limit = request.get("limit")
        command.append(f"--array={part.indices}" + (f"%{limit}" if limit else ""))
    waits = [f"afterok:{':'.join(dependencies)}"] if dependencies else []
    waits += [f"afterany:{previous}"] if previous else []
    if waits:
        command += [f"--dependency={','.join(waits)}", "--kill-on-invalid-dep=yes"]
    return [*command, "--output=log/%j.out", "--open-mode=append", "--input=/dev/null"]


def job_number(parsable: str) -> str | None:
    """Return the job's number in what `sbatch --parsable` prints, `12` or `12;cluster`, or None."""
    lines = parsable.strip().splitlines()
    number = lines[-1].partition(";")[0] if lines else ""
    return number if number.isdigit() else None


def words(stderr: str) -> str:
    """Return a command's error messages in one line, without the names of the command and of Slurm's functions.

    >>> words("sbatch: error: Memory specification can not be satisfied\\n")
    'Memory specification can not be satisfied'
    """
    lines: Iterable[str] = (re.sub(r"^(\w+: )?(error|fatal): ", "", line).strip() for line in stderr.splitlines())
    return "; ".join(line for line in lines if line)
