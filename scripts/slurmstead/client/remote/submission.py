"""Submits a run exactly once, even if the request is interrupted and repeated.

begin → the client copies the folder into input/ → submit. Each of the three steps can be repeated.
"""

import contextlib
import os
import pathlib
import shutil
import time
from collections.abc import Mapping
from typing import Any

from slurmstead.client.remote import arrays, commands, library, manifest, slurm, space, states, store, sweep
from slurmstead.client.remote.errors import Incomplete, NoAnswer, Refusal, WrongRequest
from slurmstead.client.remote.ledger import Ledger
from slurmstead.client.remote.store import Store

FLIGHT_SECONDS = 20
"""Seconds after which the request of a killed sbatch can no longer reach slurmctld (MessageTimeout is 10 s)."""

REMEMBERED = 3
"""The number of earlier runs of a folder that the next run can share files with."""

SCRIPT = "#!/bin/sh\nexec python3 -I -X utf8 {program} {root} {run} {chunk} {offset}\n"


def begin(place: Store, request: Mapping[str, Any]) -> dict[str, Any]:
    """Make the directory of a run, unless the run is already submitted.

    :returns: if submitted, its `jobs` in Slurm; otherwise `input`, the target of the copy, `like`, directories that
        probably have most of the files, `incoming`, the directory for incomplete files, and `token` for the requests
        that follow: those of earlier calls, which can still be on their way, are refused from now on
    :raises WrongRequest: another directory has its name, or it is a new run with the name of a job
    :raises NoAnswer: slurmctld does not answer
    """
    commands.ping()
    place.make()
    run = place.run(request["id"])
    with place.lock():
        ledger = _opened(place, run)
        if ledger.complete:
            return {"jobs": list(ledger.jobs.values()), "directory": str(run)}
        # Before the input changes: a job that appears later would read it.
        find_lost(run, ledger)
        is_cancelled = states.cancellation(run, None).exists()
        if ledger.jobs:
            # Some of its jobs exist, so the input must not change.
            if not is_cancelled:
                _complete(place, run, ledger, store.read_json(run / "request.json"))
            return {"jobs": list(ledger.jobs.values()), "directory": str(run)}
        if is_cancelled and ledger.parts:
            # Slurm never had a job of it, and the mark would stop the next one.
            place.remove(run)
        elif store.JOB.fullmatch(run.name) and not run.exists():
            raise WrongRequest(
                f"the run ID {run.name!r} could be the number of a job",
                f"Choose one with a letter, such as --id run-{run.name}.",
            )
        run.mkdir(mode=0o700, exist_ok=True)
        token = os.urandom(8).hex()
        (run / store.MARK).write_text(token)
        (run / "input").mkdir(exist_ok=True)
        # The sweep counts from now, also if the copy began long ago.
        os.utime(run)
    before = store.read_json(place.projects / request["project"]) or []
    like = [str(place.run(name) / "input") for name in before if (place.run(name) / "input").is_dir()]
    places = {"directory": str(run), "input": str(run / "input"), "like": like, "incoming": str(place.incoming)}
    return {"jobs": [], "token": token, **places}


def submit(place: Store, request: Mapping[str, Any], program: bytes) -> dict[str, Any]:
    """Submit a run whose input is complete, and return its `jobs`; a submitted run does not change.

    :raises WrongRequest: Slurm refused the run, and it was removed; or it refused the rest of a run of which some jobs
        were submitted before, and these were kept
    :raises NoAnswer: slurmctld did not answer, or another call has begun the run since; the call may be repeated
    """
    run = place.run(request["id"])
    with place.lock():
        ledger = _opened(place, run)
        if not ledger.complete:
            if not ledger.jobs:
                if not _is_latest(run, request):
                    raise NoAnswer(
                        f"another command has begun to submit {run.name} since", "Repeat the command to continue."
                    )
                _prepare(place, run, ledger, request, program)
            _complete(place, run, ledger, request)
        return {"jobs": list(ledger.jobs.values())}


