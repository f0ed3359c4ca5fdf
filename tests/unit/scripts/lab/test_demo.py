"""The steps of the demonstration, with playbooks and machines that only note what they were asked for."""

import io
import os
import pathlib

import pytest
from rich.console import Console

from slurmstead.cluster import smoke
from slurmstead.errors import CheckFailed, TaskError, UsageError
from slurmstead.lab import demo, host
from slurmstead.lab import machines as lab
from slurmstead.paths import LAB_INVENTORY
from slurmstead.runner import playbook
from slurmstead.runner.events import Ended, HostEnded, Status, Task
from slurmstead.runner.outcome import Result

GOOD = smoke.Report((smoke.Check("workers idle", True, "3 idle", "3 idle", ""),))
BAD = smoke.Report((smoke.Check("workers idle", False, "3 idle", "2 idle", "sinfo -R"),))


@pytest.fixture
def stage(project, monkeypatch):
    """Return the console and the notes of playbooks and jobs; what the stage does can be changed by the tests."""
    notes: list[tuple[object, ...]] = []

    def run(path: pathlib.Path, inventory: pathlib.Path, *, extra_vars, plain, observer) -> Result:
        notes.append((path.name, inventory, dict(extra_vars), plain))
        observer.tick()
        result = Result(path.name)
        result.add(HostEnded(Task("1", "Do it"), "node3", Status.CHANGED))
        failed = {"node3": 1} if (project.path / "fail").exists() and path.name == "site.yml" else {}
        result.add(Ended({"node3": 7}, failed, {}))
        return result

    def ssh(directory: pathlib.Path, node: str, command: list[str], user: str | None = None) -> list[str]:
        notes.append((directory.name, node, user, *command))
        return ["sh", "-c", f'echo "output of {command[0]}"; [ ! -e {project.path}/down ]']

    monkeypatch.setattr(host, "ensure_packages", lambda console, arm64: [])
    monkeypatch.setattr(playbook, "run", run)
    monkeypatch.setattr(
        smoke, "run", lambda console, inventory, plain: BAD if (project.path / "bad").exists() else GOOD
    )
    # It starts ansible-inventory, and has a test of its own in test_machines.py.
    monkeypatch.setattr(lab, "needs_arm64", lambda inventory: False)
    monkeypatch.setattr(lab, "pids", lambda directory: {"node3": os.getpid(), "node1": None})
    monkeypatch.setattr(lab, "ssh_command", ssh)
    return Console(file=io.StringIO(), width=120), notes


def test_the_steps_go_from_packages_to_a_job_and_say_how_long_each_took(stage):
    console, notes = stage
    demo.Demo("default", {"lab_release": "trixie"}, plain=False).run(console)
    assert notes == [
        ("create-lab.yml", LAB_INVENTORY, {"lab_release": "trixie"}, True),
        ("site.yml", LAB_INVENTORY, {"lab_release": "trixie"}, False),
        ("default", "node3", "alice", "sinfo"),
        ("default", "node3", "alice", "srun --nodes=3 hostname"),
    ]
    lines = console.file.getvalue().splitlines()
    steps = [line for line in lines if line[:1].isdigit()]
    assert [line.split()[0] for line in steps] == ["1/5", "2/5", "3/5", "4/5", "5/5"]
    ends = [line for line in lines if line.startswith("  done in ")]
    assert len(ends) == 5
    assert all("peak memory " in line and "peak memory 0.00" not in line for line in ends)
    assert "    output of sinfo" in lines
    assert "    output of srun --nodes=3 hostname" in lines


def test_the_end_says_what_to_type_next(stage):
    console, _ = stage
    demo.Demo("mine", {}, plain=True).run(console)
    said = console.file.getvalue()
    assert "scripts/stead lab ssh --name mine --user alice node3" in said
    assert "scripts/stead lab down --name mine" in said
    assert "STEAD_LAB=mine scripts/stead up -i inventory/lab" in said


@pytest.mark.parametrize(
    ("trouble", "error", "text", "last_step"),
    [
        ("fail", TaskError, "site.yml failed on node3", "3/5"),
        ("bad", CheckFailed, "the smoke test failed", "4/5"),
        ("down", CheckFailed, "expected `sinfo` to succeed", "5/5"),
    ],
)
def test_a_step_that_fails_is_the_last(project, stage, trouble, error, text, last_step):
    console, _ = stage
    (project.path / trouble).touch()
    with pytest.raises(error, match=text):
        demo.Demo("default", {}, plain=True).run(console)
    steps = [line for line in console.file.getvalue().splitlines() if line[:1].isdigit()]
    assert steps[-1].startswith(last_step)


@pytest.mark.parametrize(
    ("file", "text"),
    [("node1/image", "exists with bookworm, not trixie"), ("bridge", "consists of containers")],
)
def test_a_lab_of_another_kind_is_not_configured(stage, monkeypatch, tmp_path, file, text):
    console, notes = stage
    monkeypatch.setattr(demo, "lab_directory", lambda name: tmp_path)
    (tmp_path / "node1").mkdir()
    (tmp_path / file).write_text("/images/bookworm-amd64-baked-0123456789ab")
    with pytest.raises(UsageError, match=text):
        demo.Demo("default", {"lab_release": "trixie"}, plain=True).run(console)
    assert notes == []


def test_a_job_does_not_read_the_script_that_runs_the_demo(stage, monkeypatch, tmp_path):
    console, _ = stage
    (tmp_path / "script").write_text("scripts/stead lab down\n")
    monkeypatch.setattr(lab, "ssh_command", lambda *arguments, **options: ["cat"])
    before = os.dup(0)
    script = os.open(tmp_path / "script", os.O_RDONLY)
    os.dup2(script, 0)
    try:
        demo.Demo("default", {}, plain=True).run(console)
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(script)
    assert "    scripts/stead lab down" not in console.file.getvalue().splitlines()


def test_a_job_that_hangs_is_given_up(stage, monkeypatch):
    console, _ = stage
    monkeypatch.setattr(demo, "JOB_SECONDS", 0.1)
    monkeypatch.setattr(lab, "ssh_command", lambda *arguments, **options: ["sleep", "30"])
    with pytest.raises(CheckFailed, match="to end within"):
        demo.Demo("default", {}, plain=True).run(console)
