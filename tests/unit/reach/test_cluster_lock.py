"""Two runs never work at once, and a run that is dead holds nothing for long.

Real watchers and holders, in processes, with leases of six seconds. A connection is a relay that a test can cut.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible.module_utils.slurmstead.reach import cluster_lock
from ansible.module_utils.slurmstead.reach.cluster_lock import Leases

pytestmark = pytest.mark.slow

UTILITIES = pathlib.Path(cluster_lock.__file__).parents[2]
LEASE, MARGIN = 6.0, 0.5

WATCHER = f"""
import ansible.module_utils
ansible.module_utils.__path__.append({str(UTILITIES)!r})
from ansible.module_utils.slurmstead.reach import cluster_lock, lock_watcher
cluster_lock.LEASE = {LEASE}
lock_watcher.HEARTBEAT, lock_watcher.STALLED, lock_watcher.PAUSE, lock_watcher.ANSWER = 0.5, 2.0, 0.5, 30.0
lock_watcher.main()
"""

RELAY = """
import os, pathlib, select, subprocess, sys
cut, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
if cut.exists():
    sys.stderr.write(cut.read_text())
    sys.exit(255)
holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
ends = {0: holder.stdin.fileno(), holder.stdout.fileno(): 1}
while ends:
    for end in select.select([] if cut.exists() else list(ends), [], [], 0.05)[0]:
        data = os.read(end, 4096)
        if not data:
            sys.exit(0)
        os.write(ends[end], data)
"""
"""A connection: while the file exists nothing passes, and new connections fail as ssh does."""


@dataclasses.dataclass
class Net:
    """Machines with a lock each, and the connections of each user to them."""

    directory: pathlib.Path
    machines: tuple[str, ...] = ("control", "node1", "node2")

    def cut(self, user: str, *names: str, said: str = "") -> None:
        for name in names or self.machines:
            self._file(user, name).write_text(said)

    def join(self, user: str, *names: str) -> None:
        for name in names or self.machines:
            self._file(user, name).unlink(missing_ok=True)

    def _file(self, user: str, name: str) -> pathlib.Path:
        return self.directory / f"cut-{user}-{name}"

    def commands(self, user: str, run: str, text: str) -> list[tuple[str, list[str]]]:
        relay = [sys.executable, "-c", RELAY]
        return [
            (name, [*relay, str(self._file(user, name)), sys.executable, "-c", self.holder(name), run, text])
            for name in self.machines
        ]

    def holder(self, name: str) -> str:
        return cluster_lock.HOLDER.replace("/run/slurmstead", f"{self.directory}/{name}").replace("60.0", str(LEASE))


class Operator:
    """A run with its watcher."""

    def __init__(self, net: Net, user: str) -> None:
        self.net, self.user = net, user
        self.process = subprocess.Popen(["sleep", "600"])
        self.directory = net.directory / f"{user}-{self.process.pid}"
        self.directory.mkdir()
        self.watcher = subprocess.Popen(
            [sys.executable, "-c", WATCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self) -> None:
        """Begin to lock the cluster."""
        run, text = f"run{self.process.pid}", f"{self.user}@computer runs `stead up` since noon"
        machines = self.net.commands(self.user, run, text)
        plan = {"watched": self.process.pid, "directory": str(self.directory), "machines": machines}
        assert self.watcher.stdin
        self.watcher.stdin.write(json.dumps(plan))
        self.watcher.stdin.close()

    def answer(self) -> dict[str, Any]:
        """Return what the watcher says."""
        assert self.watcher.stdout
        said: dict[str, Any] = json.loads(self.watcher.stdout.readline())
        return said

    def locked(self) -> dict[str, Any]:
        """Lock the cluster."""
        self.start()
        return self.answer()

    def leases(self) -> Leases:
        found = cluster_lock.read(self.directory / "leases.json")
        assert found
        return found

    def may_work(self, name: str) -> bool:
        """Say whether it may start a task, as the callback does."""
        leases = self.leases()
        return not leases.lost and cluster_lock.now() < leases.until[name] - MARGIN

    def ask(self) -> None:
        (self.directory / "ask.new").write_text(str(cluster_lock.now()))
        (self.directory / "ask.new").replace(self.directory / "ask")

    def die(self) -> None:
        """The whole computer is gone."""
        self.watcher.kill()
        self.end()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def net(tmp_path: pathlib.Path) -> Net:
    return Net(tmp_path)


@pytest.fixture
def operator(net: Net) -> Iterator[Callable[[str], Operator]]:
    """Make an operator; all are gone after the test."""
    with contextlib.ExitStack() as stack:

        def make(user: str) -> Operator:
            made = Operator(net, user)
            stack.enter_context(made.watcher)
            stack.callback(made.end)
            return made

        yield make


def wait_until(true: Callable[[], bool], seconds: float = 40) -> float:
    """Return how long it took."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() < began + seconds
        time.sleep(0.02)
    return time.monotonic() - began


