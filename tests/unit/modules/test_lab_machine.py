"""Machines of the lab: whose process is whose, how long anybody waits, and what is said when it was in vain."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator

import pytest

from ansible.module_utils.slurmstead.lab import machine as lab

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture
def lab_machine(load_module: Callable[[str], types.ModuleType]) -> types.ModuleType:
    return load_module("lab_machine")


@pytest.fixture
def sleeper() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a process that sleeps, with words on its command line; it is ended after the test."""
    started = []

    def start(*words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", *words])
        started.append(process)
        # A parent that waits at once, as init does for the real machines, so that no zombie keeps the number.
        threading.Thread(target=process.wait, daemon=True).start()
        deadline = time.monotonic() + 10
        while (
            not pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes().endswith(b"\0")
            and time.monotonic() < deadline
        ):
            time.sleep(0.01)
        return process

    yield start
    for process in started:
        process.kill()


def script(path: pathlib.Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_a_pid_file_leads_to_the_process_that_was_started_with_it(
    lab_machine: types.ModuleType, tmp_path: pathlib.Path, sleeper: Callable[..., subprocess.Popen[bytes]]
) -> None:
    pid_file = tmp_path / "pid"
    process = sleeper("-pidfile", str(pid_file))
    pid_file.write_text(f"{process.pid}\n")

    assert lab_machine.process_of(pid_file) == process.pid


def test_a_pid_that_somebody_else_has_now_is_nobodys(
    lab_machine: types.ModuleType, tmp_path: pathlib.Path, sleeper: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """After a crash of the host: ending that process would end a stranger's."""
    pid_file = tmp_path / "node1" / "pid"
    pid_file.parent.mkdir()
    pid_file.write_text(str(sleeper("-pidfile", str(tmp_path / "node10" / "pid")).pid))

    assert lab_machine.process_of(pid_file) is None


@pytest.mark.parametrize("content", [None, "", "nonsense", "4194305"], ids=["no file", "empty", "nonsense", "gone"])
def test_a_pid_file_without_a_process_is_no_error(
    lab_machine: types.ModuleType, tmp_path: pathlib.Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "pid").write_text(content)

    assert lab_machine.process_of(tmp_path / "pid") is None


def test_an_ended_process_is_gone_when_the_call_returns(
    lab_machine: types.ModuleType, sleeper: Callable[..., subprocess.Popen[bytes]]
) -> None:
    pid = sleeper().pid

    lab_machine.end_process(pid)

    assert not pathlib.Path(f"/proc/{pid}").exists()
    lab_machine.end_process(pid)


TAKE = "import fcntl, os, sys; fcntl.flock(open(sys.argv[1], 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB); os.abort()"
"""A process that takes a lock and dies with it; if it cannot get it, it exits with 1."""


def test_a_lock_is_held_by_one_and_ends_with_its_holder(lab_machine: types.ModuleType, tmp_path: pathlib.Path) -> None:
    def take() -> int:
        command = [sys.executable, "-c", TAKE, str(tmp_path / "lock")]
        return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode

    assert take() == -signal.SIGABRT
    with lab_machine.locked(tmp_path / "lock"):
        assert take() == 1
    assert take() == -signal.SIGABRT


def test_a_failed_command_speaks_for_itself(lab_machine: types.ModuleType, tmp_path: pathlib.Path) -> None:
    command = script(tmp_path / "qemu-img", "echo 'No space left on device' >&2; exit 1")

    with pytest.raises(lab_machine.MachineError, match=r"qemu-img failed \(1\): No space left on device"):
        lab_machine.run(command)


PROBES = {
    "the kernel starts its first process": ("echo '[ 0.9] Run /init as init process'; exec sleep 60", True),
    "it says so in two pieces": ("printf 'Run /in'; sleep 0.2; echo 'it as init'; exec sleep 60", True),
    "the kernel hangs": ("echo 'Linux version 6.1'; exec sleep 60", False),
    "the guest is far too slow": ("while echo 'x86/fpu'; do sleep 0.1; done", False),
    "QEMU cannot start": ("echo 'failed to initialize kvm' >&2; exit 1", False),
}


def architecture(qemu: str) -> lab.Architecture:
    """A PC with another QEMU."""
    return dataclasses.replace(lab.ARCHITECTURES["amd64"], qemu=qemu)


@pytest.mark.slow
@pytest.mark.parametrize(("body", "expected"), PROBES.values(), ids=PROBES)
def test_kvm_is_used_only_where_it_boots_in_time(
    lab_machine: types.ModuleType, tmp_path: pathlib.Path, body: str, expected: bool
) -> None:
    machine = script(tmp_path / "qemu", f"echo $$ > {tmp_path}/pid\n{body}")
    # One that boots is not waited for; a shell takes a while to begin on a busy computer.
    seconds = 30 if expected else 2
    began = time.monotonic()

    assert lab_machine.kvm_boots("/image", architecture(machine), device="/dev/null", seconds=seconds) is expected

    assert time.monotonic() - began < 20
    assert not pathlib.Path("/proc", (tmp_path / "pid").read_text().strip()).exists(), "the probe is still running"


def test_without_the_device_nothing_is_tried(lab_machine: types.ModuleType, tmp_path: pathlib.Path) -> None:
    machine = script(tmp_path / "qemu", f"touch {tmp_path}/ran; echo Run /init")

    assert lab_machine.kvm_boots("/image", architecture(machine), device=str(tmp_path / "kvm")) is False
    assert not (tmp_path / "ran").exists()


def test_the_accelerator_is_found_out_once_for_each_boot_of_this_computer(
    lab_machine: types.ModuleType, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes = iter([True, False])
    monkeypatch.setattr(lab_machine, "kvm_boots", lambda *_: next(probes))
    pc = lab.ARCHITECTURES["amd64"]
    answers = [lab_machine.accelerator(tmp_path, "/image", pc) for _ in range(2)]
    (tmp_path / f"accelerator-{pc.qemu}").write_text("another-boot kvm\n")

    answers.append(lab_machine.accelerator(tmp_path, "/image", pc))

    assert answers == ["kvm", "kvm", "tcg"]


def test_a_free_port_can_be_listened_on(lab_machine: types.ModuleType) -> None:
    assert 1024 <= lab_machine.free_port() <= 65535


def test_the_end_of_the_console_is_what_was_printed_last(lab_machine: types.ModuleType, tmp_path: pathlib.Path) -> None:
    assert lab_machine.console_tail(tmp_path) == "(nothing)"
    (tmp_path / "console.log").write_bytes(b"".join(b"line %d\r\n" % number for number in range(100)) + b"\xff\r\n")

    lines = lab_machine.console_tail(tmp_path).split("\n")

    assert len(lines) == lab_machine.CONSOLE_LINES
    assert lines[-2:] == ["line 99", "\ufffd"]


def test_a_lab_of_which_only_the_switch_is_left_is_removed(
    lab_machine: types.ModuleType, tmp_path: pathlib.Path, sleeper: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """`lab down` was interrupted after the last machine."""
    directory = tmp_path / "lab"
    directory.mkdir()
    (directory / "switch.lock").touch()
    switch = sleeper("-p", str(directory / "switch.pid"))
    (directory / "switch.pid").write_text(str(switch.pid))
    changes: list[bool] = []
    module = types.SimpleNamespace(check_mode=False, exit_json=lambda changed: changes.append(changed))

    for _ in range(2):
        lab_machine.remove(module, directory, directory / "node1")

    assert changes == [True, False]
    assert not directory.exists()
    assert not pathlib.Path(f"/proc/{switch.pid}").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "lock"), [("machine", "switch.lock"), ("container", "bridge.lock")])
def test_a_lab_that_was_interrupted_when_it_began_is_removed_at_once(
    tmp_path: pathlib.Path, kind: str, lock: str
) -> None:
    """No machine has a disk yet, so each of them looks like the last one."""
    names = [f"node{number}" for number in range(4)]
    for name in names:
        (tmp_path / "lab" / name).mkdir(parents=True)
    given = f"{{lab_kind: {kind}, lab_name: x, lab_directory: {tmp_path}/lab, lab_number: 1, os_address: 10.0.0.1}}"
    groups = {group: {"hosts": dict.fromkeys(names)} for group in ("control", "workers")}
    (tmp_path / "hosts.yml").write_text(f"{json.dumps(groups)[:-1]}, all: {{vars: {given}}}}}")
    settings = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "LC_ALL": "C.UTF-8"}
    command = ["ansible-playbook", "-i", str(tmp_path / "hosts.yml"), str(ROOT / "playbooks/destroy-lab.yml")]

    with (tmp_path / "lab" / lock).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with subprocess.Popen(command, env={**os.environ, **settings}, stdout=subprocess.PIPE, text=True) as run:
            waits = f"-> FLOCK .*:{os.fstat(file.fileno()).st_ino} "
            while run.poll() is None and not re.search(waits, pathlib.Path("/proc/locks").read_text()):
                time.sleep(0.05)
            # Others may come.
            time.sleep(3)
            fcntl.flock(file, fcntl.LOCK_UN)
            said, _ = run.communicate()

    assert run.returncode == 0, said
    assert not (tmp_path / "lab").exists()


@pytest.fixture
def home(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A machine's directory, with an `ssh` that never gets through."""
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin/ssh", "exit 255")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    (tmp_path / "node1").mkdir()
    (tmp_path / "node1/console.log").write_text("Kernel panic - not syncing: VFS\n")
    return tmp_path / "node1"


def test_a_machine_that_ended_while_it_booted_is_not_waited_for(
    lab_machine: types.ModuleType, home: pathlib.Path
) -> None:
    with pytest.raises(lab_machine.MachineError) as said:
        lab_machine.accepts_login(home, "node1", time.monotonic() + 60)

    assert str(said.value) == "node1 ended while it booted; the end of its console:\nKernel panic - not syncing: VFS"


def test_a_machine_that_does_not_answer_is_given_up_with_its_console(
    lab_machine: types.ModuleType, home: pathlib.Path, sleeper: Callable[..., subprocess.Popen[bytes]]
) -> None:
    (home / "pid").write_text(str(sleeper("-pidfile", str(home / "pid")).pid))

    with pytest.raises(lab_machine.MachineError) as said:
        lab_machine.accepts_login(home, "node1", time.monotonic() + 1)

    assert str(said.value).startswith("node1 did not accept a login in time; the end of its console:\nKernel panic")


@pytest.mark.parametrize(
    ("text", "age", "still"),
    [
        ("[0.0] Linux version 6.1\n[5.4] Loading", 100, True),
        ("", 100, True),
        ("[0.0] Linux version 6.1\n[5.4] Loading", 50, False),
        ("[0.0] Linux version 6.1\n[9.1] Run /init as init process\nlogin:", 100, False),
        ("[9.1] Run /init as init process\nlogin:\n[0.0] Linux version 6.1\n[5.4] Loading", 100, True),
    ],
    ids=["in the kernel", "before it", "slow", "in a program", "after a reset"],
)
def test_a_kernel_that_stands_still_is_told_from_a_slow_one(
    lab_machine: types.ModuleType, home: pathlib.Path, text: str, age: int, still: bool
) -> None:
    (home / "console.log").write_text(text)
    printed = time.time() - age
    os.utime(home / "console.log", (printed, printed))

    assert lab_machine.stands_still(home) is still


def test_a_machine_that_stands_still_is_not_waited_for(
    lab_machine: types.ModuleType, home: pathlib.Path, sleeper: Callable[..., subprocess.Popen[bytes]]
) -> None:
    (home / "pid").write_text(str(sleeper("-pidfile", str(home / "pid")).pid))
    os.utime(home / "console.log", (0, 0))

    assert not lab_machine.accepts_login(home, "node1", time.monotonic() + 60)
