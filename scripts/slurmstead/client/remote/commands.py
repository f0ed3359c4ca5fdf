"""Slurm's commands with a deadline: a command must not hang when slurmctld is down."""

import os
import pwd
import subprocess

from slurmstead.client.remote import slurm
from slurmstead.client.remote.errors import NoAnswer, WrongRequest

ANSWER_SECONDS = 7
"""Slurm's commands wait 9 s for a slurmctld that is down; `scontrol ping` reports it at once."""
SUBMIT_SECONDS = 60
"""A busy slurmctld answers sbatch late."""

HINT = "Check that slurmctld runs on the head node. When it is back, run the same command again; it continues."
FULL_HINT = (
    "Its job limit (MaxJobCount) may be reached. When jobs have ended, run the same command again; it continues."
)


def environment() -> dict[str, str]:
    """Return the environment of jobs: nothing of the login session in which the request runs."""
    user = pwd.getpwuid(os.getuid())
    kept = {name: os.environ[name] for name in ("SLURM_CONF", "TZ") if name in os.environ}
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": user.pw_dir,
        "USER": user.pw_name,
        "LOGNAME": user.pw_name,
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        **kept,
    }


def run(command: list[str], stdin: str = "", seconds: float = ANSWER_SECONDS, directory: str = "/") -> str:
    """Run a command and return its standard output.

    :raises NoAnswer: slurmctld did not answer, or the command was killed and may have done its work
    :raises WrongRequest: Slurm refused
    """
    done = _call(command, stdin, seconds, directory)
    if done.returncode < 0:
        raise NoAnswer(
            f"{command[0]} was killed by signal {-done.returncode}", "Run the same command again; it continues."
        )
    if done.returncode:
        said = slurm.words(done.stderr) or f"{command[0]} exited with {done.returncode}"
        if slurm.SILENT.search(done.stderr):
            raise NoAnswer(f"slurmctld does not answer: {said}", HINT)
        raise WrongRequest(f"Slurm refused: {said}")
    return done.stdout


def _call(command: list[str], stdin: str, seconds: float, directory: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            input=stdin,
            cwd=directory,
            env=environment(),
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        raise WrongRequest(
            f"{command[0]} is not installed on {os.uname().nodename}",
            "Check that this is the head node, or install the package slurm-client there.",
        ) from None
    except subprocess.TimeoutExpired as late:
        # These are bytes, even though an encoding was given.
        said = slurm.words((late.stderr or b"").decode(errors="replace"))
        raise NoAnswer(
            f"slurmctld did not answer {command[0]} within {seconds:.0f} s" + (f": {said}" if said else ""),
            FULL_HINT if "temporarily unable" in said else HINT,
        ) from None


def ping() -> None:
    """Check that slurmctld answers.

    :raises NoAnswer: slurmctld does not answer
    """
    # Its exit code is 1 if only one of several controllers is down.
    done = _call(["scontrol", "ping"], "", ANSWER_SECONDS, "/")
    if not slurm.answers(done.stdout):
        said = " ".join(done.stdout.split()) or slurm.words(done.stderr)
        raise NoAnswer(f"slurmctld does not answer: {said}", HINT)


def queue() -> list[slurm.Row]:
    """Return the rows of the user's runs in Slurm's queue.

    :raises NoAnswer: slurmctld does not answer
    """
    ping()
    return slurm.parse_queue(run(list(slurm.QUEUE)))