def test_the_second_learns_who_was_first_with_which_command_and_since_when(operator: Callable[[str], Operator]) -> None:
    assert operator("ann").locked()["held"] == ["control", "node1", "node2"]

    assert operator("bob").locked() == {"refused": "ann@computer runs `stead up` since noon (on control)"}


def test_the_end_of_a_run_frees_all_machines_at_once(operator: Callable[[str], Operator]) -> None:
    ann = operator("ann")
    ann.locked()

    ann.end()

    assert ann.watcher.wait(10) == 0
    assert operator("bob").locked()["held"] == ["control", "node1", "node2"]


def test_another_run_waits_for_the_lock_of_a_dead_computer(operator: Callable[[str], Operator]) -> None:
    ann = operator("ann")
    ann.locked()

    ann.die()
    began = time.monotonic()

    assert operator("bob").locked()["held"] == ["control", "node1", "node2"]
    assert time.monotonic() > began + LEASE / 2, "a run that has not noticed yet could still work"


def test_a_run_that_is_cut_off_stops_before_another_can_begin(operator: Callable[[str], Operator], net: Net) -> None:
    ann = operator("ann")
    ann.locked()

    net.cut("ann")
    while "refused" in operator("bob").locked():
        pass

    assert not any(ann.may_work(name) for name in net.machines)


def test_a_run_that_was_cut_off_learns_who_worked_meanwhile(operator: Callable[[str], Operator], net: Net) -> None:
    ann = operator("ann")
    ann.locked()
    net.cut("ann")
    while "refused" in (bob := operator("bob")).locked():
        pass
    bob.end()
    bob.watcher.wait(20)

    net.join("ann")
    ann.ask()

    wait_until(lambda: bool(ann.leases().lost))
    assert ann.leases().lost.startswith("bob@computer runs `stead up` since noon (on ")


def test_a_run_that_slept_goes_on_if_no_other_worked(operator: Callable[[str], Operator], net: Net) -> None:
    ann = operator("ann")
    ann.locked()

    os.kill(ann.watcher.pid, signal.SIGSTOP)
    time.sleep(LEASE + 1)
    assert not ann.may_work("control"), "its leases are over, whether or not the watcher knows"
    os.kill(ann.watcher.pid, signal.SIGCONT)
    ann.ask()

    wait_until(lambda: all(ann.may_work(name) for name in net.machines))
    assert "refused" in operator("bob").locked()


def test_a_short_cut_is_survived(operator: Callable[[str], Operator], net: Net) -> None:
    ann = operator("ann")
    ann.locked()

    net.cut("ann", "node1")
    time.sleep(LEASE / 2)
    net.join("ann", "node1")

    wait_until(lambda: ann.may_work("node1"))
    assert not ann.leases().lost


def test_a_second_run_is_refused_while_control_is_off_and_after(operator: Callable[[str], Operator], net: Net) -> None:
    net.cut("ann", "control")
    net.cut("bob", "control")
    ann = operator("ann")
    assert ann.locked()["held"] == ["node1", "node2"]
    assert operator("bob").locked() == {"refused": "ann@computer runs `stead up` since noon (on node1)"}

    net.join("ann", "control")
    net.join("bob", "control")

    assert "ann@computer" in operator("bob").locked()["refused"]
    ann.ask()
    wait_until(lambda: ann.may_work("control"))


def test_a_machine_that_comes_back_is_locked_before_its_first_task(
    operator: Callable[[str], Operator], net: Net
) -> None:
    net.cut("ann", "node2")
    ann = operator("ann")
    assert ann.locked()["held"] == ["control", "node1"]
    assert not ann.may_work("node2")

    net.join("ann", "node2")
    ann.ask()

    wait_until(lambda: ann.may_work("node2"))


