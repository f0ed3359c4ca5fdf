"""ansible-playbook with the cluster lock: it stops before its next task when another run has taken a lock.

Real playbook, watcher and holders; a program named `ssh` runs the holder of a machine on this computer.
"""

from __future__ import annotations

import fcntl
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from ansible.module_utils.slurmstead.reach import cluster_lock

ROOT = pathlib.Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow

SSH = """#!/bin/sh
while [ "$1" != -- ]; do host=$last; last=$1; shift; done
[ ! -e "{net}/off-$last" ] || exit 255
exec sh -c "$(printf %s "$2" | sed 's#/run/slurmstead#{net}/'"$last"'#; s/sudo -n//')"
"""

PLAYBOOK = """
- import_playbook: {root}/playbooks/lock-cluster.yml

- hosts: all
  gather_facts: false
  tasks:
    - debug: {{msg: "first task"}}
    - wait_for: {{path: "{net}/go", timeout: 60}}
      delegate_to: localhost
      run_once: true
    - debug: {{msg: "second task"}}
"""


@pytest.fixture
def net(tmp_path: pathlib.Path) -> pathlib.Path:
    """Three machines, on each of which a lock can be taken."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ssh").write_text(SSH.format(net=tmp_path))
    (tmp_path / "bin" / "ssh").chmod(0o755)
    hosts = "{hosts: {n1: , n2: , n3: }}"
    (tmp_path / "hosts.yml").write_text(f"all: {hosts}\ncontrol: {{hosts: {{n2: }}}}\n")
    (tmp_path / "site.yml").write_text(PLAYBOOK.format(root=ROOT, net=tmp_path))
    return tmp_path


def start(net: pathlib.Path) -> subprocess.Popen[str]:
    """Start the playbook."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    own = {
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_LOCAL_TEMP": str(net / "tmp"),
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",
        "PATH": f"{net}/bin:{os.environ['PATH']}",
        "STEAD_COMMAND": "stead up",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "ansible.cli.playbook", "-i", str(net / "hosts.yml"), str(net / "site.yml")],
        env={**kept, **own},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def until(true: Callable[[], bool], seconds: float = 90) -> None:
    """Wait."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def locked(net: pathlib.Path, name: str) -> bool:
    """Say whether a process has a machine's lock."""
    return cluster_lock.is_held(net / name / "lock")


def leases(net: pathlib.Path) -> Iterator[cluster_lock.Leases]:
    """Yield what the run knows of its leases."""
    for file in net.glob("tmp/*/cluster-lock/leases.json"):
        if found := cluster_lock.read(file):
            yield found


def held(net: pathlib.Path) -> set[str]:
    """Return the machines whose locks the run knows that it has."""
    return {name for found in leases(net) for name, end in found.until.items() if end}


def go(net: pathlib.Path, run: subprocess.Popen[str]) -> str:
    """Let the run go on; return its output."""
    (net / "go").touch()
    return run.communicate(timeout=120)[0]


def test_a_run_that_keeps_its_lock_does_all_tasks_and_then_frees_every_machine(net: pathlib.Path) -> None:
    run = start(net)
    until(lambda: all(locked(net, name) for name in ("n1", "n2", "n3")))

    output = go(net, run)

    assert (run.returncode, output.count("second task")) == (0, 3), output
    until(lambda: not any(locked(net, name) for name in ("n1", "n2", "n3")), 5)


def test_a_second_run_does_nothing_and_names_the_first(net: pathlib.Path) -> None:
    first = start(net)
    until(lambda: all(locked(net, name) for name in ("n1", "n2", "n3")))

    second = start(net)
    output = second.communicate(timeout=120)[0]

    assert second.returncode == 2
    assert "runs `stead up` since 20" in output and "(on n2); nothing was changed" in output, output
    assert "first task" not in output
    assert "second task" in go(net, first)


def test_a_run_that_lost_a_lock_stops_before_its_next_task(net: pathlib.Path) -> None:
    run = start(net)
    # A holder that ended before the run knows of its lock would not have been lost.
    until(lambda: "n1" in held(net))

    # n1 boots again, and another run locks it first.
    with (net / "n1" / "lock").open("r+") as file:
        (net / "off-n1").touch()
        holder = file.readline().split()[1]
        os.kill(int(holder), 9)
        fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.seek(0)
        file.write("run7 1\nbob@desk runs `stead upgrade` since noon\n")
        file.flush()
        (net / "off-n1").unlink()
        # A run that was between two tasks has stopped already, and its leases are gone.
        until(lambda: run.poll() is not None or any("bob@desk" in found.lost for found in leases(net)))
        output = go(net, run)

    assert run.returncode == 4, output
    assert "second task" not in output
    assert "the cluster lock was lost to bob@desk runs `stead upgrade` since noon (on n1)" in output


def test_a_machine_that_was_off_is_locked_before_its_next_task(net: pathlib.Path) -> None:
    (net / "off-n2").touch()
    run = start(net)
    until(lambda: locked(net, "n1") and locked(net, "n3"))
    assert not locked(net, "n2")
    (net / "off-n2").unlink()

    # A machine that did not answer is not tried again for 30 s.
    time.sleep(31)
    output = go(net, run)

    assert (run.returncode, output.count("second task")) == (0, 3), output
    assert (net / "n2" / "lock").exists()


def test_check_mode_needs_no_lock(net: pathlib.Path) -> None:
    text = (net / "site.yml").read_text()
    (net / "site.yml").write_text(text.replace("gather_facts: false", "gather_facts: false\n  check_mode: true"))
    (net / "go").touch()
    run = subprocess.run(
        [sys.executable, "-m", "ansible.cli.playbook", "--check", "-i", str(net / "hosts.yml"), str(net / "site.yml")],
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "PATH": f"{net}/bin:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert run.returncode == 0, run.stdout
    assert not any((net / name).exists() for name in ("n1", "n2", "n3"))
