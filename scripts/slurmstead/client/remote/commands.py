"""Slurm's commands with a deadline: a controller that is down must not hang whoever asks."""

import os
import pwd
import subprocess

from slurmstead.client.remote import slurm
from slurmstead.client.remote.errors import NoAnswer, WrongRequest

ANSWER_SECONDS = 7
"""A command line tool waits 9 s for a controller that is down; `scontrol ping` knows at once."""
SUBMIT_SECONDS = 60
"""A busy controller answers sbatch late."""

HINT = "Is slurmctld running on the head node? The same command carries on when it is back."
FULL_HINT = "Has it all the jobs that it takes (MaxJobCount)? The same command carries on when there is room."


def environment() -> dict[str, str]:
    """Return what jobs inherit: nothing of whoever happens to be logged in."""
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
    """Return what a command prints.

    :raises NoAnswer: slurmctld did not answer
    :raises WrongRequest: Slurm refused
    """
    done = _call(command, stdin, seconds, directory)
    if done.returncode:
        said = slurm.words(done.stderr) or f"{command[0]} ended with {done.returncode}"
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
            f"{os.uname().nodename} has no {command[0]}", "Is it the head node? Its package is slurm-client."
        ) from None
    except subprocess.TimeoutExpired as late:
        # Bytes, whatever the encoding is.
        said = slurm.words((late.stderr or b"").decode(errors="replace"))
        raise NoAnswer(
            f"slurmctld did not answer {command[0]} within {seconds:.0f} s" + (f": {said}" if said else ""),
            FULL_HINT if "temporarily unable" in said else HINT,
        ) from None


def ping() -> None:
    """Return when slurmctld answers.

    :raises NoAnswer: it does not
    """
    # It ends with 1 as soon as one of several controllers is down.
    done = _call(["scontrol", "ping"], "", ANSWER_SECONDS, "/")
    if not slurm.answers(done.stdout):
        said = " ".join(done.stdout.split()) or slurm.words(done.stderr)
        raise NoAnswer(f"slurmctld does not answer: {said}", HINT)


def queue() -> list[slurm.Row]:
    """Return what Slurm knows of the user's runs."""
    ping()
    return slurm.parse_queue(run(list(slurm.QUEUE)))
