"""The checks of the tree: what runs, and what is printed and left."""

import io
import os
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from slurmstead.errors import CheckFailed
from slurmstead.paths import LAB_INVENTORY, ROOT
from slurmstead.runner import processes
from slurmstead.testing import checks, commands, session


def fast_run(monkeypatch, programs):
    monkeypatch.setattr(checks, "local_checks", lambda modules, slow: programs)
    console = Console(file=io.StringIO(), width=100)
    return console, lambda: session.run_fast(console)


def test_a_failed_check_is_named_with_its_output_and_does_not_stop_the_others(monkeypatch):
    programs = {
        "good": [sys.executable, "-c", "print('5 passed in 1.0s')"],
        "bad": [sys.executable, "-c", "print('line 7: [wrong]'); raise SystemExit(3)"],
    }
    console, run = fast_run(monkeypatch, programs)
    with pytest.raises(CheckFailed, match="failed: bad$"):
        run()
    said = console.file.getvalue()
    assert "line 7: [wrong]" in said
    assert said.count("ok      good") == 2
    assert said.count("FAILED  bad") == 2
    assert "good: 5 passed in 1.0s" in said


def test_all_checks_good_is_no_error(monkeypatch):
    console, run = fast_run(monkeypatch, {"good": [sys.executable, "-c", ""]})
    run()
    assert "1 check in" in console.file.getvalue()


def test_what_a_scenario_prints_is_passed_on_and_kept(capsys):
    program = "import os; print(os.environ['ANSIBLE_STRATEGY']); raise SystemExit(1)"
    outcome = commands.aloud("x", [sys.executable, "-c", program], {"ANSIBLE_STRATEGY": "hello"})
    assert capsys.readouterr().out == "hello\n"
    assert (outcome.ok, outcome.output) == (False, "hello\n")


def test_the_checks_are_tools_of_the_lock(tmp_path):
    tools = {command[0] for command in checks.local_checks(tmp_path, slow=False).values()} - {sys.executable}
    lock = (ROOT / "requirements-dev.txt").read_text()
    for tool in tools:
        assert f"\n{tool}==" in lock


def test_an_interrupted_test_run_leaves_no_process(project):
    program = f"""
import sys
from slurmstead.cli import main as cli
from slurmstead.testing import checks

checks.local_checks = lambda modules, slow: {{"slow": ["sh", "-c", "sleep 600 & : > {project.path}/began; wait"]}}
sys.exit(cli.main(["test", "--fast"]))
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
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


def test_the_checks_read_the_syntax_of_every_playbook_and_role(tmp_path):
    command = checks.local_checks(tmp_path, slow=False)["ansible syntax"]
    expected = {ROOT / "site.yml", ROOT / "molecule/default/converge.yml", *(ROOT / "playbooks").glob("*.yml")}
    assert {str(path) for path in expected} < set(command)
    roles = (tmp_path / "roles.yml").read_text()
    assert [role.name for role in (ROOT / "roles").iterdir() if f"name: {role.name}\n" not in roles] == []


# Starts ansible-lint and ansible-playbook.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "check", "words"),
    [
        ("{name: Look, ansible.builtin.command: ls}", "ansible-lint", "no-changed-when"),
        ("{name: Look, ansible.builtin.debug: , no_such_word: 1}", "ansible syntax", "no_such_word"),
        ("{name: Look, no_such_module: }", "ansible syntax", "no_such_module"),
    ],
)
def test_the_checks_find_a_fault(tmp_path, task, check, words):
    playbook = tmp_path / "fault.yml"
    playbook.write_text(f"---\n- name: Try\n  hosts: localhost\n  tasks:\n    - {task}\n")
    command = [word for word in checks.local_checks(tmp_path, slow=False)[check] if not word.endswith(".yml")]
    done = subprocess.run(
        [*command, str(playbook)],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_INVENTORY": str(LAB_INVENTORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert words in done.stdout + done.stderr
