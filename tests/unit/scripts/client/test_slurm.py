"""What Slurm's commands say, recorded from Slurm 22.05.8 (Debian 12) and 24.11.5 (Debian 13)."""

import pytest

from slurmstead.client.remote import commands, slurm
from slurmstead.client.remote.arrays import Chunk
from slurmstead.client.remote.errors import NoAnswer
from slurmstead.client.remote.slurm import Row

BOOKWORM = """\
2026-11-21T11:53:38|620|N/A|COMPLETED|None|n1|stead:only:0
2026-11-21T11:18:56|6|N/A|FAILED|NonZeroExitCode|n1|stead:x3:0
2026-11-21T11:18:55|4|N/A|FAILED|BadConstraints||stead:x2:0
N/A|3|2|PENDING|JobArrayTaskLimit||stead:x1:0
NONE|3|0|RUNNING|None|n1|stead:x1:0
NONE|5|N/A|RUNNING|None|n[1-3]|stead:x2:0
2026-11-21T11:18:34|2|N/A|COMPLETED|None|n1|(null)
"""

TRIXIE = """\
2026-11-21T11:53:51|61|N/A|CANCELLED|Dependency||stead:r2:0
2026-11-21T11:53:51|60|N/A|CANCELLED|JobArrayTaskLimit||stead:squares|x:0
2026-11-21T11:53:51|60|0|CANCELLED|None|n1|stead:squares|x:0
2026-11-21T11:54:09|68|N/A|FAILED|BadConstraints||stead:r9:0
N/A|65|1|PENDING|JobArrayTaskLimit||stead:squares|x:0
N/A|67|N/A|PENDING|JobHeldUser||stead:r3:1
"""

JOB = (
    "JobId=51 JobName=t.py UserId=alice(2001) GroupId=alice(2001)"
    " JobState={state} Reason={reason} Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0"
    " RunTime={ran} TimeLimit={limit} TimeMin=N/A SubmitTime=2026-11-21T11:44:23 EligibleTime=2026-11-21T11:44:23"
)


def without_end(text: str) -> list[tuple[object, ...]]:
    return [row[:-1] for row in slurm.parse_queue(text)]


def test_squeue_of_22_05_is_read() -> None:
    assert without_end(BOOKWORM) == [
        ("only", 0, "620", None, "COMPLETED", "None", "n1"),
        ("x3", 0, "6", None, "FAILED", "NonZeroExitCode", "n1"),
        ("x1", 0, "3", 2, "PENDING", "JobArrayTaskLimit", ""),
        ("x1", 0, "3", 0, "RUNNING", "None", "n1"),
        ("x2", 0, "5", None, "RUNNING", "None", "n[1-3]"),
    ]


def test_squeue_of_24_11_is_read() -> None:
    assert without_end(TRIXIE) == [
        ("r2", 0, "61", None, "CANCELLED", "Dependency", ""),
        ("squares|x", 0, "60", None, "CANCELLED", "JobArrayTaskLimit", ""),
        ("squares|x", 0, "60", 0, "CANCELLED", "None", "n1"),
        ("squares|x", 0, "65", 1, "PENDING", "JobArrayTaskLimit", ""),
        ("r3", 1, "67", None, "PENDING", "JobHeldUser", ""),
    ]


def test_a_job_that_sbatch_refused_never_was_one() -> None:
    assert {row.run for row in slurm.parse_queue(TRIXIE)} == {"r2", "r3", "squares|x"}


def test_only_what_ended_has_ended() -> None:
    ended = {row.state: row.ended for row in slurm.parse_queue(BOOKWORM + TRIXIE)}

    assert ended == {"COMPLETED": True, "FAILED": True, "CANCELLED": True, "PENDING": False, "RUNNING": False}


@pytest.mark.parametrize(
    ("said", "answers"),
    [
        ("Slurmctld(primary) at vm is UP\n", True),
        ("Slurmctld(primary) at vm is DOWN\n", False),
        ("Slurmctld(primary) at a is DOWN\nSlurmctld(backup) at b is UP\n", True),
        ("", False),
    ],
)
def test_a_controller_answers_if_one_is_up(said: str, answers: bool) -> None:
    assert slurm.answers(said) == answers


