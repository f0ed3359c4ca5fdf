"""A run becomes a job once, wherever its submission is cut off."""

import contextlib
import errno
import itertools
import os
import pathlib
import shutil
import time
from typing import Any

import pytest

from slurmstead.client import bundle
from slurmstead.client.remote import arrays, commands, main, slurm, states, submission
from slurmstead.client.remote.errors import NoAnswer, Refusal, WrongRequest
from slurmstead.client.remote.ledger import Ledger
from slurmstead.client.remote.store import Store

from .conftest import FakeSlurm

REQUEST: dict[str, Any] = {"id": "r1", "project": "p1", "name": "squares", "entry": "main.py", "tasks": None}


def submit(store: Store, **changes: Any) -> list[str]:
    """Do what a client does."""
    request = {**REQUEST, **changes}
    begun = submission.begin(store, request)
    if begun["jobs"]:
        return list(begun["jobs"])
    pathlib.Path(begun["input"], "main.py").write_text("print(1)")
    return list(submission.submit(store, {**request, "files": [["main.py", 8]]}, bundle.program())["jobs"])


def cut_before_slurm(store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Submit r1 to a slurmctld that is down."""
    monkeypatch.setattr(submission, "FLIGHT_SECONDS", 0)
    fake_slurm.fails = ["down"]
    with pytest.raises(NoAnswer):
        submit(store)


def test_a_run_becomes_a_job(store: Store, fake_slurm: FakeSlurm) -> None:
    assert submit(store) == ["1"]
    assert "--comment=stead:r1:0" in fake_slurm.jobs[0]


@pytest.mark.parametrize(("limit", "waits"), [(None, [[], []]), (2, [[], ["--dependency=afterany:1"]])])
def test_a_limit_of_tasks_at_once_is_one_for_all_jobs_of_the_run(
    store: Store, fake_slurm: FakeSlurm, limit: int | None, waits: list[list[str]]
) -> None:
    fake_slurm.max_array_size = 3

    submit(store, tasks="0-5", limit=limit)

    assert [[word for word in job if word.startswith("--dependency=")] for job in fake_slurm.jobs] == waits


def test_a_repeated_submission_returns_the_job(store: Store, fake_slurm: FakeSlurm) -> None:
    assert [submit(store), submit(store)] == [["1"], ["1"]]
    assert len(fake_slurm.jobs) == 1


@pytest.mark.parametrize("fault", ["answer lost", "killed"])
def test_a_job_whose_number_nobody_learned_is_found_again(store: Store, fake_slurm: FakeSlurm, fault: str) -> None:
    fake_slurm.fails = [fault]
    with pytest.raises((NoAnswer, KeyboardInterrupt)):
        submit(store)

    assert submit(store) == ["1"]
    assert len(fake_slurm.jobs) == 1


def appears_late(store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch, looks: int) -> None:
    """Lose the answer to a submission; the queue shows its job only after that number of looks."""
    fake_slurm.fails = ["answer lost"]
    with pytest.raises(NoAnswer):
        submit(store)
    questions = itertools.count()
    monkeypatch.setattr(commands, "queue", lambda: fake_slurm.queue() if next(questions) >= looks else [])


def test_a_job_that_appears_late_keeps_the_files_it_was_submitted_with(
    store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """slurmctld reads the request of the first sbatch only while the command is repeated."""
    appears_late(store, fake_slurm, monkeypatch, 1)

    assert submission.begin(store, REQUEST)["jobs"] == ["1"]
    assert len(fake_slurm.jobs) == 1


def test_tasks_that_slurm_never_got_are_those_of_the_last_attempt(
    store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who names the run submits fewer tasks when Slurm has no room for more jobs."""
    monkeypatch.setattr(submission, "FLIGHT_SECONDS", 0)
    fake_slurm.fails = ["down"]
    with pytest.raises(NoAnswer):
        submit(store, tasks="0-99")

    assert submit(store, tasks="0-9") == ["1"]
    assert "--array=0-9" in fake_slurm.jobs[0]


def test_a_job_that_slurm_forgot_is_found_by_what_it_began(store: Store, fake_slurm: FakeSlurm) -> None:
    fake_slurm.fails = ["killed"]
    with pytest.raises(KeyboardInterrupt):
        submit(store)
    (store.run("r1") / "started" / "0").symlink_to("1")
    fake_slurm.queue = lambda: []  # type: ignore[method-assign]

    assert submit(store) == ["1"]
    assert len(fake_slurm.jobs) == 1


def test_the_ended_job_of_a_removed_run_is_not_that_of_a_new_run(
    store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For some minutes (MinJobAge), Slurm still lists the job of a run whose directory the user removed."""
    cut_before_slurm(store, fake_slurm, monkeypatch)
    ended = slurm.parse_queue("2026-01-01T00:00:00|7|N/A|COMPLETED|None|node1|stead:r1:0")
    fake_slurm.queue = lambda: ended  # type: ignore[method-assign]

    assert submit(store) == ["1"]


def test_a_job_is_found_again_although_the_ledger_cannot_be_read(store: Store, fake_slurm: FakeSlurm) -> None:
    submit(store)
    path = store.run("r1") / "ledger.json"
    path.write_bytes(path.read_bytes()[:20])

    assert submit(store) == ["1"]
    assert len(fake_slurm.jobs) == 1


def test_a_run_whose_ledger_cannot_be_read_is_neither_cancelled_nor_removed(
    store: Store, fake_slurm: FakeSlurm
) -> None:
    submit(store)
    run = store.run("r1")
    (run / "ledger.json").write_text("")
    with pytest.raises(WrongRequest, match="r1/ledger.json cannot be read"):
        main.answer(store, {"action": "cancel", "jobs": ["r1"]}, b"")
    states.cancellation(run, None).touch()
    (run / "work").mkdir()

    assert submit(store) == ["1"]
    assert (run / "work").exists()
    assert len(fake_slurm.jobs) == 1


def test_a_call_that_never_reached_slurm_is_made_again(
    store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_before_slurm(store, fake_slurm, monkeypatch)

    assert submit(store) == ["1"]


def test_a_clock_that_went_back_is_not_waited_for(
    store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_before_slurm(store, fake_slurm, monkeypatch)
    now = time.time()
    clock = itertools.count(now - 3600)
    monkeypatch.setattr(time, "time", lambda: next(clock))

    assert submit(store) == ["1"]
    assert next(clock) < now - 3500


def test_a_ledger_of_long_lists_can_always_be_written_over(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = store.run("r1")
    (run / "started").mkdir(parents=True)
    ledger = Ledger(run)
    ledger.open(arrays.chunks(tuple(range(0, 20000, 2)), 20000))
    size = (run / "ledger.json").stat().st_size
    for now in (1000.123456, 1000.5):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        ledger.trying(0)

    assert Ledger(run).tried == {0: 1000.5}
    assert (run / "ledger.json").stat().st_size == size, "a full disk has no more"


def test_a_call_that_took_long_can_still_arrive_after_its_end(
    store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(command: list[str], **_: Any) -> str:
        monkeypatch.setattr(time, "time", lambda: 1060.0)
        raise NoAnswer("slurmctld did not answer sbatch within 60 s")

    monkeypatch.setattr(time, "time", lambda: 1000.0)
    monkeypatch.setattr(commands, "run", slow)
    with pytest.raises(NoAnswer):
        submit(store)

    assert Ledger(store.run("r1")).tried == {0: 1060.0}
    assert fake_slurm.jobs == []


def test_what_slurm_refuses_leaves_nothing(store: Store, fake_slurm: FakeSlurm) -> None:
    fake_slurm.fails = ["refused"]
    with pytest.raises(WrongRequest, match="Memory specification"):
        submit(store)

    assert list(store.runs.iterdir()) == []


def test_a_long_array_is_several_jobs_and_all_or_none(store: Store, fake_slurm: FakeSlurm) -> None:
    fake_slurm.max_array_size = 10
    assert submit(store, tasks="0-24") == ["1", "2", "3"]
    fake_slurm.fails = ["", "refused"]
    with pytest.raises(WrongRequest):
        submit(store, id="r2", tasks="0-24")

    assert fake_slurm.cancelled == ["4"]
    assert [path.name for path in store.runs.iterdir()] == ["r1"]


def test_an_array_that_was_cut_in_the_middle_is_completed(store: Store, fake_slurm: FakeSlurm) -> None:
    fake_slurm.max_array_size = 10
    fake_slurm.fails = ["", "killed"]
    with pytest.raises(KeyboardInterrupt):
        submit(store, tasks="0-24")

    assert submit(store, tasks="0-24") == ["1", "2", "3"]
    assert len(fake_slurm.jobs) == 3


@pytest.mark.parametrize("fault", ["killed", "answer lost"])
@pytest.mark.slow  # It waits for an answer that does not come.
def test_jobs_that_a_repeated_submission_found_are_kept_when_slurm_refuses_the_rest(
    store: Store, fake_slurm: FakeSlurm, fault: str
) -> None:
    fake_slurm.max_array_size = 10
    fake_slurm.fails = ["", fault]
    with pytest.raises((NoAnswer, KeyboardInterrupt)):
        submit(store, tasks="0-24")
    result = store.run("r1") / "done" / "3"
    result.write_text("{}")
    fake_slurm.fails = ["refused"]

    with pytest.raises(
        WrongRequest, match=r"only 2 of the 3 jobs of r1 were submitted \(1, 2\): .*Memory spec"
    ) as error:
        submit(store, tasks="0-24")

    assert error.value.hint == "Repeat the command to submit the rest. Without it: stead cancel r1"
    assert result.exists()
    assert fake_slurm.cancelled == []
    assert submit(store, tasks="0-24") == ["1", "2", "3"]


def test_a_withdrawal_that_was_cut_off_is_completed_before_the_next_attempt(
    store: Store, fake_slurm: FakeSlurm
) -> None:
    fake_slurm.max_array_size = 10
    fake_slurm.fails = ["", "refused"]
    fake_slurm.silent = ["scancel"]
    with pytest.raises(NoAnswer):
        submit(store, tasks="0-24")
    assert states.may_not_start(store.run("r1"), None)
    fake_slurm.silent = []

    assert submit(store, tasks="0-24") == ["2", "3", "4"]
    assert fake_slurm.cancelled == ["1"]
    assert [path.name for path in store.runs.iterdir()] == ["r1"]


def test_a_run_that_is_half_removed_is_none_and_goes_with_the_next_submission(
    store: Store, fake_slurm: FakeSlurm
) -> None:
    submit(store)
    store.run("r1").rename(store.runs / ".r1.1a2b3c4d.stead")
    assert states.every(store) == []
    submit(store, id="r2")

    assert [path.name for path in store.runs.iterdir()] == ["r2"]
    assert len(fake_slurm.jobs) == 2


def test_nothing_but_abandoned_runs_and_copies_is_removed(store: Store, fake_slurm: FakeSlurm) -> None:
    """The user's own project can have directories of the same names; `directory` may name it."""
    data = store.root.parent / "data"
    own = [
        "runs/train/weights",
        "runs/case1/input/photo",
        "runs/case1/log/notes",
        "runs/.git/config",
        "runs/.old.20260101/x",
        "runs/a b/input/x",
        "environments/conda",
        "environments/x.build-2026/x",
        "incoming/.index.sqlite",
    ]
    ours = ["runs/r0/.stead", "runs/.r1.1a2b3c4d.stead/input/main.py", ".stead-incoming/.main.py.a1B2c3"]
    for path in (*(store.root / name for name in own + ours), data / "file"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (store.environments / "data").symlink_to(data)
    (store.environments / "x").symlink_to("x.build-2026")
    for run in ("train", "case1", "a b", "r0"):
        os.utime(store.runs / run, (0, 0))
    later = time.time() + 8 * 86400
    with pytest.MonkeyPatch.context() as clock:
        clock.setattr(time, "time", lambda: later)
        submit(store, id="r2")

    assert [name for name in own if not (store.root / name).exists()] == []
    assert (data / "file").exists() and (store.environments / "data").is_symlink()
    assert [name for name in ours if (store.root / name).exists()] == []
    assert len(fake_slurm.jobs) == 1


@pytest.mark.parametrize("sign", ["begun again", "a new file"])
def test_the_input_of_a_copy_that_goes_on_after_a_week_is_kept(store: Store, fake_slurm: FakeSlurm, sign: str) -> None:
    run = pathlib.Path(submission.begin(store, REQUEST)["directory"])
    (run / "input" / "main.py").write_text("print(1)")
    week_ago = time.time() - 8 * 86400
    for path in (run / "input", run):
        os.utime(path, (week_ago, week_ago))

    if sign == "begun again":
        submission.begin(store, REQUEST)
    else:
        (run / "input" / "data").touch()
    submit(store, id="r2")

    assert (run / "input" / "main.py").exists()
    assert len(fake_slurm.jobs) == 1


@pytest.mark.parametrize("beside", ["work", "log", "ledger.json", "withdrawn"])
def test_a_directory_of_the_user_becomes_no_run_and_is_not_discarded(
    store: Store, fake_slurm: FakeSlurm, beside: str
) -> None:
    own = store.runs / "train" / "input" / "photo"
    for path in (own, store.runs / "train" / beside):
        path.mkdir(parents=True)

    with pytest.raises(WrongRequest, match="runs/train exists and is not a run"):
        submit(store, id="train")
    with pytest.raises(WrongRequest, match="runs/train exists and is not a run"):
        submission.submit(store, {**REQUEST, "id": "train", "files": []}, b"")
    assert submission.discard(store, {"id": "train"}) == {"discarded": False}
    assert own.exists()
    assert fake_slurm.jobs == []


def test_an_interrupted_run_of_an_earlier_version_is_completed(
    store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no mark, but what is written before a job is submitted."""
    cut_before_slurm(store, fake_slurm, monkeypatch)
    (store.run("r1") / ".stead").unlink()

    assert submit(store) == ["1"]


def test_a_directory_that_was_cut_off_before_its_mark_becomes_the_run(store: Store, fake_slurm: FakeSlurm) -> None:
    store.run("r1").mkdir(parents=True)

    assert submit(store) == ["1"]
    assert len(fake_slurm.jobs) == 1


def test_a_copy_that_is_not_complete_is_no_job(store: Store, fake_slurm: FakeSlurm) -> None:
    submission.begin(store, REQUEST)
    with pytest.raises(Refusal, match="1 of 1 files did not arrive"):
        submission.submit(store, {**REQUEST, "files": [["main.py", 8]]}, bundle.program())

    assert fake_slurm.jobs == []


def test_what_an_interrupted_copy_left_besides_is_removed(store: Store, fake_slurm: FakeSlurm) -> None:
    begun = submission.begin(store, REQUEST)
    place = pathlib.Path(begun["input"])
    for path in ("a/b/empty/old", "out/1", "out/2", "a/.stead-partial"):
        (place / path).mkdir(parents=True)
    for path in ("a/main.py", "a/.stead-partial/main.py", "old.py", "out/1/log"):
        (place / path).touch()
    (place / "out" / "link").symlink_to("..")
    files = [["a/b/empty/", None], ["a/main.py", 0]]
    submission.submit(store, {**REQUEST, "files": files}, bundle.program())

    left = sorted(str(path.relative_to(place)) for path in place.rglob("*"))
    assert left == ["a", "a/b", "a/b/empty", "a/main.py"]
    assert len(fake_slurm.jobs) == 1


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({"tasks": "0-9"}, False),
        ({"tasks": "3"}, True),
        ({}, True),
        ({"tasks": "0-9", "data": ["main.py"]}, True),
        ({"tasks": "0-9", "data": ["main"]}, False),
    ],
    ids=str,
)
def test_an_array_whose_copies_of_its_input_do_not_fit_is_refused(
    store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], fits: bool
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 50, 50))
    said = "10 tasks need 80 B for copies of their input, but only 50 B are free"
    with contextlib.nullcontext() if fits else pytest.raises(Refusal, match=said) as caught:
        submit(store, **changes)

    assert len(fake_slurm.jobs) == fits
    assert fits or "--data" in caught.value.hint


def test_a_run_that_is_a_job_is_not_discarded(store: Store, fake_slurm: FakeSlurm) -> None:
    submit(store)
    submission.begin(store, {**REQUEST, "id": "r2"})

    assert submission.discard(store, {"id": "r1"}) == {"discarded": False}
    assert submission.discard(store, {"id": "r2"}) == {"discarded": True}
    assert [path.name for path in store.runs.iterdir()] == ["r1"]
    assert len(fake_slurm.jobs) == 1


def test_a_request_of_an_interrupted_call_leaves_the_input_of_its_repetition_alone(
    store: Store, fake_slurm: FakeSlurm
) -> None:
    first, second = (submission.begin(store, REQUEST) for _ in range(2))
    for name in ("main.py", "new.py"):
        pathlib.Path(second["input"], name).write_text("print(1)")
    late = {**REQUEST, "files": [["main.py", 8]], "token": first["token"]}
    with pytest.raises(NoAnswer, match="another command has begun to submit r1"):
        submission.submit(store, late, bundle.program())

    assert submission.discard(store, late) == {"discarded": False}
    assert pathlib.Path(second["input"], "new.py").exists()
    assert fake_slurm.jobs == []
    own = {**late, "files": [["main.py", 8], ["new.py", 8]], "token": second["token"]}
    assert submission.submit(store, own, bundle.program())["jobs"] == ["1"]


def test_a_rerun_that_was_repeated_while_it_copied_submits_nothing(
    store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(store)
    monkeypatch.setattr(submission, "copy_input", lambda *_: submission.begin(store, {**REQUEST, "id": "r2"}))

    with pytest.raises(NoAnswer, match="another command has begun to submit r2"):
        main.answer(store, {"action": "rerun", "id": "r2", "job": "r1"}, bundle.program())
    assert len(fake_slurm.jobs) == 1


def test_a_run_whose_ledger_cannot_be_read_is_not_discarded(store: Store, fake_slurm: FakeSlurm) -> None:
    submit(store)
    (store.run("r1") / "ledger.json").write_text("")

    assert submission.discard(store, {"id": "r1"}) == {"discarded": False}
    assert len(fake_slurm.jobs) == 1


def test_the_input_of_a_rerun_that_is_a_job_stays_as_it_is(store: Store, fake_slurm: FakeSlurm) -> None:
    """As when a connection is lost, and the first request goes on beside the second."""
    submit(store)
    submission.begin(store, {**REQUEST, "id": "r2"})
    submit(store, id="r2")
    file = store.run("r2") / "input" / "main.py"
    before = file.stat().st_ino
    submission.copy_input(store, {"source": "r1", "id": "r2"})

    assert file.stat().st_ino == before
    assert len(fake_slurm.jobs) == 2


def test_an_input_that_cannot_be_copied_is_named(
    store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)

    submit(store)
    monkeypatch.setattr(os, "link", link)

    with pytest.raises(Refusal, match="cannot copy .*r1/input: .*No space left on device: .*r2/input/main.py"):
        main.answer(store, {"action": "rerun", "id": "r2", "job": "r1"}, bundle.program())
    assert len(fake_slurm.jobs) == 1


def test_the_next_run_of_a_folder_is_compared_with_the_latest(store: Store, fake_slurm: FakeSlurm) -> None:
    for name in ("r1", "r2", "r3", "r4"):
        submit(store, id=name)
    begun = submission.begin(store, {**REQUEST, "id": "r5"})

    assert [pathlib.Path(path).parent.name for path in begun["like"]] == ["r4", "r3", "r2"]
    assert len(fake_slurm.jobs) == 4


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "a" * 81, "a b"])
def test_no_run_leaves_the_directory(store: Store, name: str) -> None:
    with pytest.raises(WrongRequest, match="is not a valid run ID"):
        store.run(name)


def test_nothing_follows_a_run_that_failed(store: Store, fake_slurm: FakeSlurm) -> None:
    submit(store)
    fake_slurm.state = "NODE_FAIL"

    with pytest.raises(WrongRequest, match="r1 is failed"):
        submit(store, id="r2", after=["r1"])
    assert len(fake_slurm.jobs) == 1


def test_what_is_to_follow_waits_for_the_jobs_that_have_not_ended(store: Store, fake_slurm: FakeSlurm) -> None:
    """Slurm has forgotten the first one: 24.11 would refuse its number, 22.05 would not look at its end."""
    fake_slurm.max_array_size = 2
    submit(store, tasks="0-5")
    for task in (0, 1, 3):
        (store.run("r1") / "done" / str(task)).write_text('{"state": "completed"}')
    submit(store, id="r2", after=["r1"])
    (store.run("r1") / "done" / "4").write_text('{"state": "failed"}')
    with pytest.raises(WrongRequest, match="r1 has failed tasks, so no run can start after its success"):
        submit(store, id="r3", after=["r1"])

    assert "--dependency=afterok:2:3" in fake_slurm.jobs[3]
    assert len(fake_slurm.jobs) == 4


def test_what_is_to_follow_waits_for_the_task_that_is_named(store: Store, fake_slurm: FakeSlurm) -> None:
    submit(store, tasks="0-3")
    submit(store, id="r2", after=["1_2"])
    with pytest.raises(WrongRequest, match="r1 has no task 1_9"):
        submit(store, id="r3", after=["1_9"])

    assert "--dependency=afterok:1_2" in fake_slurm.jobs[1]
    assert len(fake_slurm.jobs) == 2


def test_nothing_follows_a_run_that_is_no_job_yet(
    store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_before_slurm(store, fake_slurm, monkeypatch)
    with pytest.raises(WrongRequest, match="r1 was only partly submitted"):
        submit(store, id="r2", after=["r1"])

    assert fake_slurm.jobs == []


def test_what_slurm_never_got_is_cancelled_until_it_is_submitted_again(
    store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_before_slurm(store, fake_slurm, monkeypatch)
    cancelled = main.answer(store, {"action": "cancel", "jobs": ["r1"]}, b"")["cancelled"]
    after = [states.look(store, ["r1"])[0]["state"], states.may_not_start(store.run("r1"), None)]

    assert [cancelled, *after] == [["r1"], "cancelled", True]
    assert submit(store) == ["1"]
    assert states.look(store, ["r1"])[0]["state"] == "pending"
    assert not states.may_not_start(store.run("r1"), None)


def test_a_job_that_appears_while_its_run_is_cancelled_is_cancelled(
    store: Store, fake_slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    appears_late(store, fake_slurm, monkeypatch, 3)
    main.answer(store, {"action": "cancel", "jobs": ["r1"]}, b"")

    assert fake_slurm.cancelled == ["1"]
    assert submit(store) == ["1"]
    assert len(fake_slurm.jobs) == 1


def test_what_was_cancelled_in_the_middle_of_its_submission_is_not_completed(
    store: Store, fake_slurm: FakeSlurm
) -> None:
    fake_slurm.max_array_size = 10
    fake_slurm.fails = ["answer lost"]
    with pytest.raises(NoAnswer):
        submit(store, tasks="0-24")
    main.answer(store, {"action": "cancel", "jobs": ["r1"]}, b"")

    assert submit(store, tasks="0-24") == ["1"]
    assert fake_slurm.cancelled == ["1"]


@pytest.mark.parametrize("name", ["r1", "1", "1_3"])
def test_a_run_is_found_by_its_name_and_its_job(store: Store, fake_slurm: FakeSlurm, name: str) -> None:
    submit(store)

    assert states.find(store, name) == "r1"
    assert len(fake_slurm.jobs) == 1


@pytest.mark.parametrize("name", ["2", "2026", "2026_1", "20261121"])
def test_a_number_is_that_of_a_job_and_not_the_beginning_of_a_date(
    store: Store, fake_slurm: FakeSlurm, name: str
) -> None:
    submit(store, id="20261121-110000-pi-1a2b3c")

    with pytest.raises(WrongRequest, match=f"there is no run {name}"):
        states.find(store, name)
    assert len(fake_slurm.jobs) == 1


def test_a_copy_of_a_run_that_its_user_made_hides_no_other_run(store: Store, fake_slurm: FakeSlurm) -> None:
    submit(store)
    shutil.copytree(store.run("r1"), store.runs / "r1 (good)", symlinks=True)

    assert [run["id"] for run in main.answer(store, {"action": "jobs"}, b"")["jobs"]] == ["r1"]
    assert states.find(store, "1") == "r1"
    assert len(fake_slurm.jobs) == 1


def test_what_could_be_several_runs_is_none(store: Store, fake_slurm: FakeSlurm) -> None:
    submit(store, id="squares-1")
    submit(store, id="squares-2")

    with pytest.raises(WrongRequest, match="squares matches several runs: squares-1, squares-2"):
        states.find(store, "squares")
    assert len(fake_slurm.jobs) == 2


@pytest.mark.parametrize("name", ["734", "734_17"])
def test_a_new_run_does_not_have_the_name_of_a_job(store: Store, fake_slurm: FakeSlurm, name: str) -> None:
    with pytest.raises(WrongRequest, match=f"'{name}' could be the number of a job") as refused:
        submit(store, id=name)

    assert refused.value.hint == f"Choose one with a letter, such as --id run-{name}."
    assert submit(store, id=f"run-{name}") == ["1"]


@pytest.mark.parametrize("name", ["734", "734_17"])
def test_a_run_that_has_the_name_of_a_job_is_still_usable(store: Store, fake_slurm: FakeSlurm, name: str) -> None:
    submit(store, id="r1")
    store.run("r1").rename(store.run(name))

    assert submit(store, id=name) == ["1"]
    assert states.find_task(store, name) == (name, None)
    assert len(fake_slurm.jobs) == 1
