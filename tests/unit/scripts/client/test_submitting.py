"""What a repeated command is: the same run, as long as its user may not know how it ended, or a new one."""

import concurrent.futures
import contextlib
import json
import pathlib
import queue
import signal
import socket
from collections.abc import Callable
from typing import Any

import pytest

from slurmstead.client import bundle, known, nearby, pending, submitting, transfer
from slurmstead.client.connection import Connection, refusal
from slurmstead.client.head import Head
from slurmstead.client.records import Job
from slurmstead.client.remote import commands, main
from slurmstead.client.remote.errors import Refusal
from slurmstead.client.remote.store import Store
from slurmstead.client.settings import Settings
from slurmstead.errors import (
    IncompleteCopy,
    Interrupted,
    JobFailed,
    SteadError,
    TaskError,
    UnreachableError,
    UsageError,
)

from .conftest import FakeSlurm

HEAD = Head("alice@node3")
SILENT = submitting.Silent()


class Local:
    """A connection to a head node that is a directory of this computer."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def ask(self, action: str, **request: Any) -> dict[str, Any]:
        """Return the answer of the program for head nodes."""
        asked = json.loads(json.dumps({"action": action, **request}))
        try:
            return json.loads(json.dumps(main.answer(self.store, asked, bundle.program())))
        except Refusal as error:
            raise refusal({"kind": error.kind, "text": str(error), "hint": error.hint}) from None


@pytest.fixture
def submit(
    store: Store, fake_slurm: FakeSlurm, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Job]:
    """Return `stead submit FOLDER`; the folder has a program."""
    folder = tmp_path / "pi"
    folder.mkdir()
    (folder / "main.py").write_text("print(3)")

    def push(_: Connection, source: pathlib.Path, files: list[str], target: str, *__: object) -> None:
        nearby.copy(source, files, pathlib.Path(target), [], lambda _: None)

    monkeypatch.setattr(submitting, "Connection", lambda *_: contextlib.nullcontext(Local(store)))
    monkeypatch.setattr(transfer, "push", push)

    def run(
        done: Callable[..., None] = lambda *_: None,
        head: Head = HEAD,
        identifier: str | None = None,
        observer: submitting.Observer = SILENT,
        folder: pathlib.Path = folder,
    ) -> Job:
        return submitting.submit(head, submitting.order_of(folder, Settings(), None, identifier), observer, done)

    return run


def test_an_empty_directory_of_the_folder_is_in_the_input(
    submit: Callable[..., Job], store: Store, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "pi" / "out").mkdir()
    job = submit()

    assert sorted(path.name for path in (store.run(job.id) / "input").iterdir()) == ["main.py", "out"]


@pytest.mark.parametrize("fault", ["a file vanished", "a file grew"])
def test_one_file_that_changed_during_the_copy_does_not_cost_the_others(
    submit: Callable[..., Job], store: Store, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    copy = transfer.push
    inputs: list[pathlib.Path] = []

    def push(connection: Connection, source: pathlib.Path, files: list[str], target: str, *others: Any) -> None:
        inputs.append(pathlib.Path(target))
        if len(inputs) > 1:
            return copy(connection, source, files, target, *others)
        (inputs[0] / "main.py").write_text("half")
        if fault == "a file vanished":
            raise IncompleteCopy("file has vanished")

    monkeypatch.setattr(transfer, "push", push)
    with pytest.raises(IncompleteCopy):
        submit()
    assert (inputs[0] / "main.py").exists()

    assert submit().jobs == ("1",)
    assert len(set(inputs)) == 1
    assert len(list(store.runs.iterdir())) == 1


@pytest.mark.parametrize("error", [None, TaskError("the disk is full")], ids=["submit", "discard"])
def test_a_run_that_another_call_has_begun_since_is_left_to_it(
    submit: Callable[..., Job], store: Store, monkeypatch: pytest.MonkeyPatch, error: SteadError | None
) -> None:
    copy = transfer.push

    def push(*arguments: Any) -> None:
        copy(*arguments)
        Local(store).ask("begin", id="only", project="p")
        if error:
            raise error

    monkeypatch.setattr(transfer, "push", push)
    with pytest.raises(type(error) if error else UnreachableError):
        submit(identifier="only")

    assert (store.run("only") / "input" / "main.py").exists()
    assert not (store.run("only") / "ledger.json").exists()


def stopped_by(error: Exception) -> Callable[..., None]:
    """Return a `--wait` that ends with an error."""

    def wait(*_: object) -> None:
        raise error

    return wait


def ctrl_c() -> Callable[..., None]:
    return stopped_by(Interrupted(signal.SIGINT))


@pytest.mark.parametrize(
    ("state", "same"), [("PENDING", True), ("RUNNING", True), ("FAILED", False), ("TIMEOUT", False)]
)
def test_after_ctrl_c_a_run_is_the_same_while_it_has_not_ended(
    submit: Callable[..., Job], fake_slurm: FakeSlurm, state: str, same: bool
) -> None:
    with pytest.raises(Interrupted):
        submit(ctrl_c())
    fake_slurm.state = state

    assert submit().jobs == (("1",) if same else ("2",))


def test_what_was_cancelled_is_submitted_again(
    submit: Callable[..., Job], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnreachableError):
        submit(stopped_by(UnreachableError("cut")))
    Local(store).ask("cancel", jobs=["1"])
    monkeypatch.setattr(commands, "queue", list)

    assert submit().jobs == ("2",)


def test_a_run_that_ended_while_the_laptop_slept_is_not_submitted_again(
    submit: Callable[..., Job], fake_slurm: FakeSlurm
) -> None:
    with pytest.raises(UnreachableError):
        submit(stopped_by(UnreachableError("cut")))
    fake_slurm.state = "FAILED"
    again = submit()

    assert (again.jobs, again.again) == (("1",), True)
    assert submit().jobs == ("2",), "now the user knows"


@pytest.mark.parametrize(
    "error", [TaskError("python3 was killed"), UsageError("squeue was refused")], ids=["task", "usage"]
)
def test_a_wait_that_another_error_ends_keeps_the_run(submit: Callable[..., Job], error: SteadError) -> None:
    with pytest.raises(type(error)):
        submit(stopped_by(error))

    assert submit().jobs == ("1",)


def test_a_wait_that_the_jobs_failure_ends_is_over(submit: Callable[..., Job]) -> None:
    with pytest.raises(JobFailed):
        submit(stopped_by(JobFailed("exit code 3")))

    assert submit().jobs == ("2",)


def test_a_laptop_with_another_host_name_is_the_same(
    submit: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnreachableError):
        submit(stopped_by(UnreachableError("cut")))
    monkeypatch.setattr(socket, "gethostname", lambda: "laptop.cafe")

    assert submit().jobs == ("1",)


class Watcher(submitting.Silent):
    """Passes notes on to another thread."""

    def __init__(self) -> None:
        self.notes: queue.Queue[str] = queue.Queue()

    def note(self, text: str) -> None:
        self.notes.put(text)


def test_a_second_call_with_the_same_id_does_not_change_the_input_of_the_first(
    submit: Callable[..., Job], store: Store, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "main.py").write_text("print(4)")
    watcher = Watcher()
    calls: list[concurrent.futures.Future[Job]] = []
    copy = transfer.push

    def push(*arguments: Any) -> None:
        copy(*arguments)
        if calls:
            watcher.note("the second call copies")
            return
        calls.append(pool.submit(submit, identifier="only", observer=watcher, folder=other))
        assert watcher.notes.get(timeout=30) == "waiting for another command that submits only"

    monkeypatch.setattr(transfer, "push", push)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first = submit(identifier="only")
        second = calls[0].result(timeout=30)

    assert [first.jobs, second.jobs, first.again, second.again] == [("1",), ("1",), False, True]
    assert (store.run("only") / "input" / "main.py").read_text() == "print(3)"
    assert not list(pending.directory().glob("*.lock"))


class Impatient(submitting.Silent):
    """Refuses to wait."""

    def note(self, text: str) -> None:
        raise AssertionError(text)


def test_a_call_that_waits_for_the_end_of_a_run_keeps_no_other_back(submit: Callable[..., Job]) -> None:
    again: list[Job] = []
    submit(lambda *_: again.append(submit(identifier="only", observer=Impatient())), identifier="only")

    assert [(job.jobs, job.again) for job in again] == [(("1",), True)]


OTHER = Head("bob@other", "/config", "/runs")


@pytest.fixture
def two_clusters(own_home: pathlib.Path) -> None:
    """Two clusters that have job 734; one of them also has 735."""
    known.remember(HEAD, Job("20261124-pi-1", ("734",), "/"))
    known.remember(OTHER, Job("20261124-pi-2", ("734",), "/"))
    known.remember(OTHER, Job("20261124-pi-3", ("735", "736"), "/"))


@pytest.mark.usefixtures("two_clusters")
@pytest.mark.parametrize(
    ("name", "project", "head"),
    [
        ("735", {}, OTHER),
        ("736_17", {}, OTHER),
        ("20261124-pi-2", {}, OTHER),
        ("20261124-pi-1", {}, HEAD),
        ("1", {}, HEAD),
        ("734", {"head": "alice@node3"}, HEAD),
    ],
)
def test_a_job_is_where_it_was_submitted(
    monkeypatch: pytest.MonkeyPatch, name: str, project: dict[str, str], head: Head
) -> None:
    monkeypatch.setenv("STEAD_HEAD", "alice@node3")

    assert known.choose([name], {}, project) == head


@pytest.mark.usefixtures("two_clusters")
@pytest.mark.parametrize(("name", "project"), [("734", {}), ("735", {"head": "alice@node3"}), ("20261124-pi", {})])
def test_a_job_that_could_be_on_two_clusters_is_on_none(
    monkeypatch: pytest.MonkeyPatch, name: str, project: dict[str, str]
) -> None:
    monkeypatch.setenv("STEAD_HEAD", "alice@node3")

    with pytest.raises(UsageError, match=f"{name} could be on alice@node3 or bob@other"):
        known.choose([name], {}, project)
    assert known.choose([name], {"head": "carol@third"}, project) == Head("carol@third")


@pytest.mark.usefixtures("two_clusters")
@pytest.mark.parametrize("configured", [True, False])
def test_jobs_of_two_clusters_need_a_command_for_each(monkeypatch: pytest.MonkeyPatch, configured: bool) -> None:
    if configured:
        monkeypatch.setenv("STEAD_HEAD", "alice@node3")
    names = ["735", "20261124-pi-1", "999"]

    with pytest.raises(UsageError, match="735 is on bob@other, 20261124-pi-1 is on alice@node3") as refused:
        known.choose(names, {}, {})
    assert refused.value.hint == "Use one command for each."
    assert known.choose(names, {"head": "alice@node3"}, {}) == HEAD
    assert known.choose(["735", "999"], {}, {}) == OTHER


@pytest.mark.usefixtures("two_clusters")
def test_where_no_cluster_is_configured_the_one_that_has_the_job_is_asked() -> None:
    assert known.choose(["735"], {}, {}) == OTHER
    with pytest.raises(UsageError, match="no cluster is configured"):
        known.choose(["1"], {}, {})


@pytest.fixture
def three_places(own_home: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A computer whose configured cluster has runs in three directories, one of them reached by its own ssh_config."""
    monkeypatch.setenv("STEAD_HEAD", "alice@node3")
    for number, place in enumerate((HEAD, SHARED, WORK)):
        known.remember(place, Job(f"r{number}", (str(number),), "/"))
        known.remember(place, Job("nightly", (f"10{number}",), "/"))
    known.remember(WORK, Job("r1-2", ("9",), "/"))