@pytest.mark.parametrize(
    ("state", "reason", "ran", "limit", "why"),
    [
        pytest.param("COMPLETING", "None", "00:00:03", "UNLIMITED", "cancelled", id="scancel on both versions"),
        pytest.param("COMPLETING", "None", "00:01:20", "00:01:00", "timeout", id="over its time"),
        pytest.param("COMPLETING", "TimeLimit", "00:00:50", "00:01:00", "timeout", id="the reason says so"),
        pytest.param("PREEMPTED", "None", "1-00:00:00", "2-00:00:00", "preempted", id="preempted"),
    ],
)
def test_why_a_job_is_signalled_is_known(state: str, reason: str, ran: str, limit: str, why: str) -> None:
    job = slurm.parse_job(JOB.format(state=state, reason=reason, ran=ran, limit=limit), "51")

    assert slurm.end_of_signalled(job) == why


def test_the_job_that_has_the_number_of_its_array_is_told_from_its_other_tasks() -> None:
    own = JOB.format(state="COMPLETING", reason="None", ran="00:01:20", limit="00:01:00")
    other = JOB.format(state="COMPLETED", reason="None", ran="00:00:01", limit="00:01:00").replace("=51 ", "=52 ")

    assert slurm.end_of_signalled(slurm.parse_job(f"{own}\n{other}\n", "51")) == "timeout"


@pytest.mark.parametrize(
    ("said", "silent"),
    [
        ("sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)", True),
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", True),
        ("sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received", True),
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", True),
        ("sbatch: error: Batch job submission failed: Requested node configuration is not available", False),
        ("sbatch: error: Batch job submission failed: Job dependency problem", False),
    ],
)
def test_a_refusal_is_told_from_a_silence(said: str, silent: bool) -> None:
    assert bool(slurm.SILENT.search(said)) == silent


def test_a_command_that_was_killed_has_refused_nothing() -> None:
    with pytest.raises(NoAnswer, match="sh was killed by signal 9"):
        commands.run(["sh", "-c", "kill -KILL $$"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        ("", "within 2 s$", "Check that slurmctld runs"),
        (
            "sbatch: error: Slurm temporarily unable to accept job",
            "within 2 s: Slurm temporarily unable to accept job",
            "MaxJobCount",
        ),
    ],
)
def test_a_timeout_reports_the_error_output_of_the_command(words: str, said: str, hint: str) -> None:
    with pytest.raises(NoAnswer, match=said) as caught:
        commands.run(["sh", "-c", f"echo '{words}' >&2; sleep 9"], seconds=2)

    assert hint in caught.value.hint


def test_settings_become_options_of_sbatch() -> None:
    request = {"name": "a|b", "cpus": 4, "mem": "8G", "time": "1:00:00", "nodes": "2", "gres": "gpu:1", "limit": 10}

    request |= {"constraint": "arm64", "nice": 100, "qos": "low", "container": "/share/images/python"}
    command = slurm.sbatch(request, "r1", 1, Chunk(1000, "0-9"), ["7", "8"], "9")

    assert command == [
        "sbatch",
        "--parsable",
        "--comment=stead:r1:1",
        "--job-name=a|b",
        "--cpus-per-task=4",
        "--mem=8G",
        "--time=1:00:00",
        "--nodes=2",
        "--gres=gpu:1",
        "--constraint=arm64",
        "--nice=100",
        "--qos=low",
        "--container=/share/images/python",
        "--array=0-9%10",
        "--dependency=afterok:7:8,afterany:9",
        "--kill-on-invalid-dep=yes",
        "--output=log/%j.out",
        "--open-mode=append",
        "--input=/dev/null",
    ]


@pytest.mark.parametrize(("said", "number"), [("12\n", "12"), ("12;lab\n", "12"), ("a word\n13\n", "13"), ("", None)])
def test_the_number_of_a_job_is_read(said: str, number: str | None) -> None:
    assert slurm.job_number(said) == number


def test_a_row_knows_when_it_ended() -> None:
    rows = slurm.parse_queue(BOOKWORM)

    assert all(isinstance(row, Row) for row in rows)
    assert rows[0].end - rows[1].end == (34 * 60 + 42)
    assert rows[2].end == 0
