"""What a reader sees of a run, and how ansible-runner's events become it."""

import io
import itertools
import pathlib

import pytest
from rich.console import Console

from slurmstead import wording
from slurmstead.errors import ExitCode
from slurmstead.runner import events, outcome, progress
from slurmstead.runner.events import (
    Ended,
    FileChanged,
    HostEnded,
    HostStarted,
    PlayStarted,
    Said,
    Status,
    Task,
    TaskStarted,
)

WRITE = Task("1", "slurm : configure | Write slurm.conf")
START = Task("2", "slurmd : Start slurmd")
NEXT = Task("3", "slurmd : Resume the worker")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list whose only element is the time; tests change it."""
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def console(terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), width=100, force_terminal=terminal, color_system=None, highlight=False)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def begin(shown: progress.Progress, task: Task, *hosts: str) -> None:
    """Let a task begin on hosts."""
    for event in (TaskStarted(task), *(HostStarted(task, host) for host in hosts)):
        shown.event(event)


def test_each_task_is_one_line_with_hosts_changes_and_time(clock):
    seen = console()
    with progress.Progress(seen, "site.yml") as shown:
        shown.event(PlayStarted("Configure Slurm"))
        begin(shown, WRITE, "node1", "node2", "node3")
        clock[0] += 12.34
        shown.event(HostEnded(WRITE, "node1", Status.OK))
        shown.event(HostEnded(WRITE, "node2", Status.CHANGED))
        shown.event(HostEnded(WRITE, "node3", Status.SKIPPED))
        begin(shown, START, "node1")
        shown.event(HostEnded(START, "node1", Status.SKIPPED))
        shown.event(Ended({}, {}, {}))
    assert text_of(seen) == (
        "  Configure Slurm\n    slurm : configure | Write slurm.conf  2 hosts, 1 changed, 12.3 s\n"
    )


def test_a_failure_is_shown_at_once_with_host_task_and_what_to_do(clock):
    seen = console()
    with progress.Progress(seen, "site.yml") as shown:
        shown.event(PlayStarted("Configure Slurm"))
        begin(shown, START, "node1", "node2")
        shown.event(HostEnded(START, "node2", Status.FAILED, "expected: active\nseen: failed\nhint: see journalctl"))
        assert text_of(seen) == (
            "  Configure Slurm\n"
            "    node2: failed: slurmd : Start slurmd\n"
            "        expected: active\n"
            "        seen: failed\n"
            "        hint: see journalctl\n"
        )


def test_without_a_terminal_a_long_task_says_now_and_then_that_it_still_runs(clock):
    seen = console()
    with progress.Progress(seen, "site.yml") as shown:
        shown.event(PlayStarted("Configure Slurm"))
        begin(shown, START, "node1", "node2", "node4")
        shown.event(HostEnded(START, "node1", Status.OK))
        for _ in range(160):
            clock[0] += 0.5
            shown.tick()
    assert text_of(seen).splitlines()[1:] == [
        "    … slurmd : Start slurmd  1 of 3 hosts after 30.5 s",
        "    … slurmd : Start slurmd  1 of 3 hosts after 1:01 min",
    ]


def test_on_a_terminal_the_task_under_way_is_drawn_with_its_time_and_hosts(clock):
    seen = console(terminal=True)
    with progress.Progress(seen, "3/5 site.yml") as shown:
        shown.event(PlayStarted("Configure Slurm"))
        begin(shown, START, "node1", "node2")
        shown.event(HostEnded(START, "node1", Status.OK))
        clock[0] += 75
        shown.tick()
        drawn = text_of(seen)
    assert "3/5 site.yml › Configure Slurm  1:15 min in all" in drawn
    assert "slurmd : Start slurmd  1 of 2 hosts, 1:15 min" in drawn


def test_hosts_that_run_ahead_keep_their_task_open(clock):
    seen = console()
    with progress.Progress(seen, "site.yml") as shown:
        begin(shown, WRITE, "node1", "node2")
        shown.event(HostEnded(WRITE, "node1", Status.OK))
        begin(shown, START, "node1")
        shown.event(HostEnded(WRITE, "node2", Status.OK))
        shown.event(HostEnded(START, "node1", Status.OK))
        shown.event(Ended({}, {}, {}))
    assert [line.split("  ")[2:] for line in text_of(seen).splitlines() if line.strip()] == [
        [WRITE.name, "2 hosts, 0.0 s"],
        [START.name, "1 host, 0.0 s"],
    ]


def test_what_a_diff_shows_is_printed_with_its_host():
    seen = console()
    progress.Progress(seen, "site.yml").event(FileChanged("node1", "--- before\n+++ after\n-a\n+b\n"))
    assert text_of(seen).splitlines()[-5:] == [
        "    node1:",
        *(f"    {part}" for part in ("--- before", "+++ after", "-a", "+b")),
    ]


def test_the_summary_says_what_changed_where_and_how_many_tasks_ran():
    result = outcome.Result("site.yml", seconds=192.5)
    for event in (
        HostEnded(WRITE, "node1", Status.CHANGED),
        HostEnded(START, "node1", Status.CHANGED),
        HostEnded(START, "node2", Status.FAILED, "no"),
        Ended({"node1": 20, "node2": 7, "node4": 1}, {"node2": 1}, {"node4": 1}),
    ):
        result.add(event)
    seen = console()
    progress.print_summary(seen, result)
    assert [line.rstrip() for line in text_of(seen).splitlines()] == [
        "",
        "host   outcome      tasks  changed  what changed",
        "node1  good         20     2        slurm : configure | Write slurm.conf",
        "                                    slurmd : Start slurmd",
        "node2  failed       8      0",
        "node4  unreachable  1      0",
        "site.yml: 2 changes on 3 hosts in 3:12 min",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59.94, "59.9 s"), (60, "1:00 min"), (754.9, "12:34 min"), (3600, "60:00 min")],
)
def test_durations_read_as_people_write_them(seconds, text):
    assert wording.duration(seconds) == text


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"msg": "no disk"}, "no disk"),
        ({"msg": ["one", "two"]}, "one\ntwo"),
        ({"msg": "bad", "expected": "a", "seen": "b", "hint": "c"}, "bad\nexpected: a\nseen: b\nhint: c"),
        ({"msg": "non-zero return code", "rc": 3, "stderr": "oops\n", "stdout": "x"}, "non-zero return code\noops"),
        ({"msg": "oops", "rc": 3, "stderr": "oops\n"}, "oops"),
        (
            {"msg": "MODULE FAILURE", "module_stderr": "Traceback\nKeyError: 1"},
            "MODULE FAILURE\nTraceback\nKeyError: 1",
        ),
        ({"results": [{"failed": True, "msg": "a"}, {"msg": "fine"}, {"failed": True, "msg": "a"}]}, "a"),
        ({"censored": "…", "msg": "the key is 123"}, events.SECRET),
        ({"results": [{"failed": True, "censored": "…", "msg": "123"}]}, events.SECRET),
        ({}, "no reason given"),
        ({"msg": "x", "invocation": {"module_args": {"a": 1}}, "ansible_facts": {"b": 2}}, "x"),
    ],
)
def test_a_failure_is_explained_in_words_and_not_in_json(result, text):
    assert events.explain(result) == text


def test_the_end_of_a_long_output_is_enough():
    lines = [f"line {number}" for number in range(1000)]
    explained = events.explain({"msg": "failed", "rc": 1, "stdout": "\n".join(lines)}).splitlines()
    assert explained == ["failed", *lines[-events.OUTPUT_LINES :]]


def raw(event: str, stdout: str = "", **data: object) -> dict[str, object]:
    task = {
        "task": "Write it",
        "role": "slurm",
        "task_uuid": "1",
        "task_path": "/r/tasks/a.yml:3",
        "task_action": "copy",
    }
    return {"event": event, "stdout": stdout, "event_data": {**task, **data}}


PARSED = Task("1", "slurm : Write it", "copy", pathlib.PurePath("/r/tasks/a.yml"))


@pytest.mark.parametrize(
    ("given", "event"),
    [
        (raw("playbook_on_play_start", name="Play"), PlayStarted("Play")),
        (raw("playbook_on_task_start", name="slurm : Write it"), TaskStarted(PARSED)),
        (raw("runner_on_start", host="a"), HostStarted(PARSED, "a")),
        (
            raw("runner_on_ok", host="a", res={"changed": False}),
            HostEnded(PARSED, "a", Status.OK, "", {"changed": False}),
        ),
        (
            raw("runner_on_ok", host="a", res={"changed": True}),
            HostEnded(PARSED, "a", Status.CHANGED, "", {"changed": True}),
        ),
        (
            raw("runner_on_ok", stdout="\x1b[0;32mok: [a]\x1b[0m", host="a", res={"censored": "x"}),
            HostEnded(PARSED, "a", Status.OK),
        ),
        (
            raw(
                "runner_on_ok",
                stdout="\r\nTASK [t] **\r\n\x1b[0;33mchanged: [a]\x1b[0m",
                host="a",
                res={"censored": "x"},
            ),
            HostEnded(PARSED, "a", Status.CHANGED),
        ),
        (raw("runner_on_skipped", host="a"), HostEnded(PARSED, "a", Status.SKIPPED)),
        (
            raw("runner_on_failed", host="a", res={"censored": "x"}),
            HostEnded(PARSED, "a", Status.FAILED, events.SECRET),
        ),
        (
            raw("runner_on_failed", host="a", res={"msg": "m"}, ignore_errors=True),
            HostEnded(PARSED, "a", Status.IGNORED, "m", {"msg": "m"}),
        ),
        (
            raw("runner_on_unreachable", host="a", res={"msg": "m"}),
            HostEnded(PARSED, "a", Status.UNREACHABLE, "m", {"msg": "m"}),
        ),
        (
            raw("runner_on_ok", stdout="\x1b[0;33mchanged: [a -> b]\x1b[0m", host="a", res={"changed": True}),
            HostEnded(PARSED, "a", Status.CHANGED, "", {"changed": True}, delegate="b"),
        ),
        (
            raw(
                "runner_on_unreachable", stdout="fatal: [a -> b(10.0.0.2)]: UNREACHABLE! =>", host="a", res={"msg": "m"}
            ),
            HostEnded(PARSED, "a", Status.UNREACHABLE, "m", {"msg": "m"}, delegate="b"),
        ),
        (raw("runner_on_file_diff", stdout="\x1b[0;32m+b\x1b[0m", host="a"), FileChanged("a", "+b")),
        (raw("playbook_on_stats", ok={"a": 1}, failures={}, dark={"b": 1}), Ended({"a": 1}, {}, {"b": 1})),
        (raw("verbose", stdout="\x1b[1;35m[WARNING]: w\x1b[0m"), Said("[WARNING]: w")),
        (raw("playbook_on_start"), None),
        (raw("an event of the future"), None),
    ],
)
def test_an_event_of_ansible_runner_is_understood(given, event):
    assert events.parse(given) == event


@pytest.mark.parametrize(
    ("task", "validates"),
    [
        (Task("1", "t", path=pathlib.PurePath("/p/playbooks/validate-inventory.yml")), True),
        (Task("1", "t", action="ansible.builtin.validate_argument_spec"), True),
        (Task("1", "t", action="ansible.builtin.assert", path=pathlib.PurePath("/p/roles/os/tasks/main.yml")), False),
    ],
)
def test_a_task_that_validates_is_told_from_one_that_works(task, validates):
    assert task.is_validation is validates


@pytest.mark.parametrize(
    ("failed", "unreachable", "returned", "code"),
    [
        (f, u, r, c)
        for (f, u), (r, c) in zip(itertools.product([0, 1], [0, 1]), [(0, 0), (4, 3), (2, 4), (2, 4)], strict=True)
    ],
)
def test_a_failed_task_outweighs_a_host_that_is_off(failed, unreachable, returned, code):
    result = outcome.Result("site.yml", returned=returned)
    result.add(Ended({"a": 1, "b": 1}, {"a": failed} if failed else {}, {"b": 1} if unreachable else {}))
    assert (result.error.code if result.error else ExitCode.OK) == code


@pytest.mark.parametrize(
    ("playbook", "said"),
    [
        ("site.yml", "b could not be reached; the other hosts were completed"),
        ("start-cluster.yml", "b could not be reached"),
    ],
)
def test_others_are_said_to_be_completed_only_by_a_playbook_that_goes_on(playbook, said):
    result = outcome.Result(playbook, returned=4)
    result.add(Ended({"a": 1}, {}, {"b": 1}))
    assert str(result.error) == said


@pytest.mark.parametrize(("before", "code"), [(Status.OK, ExitCode.USAGE), (Status.CHANGED, ExitCode.TASK_FAILED)])
def test_the_inventory_is_refused_only_before_something_was_changed(before, code):
    result = outcome.Result("site.yml", returned=2)
    result.add(HostEnded(START, "a", before))
    result.add(HostEnded(Task("2", "t", action="ansible.builtin.validate_argument_spec"), "a", Status.FAILED, "m"))
    result.add(Ended({"a": 1}, {"a": 1}, {}))
    assert result.error.code == code


def test_a_rescued_failure_is_none():
    result = outcome.Result("site.yml", returned=0)
    result.add(HostEnded(Task("1", "t", path=pathlib.PurePath("validate-inventory.yml")), "a", Status.FAILED, "m"))
    result.add(Ended({"a": 2}, {}, {}))
    assert result.error is None


@pytest.mark.parametrize(("later", "others"), [(NEXT, "; the other hosts were completed"), (START, "")])
def test_others_are_said_to_be_completed_only_where_they_went_on_after_the_loss(later, others):
    result = outcome.Result("site.yml", returned=4)
    result.add(HostEnded(START, "b", Status.UNREACHABLE, "m"))
    result.add(HostEnded(later, "a", Status.OK))
    result.add(Ended({"a": 2, "b": 1}, {}, {"b": 1}))
    assert str(result.error) == f"b could not be reached{others}"
    assert (result.hosts["b"].failed, result.hosts["b"].ran) == (0, 1)


def test_not_the_host_is_blamed_that_handed_its_task_to_a_machine_which_was_gone():
    result = outcome.Result("site.yml", returned=4)
    result.add(HostEnded(START, "a", Status.UNREACHABLE, "m", delegate="b"))
    result.add(HostEnded(NEXT, "c", Status.OK))
    result.add(Ended({"a": 3, "c": 4}, {}, {"a": 1}))
    assert str(result.error) == "b could not be reached"
    assert (result.hosts["a"].failed, result.hosts["a"].unreachable) == (0, False)


SLEPT = Task("9", "Find the workers that sleep", action="power_missed")


@pytest.mark.parametrize(
    ("noted", "off", "said", "hint"),
    [
        (True, ["b"], "b sleeps, so this remains to be done there; the other hosts were completed", "--wake"),
        (True, ["b", "c"], "b, c sleep, so this remains to be done there; the other hosts were completed", "--wake"),
        (False, ["b"], "b sleeps; the other hosts were completed", "stead power on"),
        (
            True,
            ["b", "d"],
            "b, d could not be reached (b sleeping); the other hosts were completed",
            "power and network",
        ),
    ],
)
def test_machines_that_sleep_are_told_from_machines_that_are_off(noted, off, said, hint):
    result = outcome.Result("site.yml", returned=4)
    result.add(HostEnded(SLEPT, "a", Status.CHANGED, result={"asleep": ["b", "c"], "noted": noted}))
    result.add(Ended({"a": 1}, {}, dict.fromkeys(off, 1)))
    assert str(result.error) == said
    assert result.error.code == ExitCode.UNREACHABLE
    assert hint in result.error.hint


def test_a_command_that_cannot_wake_machines_does_not_name_the_option():
    result = outcome.Result("move-share.yml", returned=4)
    result.add(HostEnded(SLEPT, "a", Status.CHANGED, result={"asleep": ["b"], "noted": True}))
    result.add(Ended({"a": 1}, {}, {"b": 1}))
    assert result.error.hint == "No job runs there until then. To do it now, use `scripts/stead power on`."
