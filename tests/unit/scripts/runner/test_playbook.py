"""What a run passes on, keeps to itself and leaves behind."""

import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from slurmstead.errors import ExitCode, TaskError
from slurmstead.paths import ROOT
from slurmstead.runner import events, playbook, processes
from slurmstead.runner.outcome import HostSummary

pytestmark = pytest.mark.slow

CANARY = "c4n4ry-5ecret"


def files_that_hold(text: str, *directories: pathlib.Path) -> list[pathlib.Path]:
    files = [path for directory in directories for path in directory.rglob("*") if path.is_file()]
    return [path for path in files if text.encode() in path.read_bytes()]


@pytest.mark.parametrize("outcome", ["true", "false"])
def test_a_secret_of_a_task_with_no_log_appears_nowhere(project, stead, capsys, outcome):
    project.write("secret", CANARY)
    project.playbook(f"""
- name: Handle a secret
  ansible.builtin.command: sh -c 'echo "$SECRET" "$SECRET" >&2; {outcome}'
  environment: {{SECRET: "{{{{ lookup('ansible.builtin.file', '{project.path}/secret') }}}}"}}
  changed_when: true
  no_log: true
- name: Write a secret
  ansible.builtin.copy:
    content: "{{{{ lookup('ansible.builtin.file', '{project.path}/secret') }}}}\\n"
    dest: {project.path}/written
    mode: "0400"
  no_log: true
  diff: false
""")
    code = stead("up", "-i", project.inventory("here"), "--diff", "--plain")
    assert code == (ExitCode.OK if outcome == "true" else ExitCode.TASK_FAILED)
    captured = capsys.readouterr()
    assert CANARY not in captured.out + captured.err
    assert "Handle a secret" in captured.err
    assert ("2 changes on 1 host" in captured.out) == (outcome == "true")
    written = {project.path / "written"} if outcome == "true" else set()
    assert set(files_that_hold(CANARY, project.path)) == {project.path / "secret"} | written


def test_the_callers_environment_is_passed_on_only_where_ansible_needs_it(project, stead, monkeypatch):
    monkeypatch.setenv("CLOUD_TOKEN", CANARY)
    monkeypatch.setenv("STEAD_LAB", "rehearsal")
    project.playbook(f"- ansible.builtin.command: sh -c 'env > {project.path}/environment'")
    assert stead("up", "-i", project.inventory("here"), "--plain") == ExitCode.OK
    passed_on = (project.path / "environment").read_text()
    assert CANARY not in passed_on
    assert "STEAD_LAB=rehearsal" in passed_on
    assert "ANSIBLE_HOST_KEY_CHECKING=True" in passed_on


def test_a_run_leaves_no_file_behind(project, stead):
    project.playbook("- ansible.builtin.debug: {msg: fine}")
    before = set(project.path.rglob("*"))
    stead("up", "-i", project.inventory("here"), "--plain")
    left = set(project.path.rglob("*")) - before - {project.path / "hosts.yml"}
    assert [path for path in left if ".ansible" not in path.parts] == []


