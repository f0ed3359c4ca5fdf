"""The work of the job verbs."""

import json
import os
import pathlib
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from slurmstead.client import api, display, known, results, settings, submitting
from slurmstead.client import head as heads
from slurmstead.client.connection import Connection
from slurmstead.client.files import RESULTS
from slurmstead.client.head import Head
from slurmstead.client.records import Job, State
from slurmstead.client.remote.space import size
from slurmstead.errors import CheckFailed, MachineError, SteadError, TaskError, UnreachableError, UsageError
from slurmstead.wording import count

PIPE_COLUMNS = 1000


def choose(jobs: Sequence[str], head: str | None, ssh_config: str | None, directory: str | None) -> Head:
    """Return the head node of jobs; the stead.toml of the current directory may name it."""
    _, where = settings.read(pathlib.Path.cwd())
    return known.choose(jobs, {"head": head, "ssh_config": ssh_config, "directory": directory}, where)


def submit(
    out: Console,
    messages: Console,
    project: pathlib.Path,
    given: Mapping[str, Any],
    where: Mapping[str, str | None],
    identifier: str | None,
    *,
    wait: bool,
) -> None:
    """Submit a folder and print its job. The call counts as interrupted until that, or with `wait` until the run ends.

    :raises JobFailed: with `wait`, the run failed
    """
    file, place = settings.read(project)
    chosen = settings.merge(file, given)
    head = heads.choose(where, place)
    with display.Bars(messages) as bars:
        if place.get("head") and not where.get("head"):
            bars.note(f"{project / settings.FILE} names the head node: {head.host}")

        def said(connection: Connection, job: Job) -> None:
            bars.hide()
            _print_job(out, job)
            if wait:
                state = _wait(out, connection, job.id, bars)
                api.check(connection, state)

        submitting.submit(head, submitting.order_of(project, chosen, None, identifier), bars, said)


def _print_job(out: Console, job: Job) -> None:
    before = " (already submitted by an interrupted call; not submitted again)" if job.again else ""
    lines = [
        f"job {', '.join(job.jobs)}  {job.id}{before}",
        f"  on the cluster: {job.directory}",
        f"  results: stead fetch {job.jobs[0]}, then {RESULTS}/{job.id}",
    ]
    # In one write: after `| head -n 1` a second one fails, and the submission would count as interrupted.
    out.print(Text("\n".join(lines)), soft_wrap=True)


def _wait(out: Console, connection: Connection, run: str, observer: submitting.Observer) -> State:
    last = ""
    for state in api.states(connection.head, run, None, observer, connection):
        words = display.state_words(state)
        if words != last:
            last = words
            out.print(Text(f"  {words}"), soft_wrap=True)
        if state.ended:
            return state
    raise AssertionError("without a deadline there is always a next state")


def jobs_json(head: Head, latest: int) -> str:
    """Return the states of runs as JSON."""
    with Connection(head) as connection:
        return json.dumps(connection.ask("jobs", latest=latest or None)["jobs"], indent=2)


def jobs(out: Console, messages: Console, head: Head, latest: int, *, follow: bool) -> None:
    """Print the states of runs as a table; with `follow`, update it until all have ended."""
    with Connection(head, display.Bars(messages).note) as connection:
        states = _look(connection, latest)
        if not follow:
            _print_states(out, states)
            return
        with Live(console=out, auto_refresh=False) as live:
            while True:
                live.update(display.table(states, time.time()), refresh=True)
                if all(state.ended for state in states):
                    return
                time.sleep(api.POLL_SECONDS)
                states = _look(connection, latest)


def _look(connection: Connection, latest: int) -> list[State]:
    return [State.read(summary) for summary in connection.ask("jobs", latest=latest or None)["jobs"]]


def _print_states(out: Console, states: list[State]) -> None:
    if not out.is_terminal:
        # A program that reads a pipe needs whole names, not 80 columns.
        out.width = PIPE_COLUMNS
    if states:
        out.print(display.table(states, time.time()))
    else:
        out.print("no runs yet: stead submit FOLDER")


def logs(messages: Console, head: Head, job: str, task: int | None, *, follow: bool, stderr: bool) -> None:
    """Write a task's output to standard output; with `follow`, continue after a lost connection."""
    position = 0
    patience = api.Patience()
    while True:
        try:
            with Connection(head, display.Bars(messages).note) as connection:
                if follow:
                    api.look(connection, job)
                    patience.answered()
                asked = {"job": job, "task": task, "follow": follow, "stderr": stderr, "offset": position}
                with connection.stream("log", **asked) as process:
                    assert process.stdout is not None
                    while block := os.read(process.stdout.fileno(), 1 << 16):
                        position += len(block)
                        sys.stdout.buffer.write(block)
                        sys.stdout.buffer.flush()
            return
        except (UnreachableError, UsageError, TaskError) as error:
            if not patience.lasts(error):
                raise
            messages.print(Text(f"stead: {error}; retrying", style="yellow"), soft_wrap=True)
            time.sleep(5 * api.POLL_SECONDS)


def fetch(out: Console, messages: Console, head: Head, jobs: list[str], to: pathlib.Path, *, everything: bool) -> None:
    """Fetch the results of runs; with `everything`, of all runs that are not complete here.

    :raises UsageError: no run is named
    :raises SteadError: a run could not be fetched; all others were
    """
    if not jobs and not everything:
        raise UsageError("no job is named", "Name jobs, or use --all.")
    with display.Bars(messages) as bars, Connection(head, bars.note) as connection:
        if everything:
            known = _look(connection, 0)
            wanted = [state for state in known if not results.is_complete(to / state.id, state)]
            jobs = [state.id for state in wanted if _left_something(state)]
            if not jobs:
                runs = sum(map(_left_something, known))
                why = f"the results of {count(runs, 'run')} are already in {to}" if runs else "no run has ended"
                out.print(Text(f"Nothing new: {why}"), soft_wrap=True)
        failures: list[SteadError] = []
        try:
            for job in jobs:
                try:
                    fetched = results.fetch(connection, job, to, bars)
                except MachineError:
                    raise
                except (CheckFailed, TaskError, UsageError) as error:
                    # Otherwise this run would fail each time, and the runs after it would never be fetched.
                    failures.append(error)
                    continue
                finally:
                    bars.hide()
                words = f"{count(fetched.new, 'file')} fetched ({size(fetched.bytes)}), {len(fetched.files)} in all"
                still = "" if fetched.state.ended else f"; {display.state_words(fetched.state)}: fetch again later"
                out.print(Text(f"{fetched.directory}: {words}{still}"), soft_wrap=True)
            if failures:
                raise failures.pop()
        finally:
            for failure in failures:
                bars.note(str(failure))


def _left_something(state: State) -> bool:
    return state.ended or any(task.end for task in state.tasks)


def cancel(out: Console, messages: Console, head: Head, jobs: list[str]) -> None:
    """Cancel runs and print which."""
    with Connection(head, display.Bars(messages).note) as connection:
        answer = connection.ask("cancel", jobs=jobs)
    for run in answer["runs"]:
        out.print(Text(f"{run}: {'cancelled' if run in answer['cancelled'] else 'had already ended'}"), soft_wrap=True)


def rerun(out: Console, messages: Console, head: Head, job: str, identifier: str | None) -> None:
    """Submit a run again; as with submit, an interrupted attempt continues."""
    submitting.rerun(head, job, identifier, display.Bars(messages), lambda _, made: _print_job(out, made))