SHARED = Head("alice@node3", "/config", "/share/x")
WORK = Head("alice@node3", None, "/work")


@pytest.mark.usefixtures("three_places")
@pytest.mark.parametrize(
    ("names", "given", "project", "head"),
    [
        (["r0"], {}, {}, HEAD),
        (["r1"], {}, {}, SHARED),
        (["r1"], {"head": "alice@node3"}, {}, SHARED),
        (["r1"], {"ssh_config": "/other"}, {}, Head("alice@node3", "/other", "/share/x")),
        (["r1"], {"directory": "/moved"}, {}, Head("alice@node3", "/config", "/moved")),
        (["r1"], {"head": "bob@other"}, {}, Head("bob@other")),
        (["r1"], {}, {"head": "alice@node3"}, SHARED),
        (["r1", "101"], {}, {"directory": "/share/x"}, SHARED),
        (["nightly"], {}, {"directory": "/work"}, WORK),
        (["r2"], {"directory": "/work"}, {"directory": "/share/x"}, WORK),
        (["r9"], {}, {"directory": "/work"}, WORK),
    ],
)
def test_a_run_is_in_the_directory_in_which_it_was_submitted(
    names: list[str], given: dict[str, str], project: dict[str, str], head: Head
) -> None:
    assert known.choose(names, given, project) == head