@pytest.mark.parametrize(
    ("number", "options"),
    [(signal.SIGINT, ["--plain"]), (signal.SIGTERM, [])],
    ids=["Ctrl-C, plain", "SIGTERM, accelerated"],
)
def test_an_interrupted_run_leaves_no_process(project, stead_process, number, options):
    project.playbook("- {name: Wait, ansible.builtin.command: sleep 987.25, changed_when: false}")
    process = stead_process("up", "-i", project.inventory("here", "other"), *options)
    deadline = time.monotonic() + 60
    below: list[processes.Process] = []
    while not any(_is_the_sleep(one.pid) for one in below):
        assert time.monotonic() < deadline, "the task did not start"
        time.sleep(0.1)
        below = processes.descendants(process.pid)
    process.send_signal(number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert "interrupted" in output
    assert "Traceback" not in output
    assert processes.alive(below) == []
    assert list((project.path / "tmp").glob("stead-*")) == []


class OnTheSecondTask:
    """Does something when the second task of a run begins."""

    def __init__(self, what: Callable[[], None]) -> None:
        self._tasks, self._what = 0, what

    def event(self, event: events.Event) -> None:
        self._tasks += isinstance(event, events.TaskStarted)
        if self._tasks == 2:
            self._tasks += 1
            self._what()

    def tick(self) -> None:
        pass


def test_a_run_whose_ansible_playbook_was_killed_failed(project):
    book = project.playbook("- ansible.builtin.debug: {msg: fine}\n- ansible.builtin.command: sleep 5")

    def kill() -> None:
        (child,) = [one for one in processes.descendants(os.getpid()) if one.parent == os.getpid()]
        os.kill(child.pid, signal.SIGKILL)

    result = playbook.run(book, project.inventory("here"), plain=True, observer=OnTheSecondTask(kill))
    assert isinstance(result.error, TaskError)
    assert "ansible-playbook was killed" in str(result.error)


def test_an_error_of_the_display_leaves_no_process(project):
    book = project.playbook("- ansible.builtin.debug: {msg: fine}\n- ansible.builtin.command: sleep 987.25")
    below: list[processes.Process] = []

    def fail() -> None:
        deadline = time.monotonic() + 60
        while not any(_is_the_sleep(one.pid) for one in below) and time.monotonic() < deadline:
            time.sleep(0.1)
            below[:] = processes.descendants(os.getpid())
        # As rich does if its output is closed.
        raise SystemExit(1)

    with pytest.raises(SystemExit):
        playbook.run(book, project.inventory("here"), plain=True, observer=OnTheSecondTask(fail))
    assert below
    assert processes.alive(below) == []
    assert list((project.path / "tmp").glob("stead-*")) == []


def _is_the_sleep(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep\0987.25")
    except OSError:
        return False


def test_a_module_of_this_repository_runs_under_the_accelerator(project):
    assert playbook.accelerator()["ANSIBLE_STRATEGY"] == "accelerated"
    book = project.playbook(f"""
- name: Remove a machine that never was
  lab_machine: {{state: absent, directory: {project.path}/lab, name: node1}}
""")
    result = playbook.run(book, project.inventory("here"))
    assert result.error is None
    assert result.hosts["here"] == HostSummary(ran=1)
    assert result.results_of("lab_machine")[0]["changed"] is False


def test_a_core_without_foreign_strategies_is_not_accelerated(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.23.1")
    assert playbook.accelerator() == {}


def test_tags_check_and_variables_reach_ansible(project):
    book = project.playbook("""
- name: Write what was asked for
  ansible.builtin.copy: {content: "{{ wanted }}\\n", dest: "{{ playbook_dir }}/made", mode: "0600"}
  tags: [one]
- name: Fail
  ansible.builtin.fail: {}
  tags: [two]
""")
    arguments = {"tags": "one", "extra_vars": {"wanted": "a 'b' \"c\""}, "plain": True}
    seen: list[events.Event] = []
    ticks: list[float] = []

    class Watch:
        def event(self, event: events.Event) -> None:
            seen.append(event)

        def tick(self) -> None:
            ticks.append(time.monotonic())

    inventory = project.inventory("here")
    result = playbook.run(book, inventory, check=True, diff=True, observer=Watch(), **arguments)
    assert result.hosts["here"].changed == ["Write what was asked for"]
    assert not (project.path / "made").exists()
    assert len(ticks) >= result.seconds / playbook.TICK_SECONDS / 2
    assert any(isinstance(event, events.FileChanged) and "a 'b' \"c\"" in event.text for event in seen)
    playbook.run(book, inventory, **arguments)
    assert (project.path / "made").read_text() == "a 'b' \"c\"\n"


def test_environment_keeps_what_ssh_needs_and_can_be_overridden():
    outside = {
        "SSH_AUTH_SOCK": "/run/agent",
        "ANSIBLE_HOST_KEY_CHECKING": "False",
        "ANSIBLE_CONFIG": "/of/another/project.cfg",
        "GITHUB_TOKEN": "x",
        "LC_ALL": "C",
    }
    passed_on = playbook.environment(outside, plain=True)
    assert passed_on == {
        "SSH_AUTH_SOCK": "/run/agent",
        "ANSIBLE_HOST_KEY_CHECKING": "False",
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "plugins" / "callback"),
        "LC_ALL": "C.UTF-8",
    }


def test_processes_below_a_process_are_found_and_a_dead_one_is_not():
    with subprocess.Popen(["sh", "-c", "sleep 30 & wait"]) as shell:
        deadline = time.monotonic() + 10
        while not processes.descendants(shell.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        below = processes.descendants(shell.pid)
        assert [process.parent for process in below] == [shell.pid]
        assert processes.memory_bytes([shell.pid]) > 0
        shell.kill()
        assert processes.alive(below) == below
        processes.end(below, seconds=0)
    deadline = time.monotonic() + 10
    while processes.alive(below) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert processes.alive(below) == []
    assert processes.memory_bytes([below[0].pid]) == 0
