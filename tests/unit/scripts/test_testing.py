"""`stead test`: what it runs, in which order, and what it says at the end."""

import io
import os
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from slurmstead import testing
from slurmstead.errors import CheckFailed
from slurmstead.paths import LAB_INVENTORY
from slurmstead.runner import processes


def test_the_scenario_that_boots_the_lab_comes_first(tmp_path):
    for name in ("reboot", "default", "disks"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "molecule.yml").touch()
    (tmp_path / "shared").mkdir()
    assert testing.scenarios(tmp_path) == ["default", "disks", "reboot"]


def test_a_scenario_with_an_inventory_of_its_own_has_a_lab_of_its_own(tmp_path):
    own = "args:\n  - --inventory=${MOLECULE_PROJECT_DIRECTORY}/inventory/lab-rk1\n"
    for name, text in (("default", ""), ("board", own), ("limit", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "molecule.yml").write_text(text)
    board = testing.ROOT / "inventory" / "lab-rk1"
    assert testing.labs(tmp_path) == {LAB_INVENTORY: ["default", "limit"], board: ["board"]}


def test_a_repository_without_scenarios_is_not_green(tmp_path):
    with pytest.raises(CheckFailed, match="expected"):
        testing.scenarios(tmp_path)


@pytest.mark.parametrize(
    ("line", "closes"),
    [
        ("34 passed in 139.30s (0:02:19)", True),
        ("\x1b[32m==== 3 failed, 24 passed in 66.06s (0:01:06) ====\x1b[0m", True),
        ("1 error in 0.2s", True),
        ("12 passed the gate", False),
        ("TASK [Say 3 passed in 2s]", False),
    ],
)
def test_the_lines_in_which_pytest_sums_up_are_found(line, closes):
    outcome = testing.Outcome("pytest", True, 1.0, f"first\n{line}\nlast\n")
    assert bool(outcome.closing) is closes


def outcomes(monkeypatch, commands):
    monkeypatch.setattr(testing, "local_checks", lambda modules, fast: commands)
    console = Console(file=io.StringIO(), width=100)
    return console, lambda: testing.run(console, fast=True)


def test_a_failed_check_is_named_with_its_output_and_does_not_stop_the_others(monkeypatch):
    commands = {
        "good": [sys.executable, "-c", "print('5 passed in 1.0s')"],
        "bad": [sys.executable, "-c", "print('line 7: [wrong]'); raise SystemExit(3)"],
    }
    console, run = outcomes(monkeypatch, commands)
    with pytest.raises(CheckFailed, match="failed: bad$"):
        run()
    said = console.file.getvalue()
    assert "line 7: [wrong]" in said
    assert said.count("ok      good") == 2
    assert said.count("FAILED  bad") == 2
    assert "good: 5 passed in 1.0s" in said


def test_all_checks_good_is_no_error(monkeypatch):
    console, run = outcomes(monkeypatch, {"good": [sys.executable, "-c", ""]})
    run()
    assert "1 check in" in console.file.getvalue()


def test_what_a_scenario_prints_is_passed_on_and_kept(capsys):
    program = "import os; print(os.environ['ANSIBLE_STRATEGY']); raise SystemExit(1)"
    outcome = testing._stream("molecule x", [sys.executable, "-c", program], {"ANSIBLE_STRATEGY": "hello"})
    assert capsys.readouterr().out == "hello\n"
    assert (outcome.ok, outcome.output) == (False, "hello\n")


def test_the_checks_are_tools_of_the_lock(tmp_path):
    tools = {command[0] for command in testing.local_checks(tmp_path, fast=True).values()} - {sys.executable}
    lock = (testing.ROOT / "requirements-dev.txt").read_text()
    for tool in tools:
        assert f"\n{tool}==" in lock


def test_an_interrupted_test_run_leaves_no_process(project):
    program = f"""
import sys
from rich.console import Console
from slurmstead.cli import main as cli
from slurmstead import testing

testing.local_checks = lambda modules, fast: {{"slow": ["sh", "-c", "sleep 600 & : > {project.path}/began; wait"]}}
sys.exit(cli.main(["test", "--fast"]))
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(testing.ROOT / "scripts")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + 120
        while not (project.path / "began").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        below = processes.descendants(process.pid)
        assert len(below) == 2
        process.terminate()
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
        assert processes.alive(below) == []