def discard(place: Store, request: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the copied files of a run that has no job; `discarded` is False if they were kept."""
    run = place.run(request["id"])
    with place.lock():
        if run.exists() and not (sweep.is_unsubmitted(run) and _is_latest(run, request)):
            return {"discarded": False}
        place.remove(run)
        return {"discarded": True}


def _is_latest(run: pathlib.Path, request: Mapping[str, Any]) -> bool:
    """Return whether no other call has begun the run since: the input is what the latest call copies."""
    with contextlib.suppress(FileNotFoundError):
        return request.get("token") in (None, (run / store.MARK).read_text())
    return False


def copy_input(place: Store, request: Mapping[str, Any]) -> None:
    """Give a run the same input as another run, with hard links, unless it is already submitted.

    :raises Refusal: not every file could be copied
    """
    run, source = place.run(request["id"]), place.run(request["source"]) / "input"
    with place.lock():
        # A request whose connection was lost goes on beside its repetition, and its jobs read the input.
        if (run / "ledger.json").exists():
            return
        shutil.rmtree(run / "input")
        try:
            shutil.copytree(source, run / "input", symlinks=True, copy_function=os.link)
        except shutil.Error as error:
            raise Refusal(
                f"cannot copy {source}: {error.args[0][0][2]}", "Correct that, then run the command again."
            ) from None


def _prepare(place: Store, run: pathlib.Path, ledger: Ledger, request: Mapping[str, Any], program: bytes) -> None:
    """Write everything that the jobs need; the disk may be full afterwards."""
    _check_image(request.get("container"))
    _check_input(run / "input", request.get("files"))
    space.check(run / "input", request)
    for name in ("log", "done", "started"):
        (run / name).mkdir(exist_ok=True)
    name = library.keep(place.library, program)
    kept = {key: value for key, value in request.items() if key not in ("files", "token")}
    store.write_json(run / "request.json", {**kept, "program": name, "submitted": time.time()})
    parts: list[arrays.Chunk | None] = [None]
    if request.get("tasks"):
        size = int(slurm.parse_config(commands.run(["scontrol", "show", "config"])).get("MaxArraySize", "1001"))
        parts = list(arrays.chunks(arrays.parse(request["tasks"])[0], size))
    # slurmctld keeps its jobs through a power cut, so the files of the run must be on the disk first.
    os.sync()
    ledger.open(parts)


def _check_image(directory: str | None) -> None:
    """Check an image: a Slurm without sandboxes would run the job without it."""
    if directory and not pathlib.Path(directory, "config.json").is_file():
        images = pathlib.Path(directory).parent
        names = sorted(path.parent.name for path in images.glob("*/config.json"))
        raise WrongRequest(f"{directory} is not an image", f"The images in {images} are {', '.join(names) or 'none'}.")


def _check_input(directory: pathlib.Path, files: list[tuple[str, int | None]] | None) -> None:
    """Check that a copy is complete, and remove what an interrupted copy left behind.

    :param files: paths and sizes; the path of a directory that may be empty ends in /
    """
    if files is None:
        return
    expected = dict(files)
    seen = set(manifest.walk(str(directory)))
    for path in seen - set(expected):
        os.unlink(os.path.join(directory, path))
    wanted = {directory / os.path.dirname(path) for path in expected}
    wanted |= {directory, *(parent for path in wanted for parent in path.parents)}
    for place, _, _ in os.walk(directory, topdown=False):
        if pathlib.Path(place) not in wanted:
            os.rmdir(place)
    wrong = [path for path in expected if path not in seen and not path.endswith("/")]
    wrong += [
        path
        for path, size in expected.items()
        if path in seen and size is not None and os.lstat(os.path.join(directory, path)).st_size != size
    ]
    if wrong:
        raise Incomplete(
            f"{len(wrong)} of {len(expected)} files did not arrive or have the wrong size, the first is {wrong[0]!r}",
            "The folder may have changed during the copy. Repeat the command: it copies only what is missing.",
        )


def _opened(place: Store, run: pathlib.Path) -> Ledger:
    """Return the ledger of a run, after removing a run whose withdrawal was interrupted.

    :raises WrongRequest: another directory has its name
    """
    if run.exists() and not sweep.is_run(run):
        raise WrongRequest(f"{run} exists and is not a run", "Choose another name with --id, or move it.")
    if states.withdrawal(run).exists():
        _withdraw(place, run)
    return Ledger(run)


def _complete(place: Store, run: pathlib.Path, ledger: Ledger, request: Mapping[str, Any]) -> None:
    """Submit the remaining jobs; the steps after that must not fail, because the run is then submitted."""
    find_lost(run, ledger)
    before = list(ledger.jobs.values())
    try:
        _submit_chunks(place, run, ledger, request)
    except WrongRequest as error:
        if not before:
            _withdraw(place, run)
            raise
        # These jobs may have results.
        raise WrongRequest(
            f"only {len(ledger.jobs)} of the {len(ledger.parts)} jobs of {run.name} were submitted"
            f" ({', '.join(ledger.jobs.values())}): {error}",
            f"Repeat the command to submit the rest. Without it: stead cancel {run.name}",
        ) from None
    with contextlib.suppress(OSError):
        latest = [run.name, *(store.read_json(place.projects / request["project"]) or [])]
        store.write_json(place.projects / request["project"], list(dict.fromkeys(latest))[:REMEMBERED])
        sweep.sweep(place)


def _submit_chunks(place: Store, run: pathlib.Path, ledger: Ledger, request: Mapping[str, Any]) -> None:
    dependencies = _dependencies(place, request.get("after") or [])
    for chunk, part in enumerate(ledger.parts):
        if chunk in ledger.jobs:
            continue
        program = place.library / (store.read_json(run / "request.json") or {})["program"]
        script = SCRIPT.format(
            program=quoted(program),
            root=quoted(place.root),
            run=quoted(run.name),
            chunk=chunk,
            offset=part.offset if part else "-",
        )
        ledger.trying(chunk)
        previous = ledger.jobs.get(chunk - 1) if request.get("limit") else None
        command = slurm.sbatch(request, run.name, chunk, part, dependencies, previous)
        try:
            said = commands.run(command, stdin=script, seconds=commands.SUBMIT_SECONDS, directory=str(run))
        except NoAnswer:
            # sbatch may have sent its request at any time until now.
            ledger.trying(chunk)
            raise
        job = slurm.job_number(said)
        if job is None:
            raise NoAnswer(f"expected a job number from sbatch, seen {said!r}", "Submit it again.")
        ledger.submitted(chunk, job)


def find_lost(run: pathlib.Path, ledger: Ledger) -> None:
    """Find jobs whose sbatch was interrupted; wait until no such job can appear any more."""
    if not ledger.tried:
        return
    # At most FLIGHT_SECONDS from now: the clock of a board without a battery can have jumped back.
    left = min(max(ledger.tried.values()) - time.time(), 0) + FLIGHT_SECONDS
    deadline = time.monotonic() + left
    while True:
        ledger.find(commands.queue(), run.name)
        if all(chunk in ledger.jobs for chunk in ledger.tried) or time.monotonic() > deadline:
            return
        time.sleep(1)


def _withdraw(place: Store, run: pathlib.Path) -> None:
    """Cancel and remove a run that Slurm refused before any job of it was known to the user.

    :raises NoAnswer: slurmctld does not answer; the next call for this run continues
    """
    with contextlib.suppress(OSError):
        # On a full disk too: no job starts that finds this mark.
        store.write(states.withdrawal(run), b"")
    if jobs := list(Ledger(run).jobs.values()):
        with contextlib.suppress(WrongRequest):
            commands.run(["scancel", *jobs])
    place.remove(run)


def _dependencies(place: Store, after: list[str]) -> list[str]:
    """Return Slurm's names of the jobs and tasks that must succeed first, without those that already did.

    Completed jobs must not be named: soon Slurm does not know them, and then 22.05 ignores them, and 24.11 refuses.

    :raises WrongRequest: a run or one of its tasks failed, or it is only partly submitted
    """
    jobs: list[str] = []
    for name in after:
        run, task = states.find_task(place, name)
        tasks = [one for one in states.look(place, [run])[0]["tasks"] if task in (None, one["task"])]
        if bad := next((one["state"] for one in tasks if states.failed(one)), None):
            seen = f"is {bad}" if len(tasks) == 1 else f"has {bad} tasks"
            raise WrongRequest(
                f"{name} {seen}, so no run can start after its success", "Run it again first: stead rerun."
            )
        active = {one["task"] for one in tasks if one["state"] != "completed"}
        if active:
            ledger = Ledger(place.run(run))
            if not ledger.complete:
                raise WrongRequest(f"{name} was only partly submitted", "First repeat the command that submits it.")
            jobs += ledger.jobs_of(active) if task is None else ledger.slurm_names(task)
    return jobs


def quoted(word: object) -> str:
    """Return a word quoted for sh."""
    return "'" + str(word).replace("'", "'\\''") + "'"