@pytest.mark.usefixtures("three_places")
@pytest.mark.parametrize(("name", "project"), [("nightly", {}), ("r0", {"directory": "/share/x"})])
def test_a_run_that_could_be_in_two_directories_is_in_none(name: str, project: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=f"{name} could be in '/share/x' or .*'~/slurmstead'") as caught:
        known.choose([name], {}, project)

    assert caught.value.hint.startswith("Choose one: --directory '/")


@pytest.mark.usefixtures("three_places")
def test_runs_in_two_directories_need_a_command_for_each() -> None:
    with pytest.raises(UsageError, match="r0 is in '~/slurmstead', r2 is in '/work'"):
        known.choose(["r0", "r2"], {}, {})


def test_where_a_run_is_does_not_depend_on_how_this_computer_reaches_it(own_home: pathlib.Path) -> None:
    for number, place in enumerate((HEAD, Head("alice@node3", "/config"))):
        known.remember(place, Job(f"r{number}", (str(number),), "/"))

    assert known.choose(["r0", "r1"], {}, {}).host == "alice@node3"


def test_only_the_newest_runs_are_remembered(monkeypatch: pytest.MonkeyPatch, own_home: pathlib.Path) -> None:
    monkeypatch.setattr(known, "RUNS", 2)
    for number in range(4):
        known.remember(HEAD, Job(f"r{number}", (str(number),), "/"))

    assert len(list((own_home / ".local/state/slurmstead/client/runs").iterdir())) == 2


def test_a_list_with_too_many_items_is_refused_by_our_own_exception(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="1000001 items, but a run can have at most 1000000 tasks"):
        submitting.order_of(tmp_path, Settings(), ["x"] * 1_000_001)