def test_runs_that_reach_different_machines_stop_when_they_meet(operator: Callable[[str], Operator], net: Net) -> None:
    net.cut("ann", "node2")
    net.cut("bob", "control", "node1")
    ann, bob = operator("ann"), operator("bob")
    assert (ann.locked()["held"], bob.locked()["held"]) == (["control", "node1"], ["node2"])

    net.join("ann", "node2")
    ann.ask()

    wait_until(lambda: bool(ann.leases().lost))
    assert not ann.may_work("control")
    assert bob.may_work("node2")


def test_two_starts_at_the_same_instant_have_one_winner(operator: Callable[[str], Operator], net: Net) -> None:
    for trial in range(10):
        runs = [operator(f"{name}{trial}") for name in ("ann", "bob")]
        for run in runs:
            run.start()
        answers = [run.answer() for run in runs]

        winners = [run for run, answer in zip(runs, answers, strict=True) if "held" in answer]
        assert len(winners) == 1, (trial, answers)
        for run in runs:
            run.end()
            run.watcher.wait(20)


@pytest.mark.parametrize("seed", range(2))
def test_no_machine_is_ever_touched_by_two_runs_whatever_is_cut(net: Net, seed: int) -> None:
    """Operators try again and again, and work on all machines; connections are cut and joined at random."""
    random_numbers = random.Random(seed)
    touched: list[tuple[str, str, float, float]] = []
    over = threading.Event()

    def work(user: str) -> None:
        while not over.is_set():
            run = Operator(net, user)
            if "held" in run.locked():
                until = time.monotonic() + 8
                while time.monotonic() < until and not over.is_set() and not run.leases().lost:
                    run.ask()
                    for name in net.machines:
                        if run.may_work(name):
                            began = time.monotonic()
                            time.sleep(MARGIN / 3)
                            touched.append((name, f"{user}-{run.process.pid}", began, time.monotonic()))
            run.end()
            run.watcher.wait(30)
            assert run.watcher.stdout
            run.watcher.stdout.close()

    threads = [threading.Thread(target=work, args=(user,)) for user in ("ann", "bob")]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 40
    while time.monotonic() < end:
        user, name = random_numbers.choice(("ann", "bob")), random_numbers.choice(net.machines)
        random_numbers.choice((net.cut, net.join))(user, name)
        time.sleep(random_numbers.uniform(0, LEASE / 2))
    net.join("ann")
    net.join("bob")
    over.set()
    for thread in threads:
        thread.join(90)

    assert len({run for _, run, _, _ in touched}) > 2
    for name, run, began, ended in touched:
        for other_name, other, other_began, other_ended in touched:
            together = name == other_name and run != other and began < other_ended and other_began < ended
            assert not together, (name, run, other)


def test_no_other_user_can_read_or_hold_the_lock(operator: Callable[[str], Operator], net: Net) -> None:
    (net.directory / "control").mkdir(mode=0o755)
    (net.directory / "control" / "lock").touch(mode=0o644)

    operator("ann").locked()

    for name in net.machines:
        assert (net.directory / name).stat().st_mode & 0o777 == 0o700
        assert (net.directory / name / "lock").stat().st_mode & 0o777 == 0o600


def test_a_machine_that_answers_and_cannot_be_locked_says_why(operator: Callable[[str], Operator], net: Net) -> None:
    (net.directory / "node1").touch()

    answer = operator("ann").locked()

    assert answer["held"] == ["control", "node2"]
    assert list(answer["failed"]) == ["node1"]
    assert "FileExistsError" in answer["failed"]["node1"]


def test_a_machine_that_refuses_the_login_says_why_and_a_silent_one_does_not(
    operator: Callable[[str], Operator], net: Net
) -> None:
    net.cut("ann", "node1", said="warning\nann@node1: Permission denied (publickey).")
    net.cut("ann", "node2", said="ssh: connect to host node2 port 22: No route to host")

    assert operator("ann").locked()["failed"] == {"node1": "ann@node1: Permission denied (publickey).", "node2": ""}


def test_the_modules_that_wait_see_who_has_the_lock(
    operator: Callable[[str], Operator], net: Net, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_lock, "PATH", net.directory / "control" / "lock")
    assert cluster_lock.holder() == ""
    operator("ann").locked()

    assert cluster_lock.holder() == "ann@computer runs `stead up` since noon"
    assert cluster_lock.successor("bob@computer runs `stead up` since noon").startswith("ann@")
    assert cluster_lock.successor(cluster_lock.holder()) == ""
