"""The health check of a worker: what it decides, what it sees, and the program as slurmd runs it."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import pathlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "roles" / "slurmd" / "files" / "health_check.py"
SPEC = importlib.util.spec_from_file_location("health_check", PROGRAM)
assert SPEC is not None and SPEC.loader is not None
health: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(health)

MEMORY = "memory 512 MiB below the declared 1900 MiB"
OURS = f"slurmstead: {MEMORY}"


def node(state: str, reason: str = "", author: str = "root") -> Any:
    """A node of 4 CPUs and 1900 MiB in a state as scontrol writes it."""
    return health.parse(line(state, reason, author))


def line(state: str, reason: str = "", author: str = "root") -> str:
    """What scontrol prints of such a node."""
    text = f"NodeName=node1 CPUTot=4 RealMemory=1900 State={state} ThreadsPerCore=1"
    return f"{text} Reason={reason} [{author}@2026-11-20T10:00:00]\n" if reason else f"{text}\n"


# What it decides

DRAIN = ("DRAIN", OURS)
RESUME = ("RESUME", "")
OWN_VERDICT = "Low RealMemory (reported:1388 < 100.00% of configured:1900)"


@pytest.mark.parametrize(
    ("state", "reason", "sick", "healthy"),
    [
        # state, reason, what is done about a fault, what is done without one
        ("IDLE", "", DRAIN, None),
        ("MIXED", "", DRAIN, None),
        ("ALLOCATED", "", DRAIN, None),
        ("IDLE+COMPLETING", "", DRAIN, None),
        ("IDLE+PLANNED", "", DRAIN, None),
        ("IDLE", "stale words of a node that is back", DRAIN, None),
        # ours
        ("IDLE+DRAIN", OURS, None, RESUME),
        ("MIXED+DRAIN", OURS, None, RESUME),
        ("ALLOCATED+DRAIN", OURS, None, RESUME),
        ("IDLE+DRAIN", "slurmstead: memory 500 MiB below the declared 1900 MiB", None, RESUME),
        ("IDLE+DRAIN", "slurmstead: share /share is not mounted", DRAIN, RESUME),
        # a person's
        ("IDLE+DRAIN", "fan | see slurmstead: 12", None, None),
        ("ALLOCATED+DRAIN", "fan", None, None),
        ("MIXED+DRAIN", "fan", None, None),
        ("DOWN+DRAIN", "fan", None, None),
        ("DOWN", "fan", None, None),
        ("IDLE+DRAIN", "", None, None),
        ("IDLE+FAIL", "fan", None, None),
        ("ALLOCATED+FAIL", "fan", None, None),
        # not there
        ("DOWN", "", DRAIN, None),
        ("DOWN+NOT_RESPONDING", "Not responding", DRAIN, None),
        ("DOWN*", "Not responding", DRAIN, None),
        ("IDLE+NOT_RESPONDING", "", DRAIN, None),
        ("UNKNOWN+NOT_RESPONDING", "", DRAIN, None),
        ("DOWN*+DRAIN", OURS, None, None),
        ("DOWN+DRAIN+NOT_RESPONDING", OURS, None, None),
        ("IDLE+DRAIN+NOT_RESPONDING", OURS, None, None),
        ("UNKNOWN+DRAIN", OURS, None, None),
        ("DOWN", OURS, DRAIN, None),
        # an operation is in progress
        ("IDLE+DRAIN+REBOOT_REQUESTED", f"{OURS} : Reboot ASAP", None, None),
        ("DOWN+REBOOT_ISSUED", "", None, None),
        ("IDLE+POWERED_DOWN", "", None, None),
        ("IDLE+DRAIN+POWERING_DOWN", OURS, None, None),
        ("FUTURE", "", None, None),
    ],
)
def test_what_is_done_depends_on_the_state_and_on_who_drained(
    state: str, reason: str, sick: tuple[str, str] | None, healthy: tuple[str, str] | None
) -> None:
    assert health.decide(node(state, reason), [MEMORY]) == sick
    assert health.decide(node(state, reason), []) == healthy


def test_the_verdict_of_slurmctld_is_taken_over() -> None:
    drained = node("IDLE+DRAIN+INVALID_REG", OWN_VERDICT, "slurm")
    back = node("IDLE+DRAIN", OWN_VERDICT, "slurm")

    assert health.decide(drained, [MEMORY]) == DRAIN
    # It is drained again at each registration until one is valid.
    assert health.decide(drained, []) is None
    assert health.decide(back, []) == RESUME
    assert health.decide(node("IDLE+DRAIN", OWN_VERDICT, "root"), []) is None


def test_several_causes_are_one_reason() -> None:
    action = health.decide(node("IDLE"), ["clock 12 s off", "share /share is read-only"])

    assert action.reason == "slurmstead: clock 12 s off; share /share is read-only"


def test_a_cause_that_is_added_is_told() -> None:
    action = health.decide(node("IDLE+DRAIN", OURS), [MEMORY, "clock 12 s off"])

    assert action == ("DRAIN", f"{OURS}; clock 12 s off")


def test_a_reason_is_bounded() -> None:
    causes = [f"scratch /{letter * 90} is read-only" for letter in "abcd"]
    action = health.decide(node("IDLE"), causes)

    assert len(action.reason) == health.LONGEST
    assert action.reason.endswith("...")
    assert health.decide(node("IDLE+DRAIN", action.reason), causes) is None


@pytest.mark.parametrize(
    ("cpus", "memory", "causes"),
    [
        (4, 1900, []),
        (8, 4000, []),
        (4, 1388, [MEMORY]),
        (3, 1900, ["CPUs 1 below the declared 4"]),
        (2, 1899, ["memory 1 MiB below the declared 1900 MiB", "CPUs 2 below the declared 4"]),
    ],
)
def test_a_reason_says_how_much_is_missing(cpus: int, memory: int, causes: list[str]) -> None:
    assert health.below_declared(node("IDLE"), cpus, memory) == causes


# What scontrol prints: 22.05.8 of Debian 12 as it was seen, 24.11 as its source puts it together (src/api/node_info.c).

OUTPUTS = {
    "22.05": (
        "NodeName=node1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=2 CPUTot=2 CPULoad=6.51 "
        "AvailableFeatures=(null) ActiveFeatures=(null) Gres=(null) NodeAddr=10.99.0.1 NodeHostName=vm Version=22.05.8"
        " OS=Linux 6.18.44-fc-v669 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=24095 AllocMem=0 FreeMem=16156 Sockets=2"
        " Boards=1 State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=p "
        " BootTime=2026-11-21T02:27:01 SlurmdStartTime=2026-11-21T06:49:16 LastBusyTime=2026-11-21T06:49:16"
        " CfgTRES=cpu=2,mem=24095M,billing=2 AllocTRES= CapWatts=n/a CurrentWatts=0 AveWatts=0 ExtSensorsJoules=n/s"
        " ExtSensorsWatts=0 ExtSensorsTemp=n/s Reason=fan [x] y [root@2026-11-21T06:49:42] "
    ),
    "24.11": (
        "NodeName=node1 Arch=aarch64 CoresPerSocket=2  CPUAlloc=0 CPUEfctv=2 CPUTot=2 CPULoad=0.15 "
        "AvailableFeatures=(null) ActiveFeatures=(null) Gres=(null) NodeAddr=10.77.0.1 NodeHostName=node1"
        " Version=24.11.5 OS=Linux 6.12.41+deb13-arm64 #1 SMP Debian 6.12.41-1 (2025-08-12)  RealMemory=24095"
        " AllocMem=0 FreeMem=1506 Sockets=1 Boards=1 State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A"
        " MCS_label=N/A Partitions=p "
        " BootTime=2026-11-20T09:58:01 SlurmdStartTime=2026-11-20T09:59:12 LastBusyTime=2026-11-20T10:00:40"
        " ResumeAfterTime=None CfgTRES=cpu=2,mem=24095M,billing=2 AllocTRES= CurrentWatts=0 AveWatts=0"
        " Reason=fan [x] y [root@2026-11-20T10:01:02] Comment=State=IDLE [a@b] ReservationName=maintenance"
    ),
}


@pytest.mark.parametrize("version", OUTPUTS)
def test_what_scontrol_prints_is_understood(version: str) -> None:
    assert health.parse(OUTPUTS[version]) == (
        {"IDLE", "DRAIN"},
        2,
        24095,
        "fan [x] y",
        "root",
        {"22.05": "2026-11-21T06:49:42", "24.11": "2026-11-20T10:01:02"}[version],
    )


@pytest.mark.parametrize("version", OUTPUTS)
def test_a_node_without_a_reason_has_none(version: str) -> None:
    seen = health.parse(OUTPUTS[version].partition(" Reason=")[0] + " Comment=State=DOWN [a@b]")

    assert (seen.states, seen.reason, seen.author) == ({"IDLE", "DRAIN"}, "", "")


# What it sees


@pytest.fixture
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A directory with the files that the kernel and Slurm would hold; there is no chrony."""
    files = {
        "MOUNTS": f"systemd-1 {tmp_path}/share autofs rw 0 0\nserver:/s {tmp_path}/share nfs4 rw 0 0\n",
        "MEMORY": "MemTotal:        1945600 kB\nMemFree: 1 kB\n",
        "CPUS": "0-3\n",
        "CONTROLLERS": "cpuset cpu io memory pids\n",
        "CONTROLLERS_V1": "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
        "cpuset\t4\t1\t1\ncpu\t2\t1\t1\nmemory\t6\t1\t1\nfreezer\t7\t1\t1\n",
        "SETTINGS": f"# of the role\nshare_path={tmp_path}/share\nmax_clock_error=10\nmin_free=1024\n",
        "SCRATCH": f"scratch_path={tmp_path}/scratch\nscratch_is_mounted=no\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(health, name, str(tmp_path / name))
    (tmp_path / "slurm.conf").write_text("#X=y/cgroup\nProctrackType=proctrack/cgroup\n")
    monkeypatch.setattr(health, "CONFIGURATIONS", (str(tmp_path / "absent"), str(tmp_path / "slurm.conf")))
    monkeypatch.setattr(health, "SYSTEM", str(tmp_path))
    monkeypatch.setattr(health, "LOCK", f"{tmp_path}/lock-")
    monkeypatch.setattr(health, "DROP_INS", str(tmp_path / "health.d"))
    monkeypatch.setattr(health, "LOOK_SECONDS", 2)
    monkeypatch.setattr(health, "LOCK_SECONDS", 0.2)
    monkeypatch.setenv("SLURMD_NODENAME", "node1")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in ("bin", "share", "scratch", "PROC"):
        (tmp_path / name).mkdir()
    return tmp_path


def drop_in(place: pathlib.Path, name: str, script: str) -> pathlib.Path:
    """Put a drop-in in place; returns its path."""
    path = place / "health.d" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def command(place: pathlib.Path, name: str, script: str) -> None:
    """Put a command of the test in place."""
    path = place / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_memory_is_counted_as_slurmd_does(place: pathlib.Path) -> None:
    assert health.memory() == 1900


@pytest.mark.parametrize(("online", "number"), [("0", 1), ("0-7", 8), ("0,4-7", 5), ("0-1,3,8-9", 5)])
def test_the_cpus_that_are_online_are_counted(place: pathlib.Path, online: str, number: int) -> None:
    (place / "CPUS").write_text(f"{online}\n")

    assert health.cpus() == number


def test_the_node_is_called_as_slurmd_calls_it(place: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert health.settings().node == "node1"
    monkeypatch.delenv("SLURMD_NODENAME")
    assert health.settings().node == os.uname().nodename.partition(".")[0]
    (place / "SETTINGS").write_text("node=n7\n")
    assert health.settings().node == "n7"


def test_the_settings_of_both_roles_are_read(place: pathlib.Path) -> None:
    assert health.settings() == ("node1", f"{place}/share", f"{place}/scratch", False, 10, 1024)


def test_without_settings_no_directory_but_its_own_is_looked_at(place: pathlib.Path) -> None:
    (place / "SETTINGS").unlink()
    (place / "SCRATCH").unlink()

    assert list(health.looks(health.settings())) == ["disk", "clock"]


def v1(place: pathlib.Path) -> None:
    (place / "CONTROLLERS").unlink()


def v1_without_memory(place: pathlib.Path) -> None:
    v1(place)
    table = place / "CONTROLLERS_V1"
    table.write_text(table.read_text().replace("memory\t6\t1\t1", "memory\t0\t1\t0"))


def without_memory(place: pathlib.Path) -> None:
    (place / "CONTROLLERS").write_text("cpuset cpu io pids\n")


def without_cgroups_in_slurm(place: pathlib.Path) -> None:
    without_memory(place)
    (place / "slurm.conf").write_text("#X=y/cgroup\nProctrackType=proctrack/linuxproc\n")


def without_slurm_conf(place: pathlib.Path) -> None:
    without_memory(place)
    (place / "slurm.conf").unlink()


@pytest.mark.parametrize(
    ("change", "causes"),
    [
        (lambda place: None, []),
        (v1, []),
        (without_memory, ["cgroup controller missing: memory"]),
        (v1_without_memory, ["cgroup controller missing: memory"]),
        (without_cgroups_in_slurm, []),
        (without_slurm_conf, []),
    ],
)
def test_the_controllers_that_slurm_needs_are_there(
    place: pathlib.Path, change: Callable[[pathlib.Path], None], causes: list[str]
) -> None:
    change(place)

    assert health.cgroup_causes() == causes


def filesystem(**values: int) -> os.statvfs_result:
    """A file system of 100 GiB, half of it free."""
    names = ("bsize", "frsize", "blocks", "bfree", "bavail", "files", "ffree", "favail", "flag", "namemax")
    blocks = 100 << 18
    given = {"bsize": 4096, "frsize": 4096, "blocks": blocks, "bavail": blocks // 2, "files": 9, "favail": 9}
    return os.statvfs_result([{**given, **values}.get(name, 0) for name in names])


@pytest.mark.parametrize(
    ("seen", "cause"),
    [
        (filesystem(), ""),
        (filesystem(bavail=0), "is full, 0 MiB left"),
        (filesystem(bavail=1023 << 8), "is full, 1023 MiB left"),
        (filesystem(bavail=1024 << 8), ""),
        # 1 % of 1 GiB
        (filesystem(blocks=1 << 18, bavail=10 << 8), "is full, 10 MiB left"),
        (filesystem(blocks=1 << 18, bavail=11 << 8), ""),
        (filesystem(favail=0), "is full, no inode left"),
        # Btrfs counts none.
        (filesystem(files=0, favail=0), ""),
    ],
)
@pytest.mark.parametrize("name", ["share", "scratch"])
def test_a_directory_must_be_writable_and_have_room(
    place: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str, seen: os.statvfs_result, cause: str
) -> None:
    monkeypatch.setattr(health.os, "statvfs", lambda path: seen)
    path = f"{place}/share"

    assert health.storage_cause(name, path, True, 1024) == (f"{name} {path} {cause}" if cause else "")


@pytest.mark.parametrize("mounts", ["", "systemd-1 {} autofs rw 0 0\n", "server:/s {}/a nfs4 rw 0 0\n"])
def test_what_must_be_mounted_is_missing_without_its_file_system(place: pathlib.Path, mounts: str) -> None:
    path = f"{place}/share"
    (place / "MOUNTS").write_text(mounts.format(path))

    assert health.storage_cause("share", path, True, 0) == f"share {path} is not mounted"
    assert health.storage_cause("scratch", path, False, 0) == ""


@pytest.mark.parametrize(("mounted", "cause"), [(True, "is not mounted"), (False, "No such file or directory")])
def test_a_directory_that_is_gone_is_told(place: pathlib.Path, mounted: bool, cause: str) -> None:
    (place / "MOUNTS").write_text("")

    assert health.storage_cause("scratch", f"{place}/gone", mounted, 0).endswith(cause)


TRACKING = "0A4D0003,10.77.0.3,11,1763632800.123456789,{},0.000001,0.00002,1.2,0.0,0.05,0.001,0.002,64.2,{}"


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        (f"echo {TRACKING.format('0.000012345', 'Normal')}", ""),
        (f"echo {TRACKING.format('9.9', 'Normal')}", ""),
        (f"echo {TRACKING.format('12.3', 'Normal')}", "clock 12 s off"),
        (f"echo {TRACKING.format('-3600.0', 'Normal')}", "clock 3600 s off"),
        # A second to be inserted.
        (f"echo {TRACKING.format('-3600.0', 'Insert second')}", "clock 3600 s off"),
        ("echo 00000000,,0,0.0,3600.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised", ""),
        ("echo 506 Cannot talk to daemon; exit 1", ""),
        ("", ""),
    ],
)
def test_the_clock_is_as_good_as_chrony_says(place: pathlib.Path, script: str, cause: str) -> None:
    command(place, "chronyc", script)

    assert health.clock_cause(10) == cause


def test_without_chrony_nothing_is_said_of_the_clock(place: pathlib.Path) -> None:
    assert health.clock_cause(10) == ""


def hang() -> str:
    time.sleep(60)
    return ""


@pytest.fixture
def slow(place: pathlib.Path) -> None:
    """The share did not answer the check before."""
    (place / "lock-share.slow").touch()


@pytest.fixture
def stuck(place: pathlib.Path) -> Iterator[pathlib.Path]:
    """An earlier look at the share still waits for a dead server."""
    with (place / "lock-share.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place


@pytest.mark.usefixtures("slow")
def test_a_directory_that_does_not_answer_is_told_in_time(place: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "LOOK_SECONDS", 0.5)
    monkeypatch.setattr(health.os, "statvfs", lambda path: hang())
    started = time.monotonic()

    assert health.slow_causes(health.settings()) == [
        f"disk {place} does not answer",
        f"share {place}/share does not answer",
        f"scratch {place}/scratch does not answer",
    ]
    assert time.monotonic() - started < 10


@pytest.mark.usefixtures("slow")
def test_a_look_that_fails_gives_no_answer(place: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "MOUNTS").unlink()

    assert health.slow_causes(health.settings()) == [f"share {place}/share does not answer"]


def test_no_second_process_waits_for_a_dead_server(stuck: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forks = []
    monkeypatch.setattr(health.os, "fork", lambda: forks.append("share") or 0)

    assert health.start("share", hang) is None
    assert forks == []


@pytest.mark.usefixtures("slow")
def test_a_dead_server_hides_no_other_fault(stuck: pathlib.Path) -> None:
    (stuck / "scratch").rmdir()

    assert health.slow_causes(health.settings()) == [
        f"share {stuck}/share does not answer",
        f"scratch {stuck}/scratch: No such file or directory",
    ]


def test_looks_leave_no_lock(place: pathlib.Path) -> None:
    assert health.slow_causes(health.settings()) == []
    assert health.slow_causes(health.settings()) == []


# Drop-ins


@pytest.fixture
def impatient(place: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The place, where a drop-in has a second."""
    monkeypatch.setattr(health, "DROP_IN_SECONDS", 1)
    monkeypatch.setattr(health, "DROP_IN_LOOK_SECONDS", 8)
    return place


def alive(pid: str) -> bool:
    """Whether a process runs, and is not one that only waits to be reaped."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: str) -> bool:
    """Whether a process ends within a few seconds."""
    deadline = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not alive(pid)


@pytest.mark.parametrize(
    ("script", "causes"),
    [
        ("exit 0", []),
        ("echo all is well; exit 0", []),
        ("echo GPU 0 is missing; exit 1", ["own: GPU 0 is missing"]),
        ("echo checking; echo GPU 0 is missing >&2; echo; echo ' '; exit 1", ["own: GPU 0 is missing"]),
        ("exit 3", ["own: exited with 3"]),
        ("kill -9 $$", ["own: killed by signal 9"]),
        # Nothing that scontrol, a terminal or a reader of sinfo would mistake.
        (r"""printf '\033[31mfan\t[2]\001 \377is "off"'; exit 1""", ["own: (31mfan (2) \ufffdis 'off'"]),
        ("printf '%0300d' 0; exit 1", [f"own: {'0' * 120}"]),
        # More than a pipe holds, and its last line counts.
        ("seq 100000; echo end; exit 1", ["own: end"]),
        ("exec >&- 2>&-; exit 1", ["own: exited with 1"]),
    ],
)
def test_a_drop_in_fails_with_its_last_line(place: pathlib.Path, script: str, causes: list[str]) -> None:
    drop_in(place, "own", script)

    assert health.slow_causes(health.settings()) == causes


def test_drop_ins_are_told_in_the_order_of_their_names_and_after_the_rest(place: pathlib.Path) -> None:
    (place / "scratch").rmdir()
    for name, script in {"20-b": "sleep 0.5; exit 2", "10-a": "sleep 1; exit 1", "30-c": "exit 3"}.items():
        drop_in(place, name, script)
    # What the role is about to write.
    drop_in(place, ".40-d.x1y2", "exit 4")

    assert health.slow_causes(health.settings()) == [
        f"scratch {place}/scratch: No such file or directory",
        "10-a: exited with 1",
        "20-b: exited with 2",
        "30-c: exited with 3",
    ]


def test_a_drop_in_has_an_almost_empty_environment(place: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "1")
    drop_in(place, "own", f"env > {place}/environment; pwd >> {place}/environment; ls /proc/self/fd >> {place}/fds")

    assert health.slow_causes(health.settings()) == []
    lines = set((place / "environment").read_text().splitlines())
    # PWD is the shell's.
    assert lines - {"PWD=/"} == {"LC_ALL=C.UTF-8", f"PATH={health.PATH}", "SLURMD_NODENAME=node1", "/"}


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda path: path.chmod(0o644), "own: cannot be run: Permission denied"),
        (lambda path: path.write_text("#!/no/such\n"), "own: cannot be run: No such file or directory"),
        (lambda path: path.write_text("text"), "own: cannot be run: Exec format error"),
    ],
)
def test_a_drop_in_that_cannot_be_run_fails(
    place: pathlib.Path, change: Callable[[pathlib.Path], None], cause: str
) -> None:
    change(drop_in(place, "own", "exit 0"))

    assert health.slow_causes(health.settings()) == [cause]


def test_a_drop_in_that_is_removed_meanwhile_is_no_fault(place: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "drop_ins", lambda: ["own"])

    assert health.slow_causes(health.settings()) == []


def test_a_drop_in_that_hangs_is_ended_with_all_that_it_started(impatient: pathlib.Path) -> None:
    drop_in(impatient, "slow", f"sleep 60 & echo $! $$ > {impatient}/pids; wait")
    drop_in(impatient, "talks", "while :; do echo still here; done")
    drop_in(impatient, "works", "exit 0")
    started = time.monotonic()

    assert health.slow_causes(health.settings()) == ["slow: not finished after 1 s", "talks: not finished after 1 s"]
    assert time.monotonic() - started < 7
    assert all(gone(pid) for pid in (impatient / "pids").read_text().split())


def test_a_drop_in_leaves_nothing_running(impatient: pathlib.Path) -> None:
    # It also keeps the output open, and no check may wait for the end of that.
    drop_in(impatient, "own", f"sleep 60 & echo $! > {impatient}/pid; exit 0")

    assert health.slow_causes(health.settings()) == []
    assert gone((impatient / "pid").read_text().strip())


@pytest.mark.slow
def test_a_drop_in_that_cannot_be_ended_runs_once(impatient: pathlib.Path) -> None:
    # In a session of its own it is out of reach, as one for which the kernel waits.
    drop_in(impatient, "own", f"echo >> {impatient}/runs; setsid sleep 60 & echo $! > {impatient}/pid; wait")

    try:
        for _ in range(3):
            assert health.slow_causes(health.settings()) == ["own: not finished after 1 s"]
        assert alive((impatient / "pid").read_text().strip())
        assert (impatient / "runs").read_text() == "\n"
    finally:
        os.kill(int((impatient / "pid").read_text()), signal.SIGKILL)

    assert gone((impatient / "pid").read_text().strip())
    drop_in(impatient, "own", "exit 0")
    assert health.slow_causes(health.settings()) == []


def test_a_drop_in_that_runs_in_another_check_is_waited_for(place: pathlib.Path) -> None:
    drop_in(place, "own", "exit 1")
    with (place / "lock-drop-in-own.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        timer = threading.Timer(1, lambda: fcntl.flock(lock, fcntl.LOCK_UN))
        timer.start()
        assert health.slow_causes(health.settings()) == ["own: exited with 1"]
        timer.join()


def test_all_that_may_wait_is_within_the_deadline() -> None:
    slowest_looks = 4 * health.LOCK_SECONDS + health.LOOK_SECONDS

    # Jobs, node, drain.
    assert max(health.DROP_IN_LOOK_SECONDS, slowest_looks) + 3 * health.SCONTROL_SECONDS < health.DEADLINE
    assert health.DROP_IN_LOOK_SECONDS > 2 * health.DROP_IN_SECONDS


# The program as slurmd runs it


class Worker:
    """A worker with a scontrol that shows a line, and writes down what it is told."""

    def __init__(self, place: pathlib.Path) -> None:
        self.place = place
        self.program = place / "health-check"
        text = PROGRAM.read_text()
        for name in ("MOUNTS", "MEMORY", "CPUS", "CONTROLLERS", "CONTROLLERS_V1", "SETTINGS", "SCRATCH", "PROC"):
            text = self.replace(text, f'\n{name} = "', f'\n{name} = "{place / name}"  # ')
        text = self.replace(text, '\nLOCK = "', f'\nLOCK = "{place}/lock-"  # ')
        text = self.replace(text, '\nREMEMBERED = "', f'\nREMEMBERED = "{place}/remembered"  # ')
        text = self.replace(text, "\nCONFIGURATIONS = (", f'\nCONFIGURATIONS = ("{place}/slurm.conf",)  # ')
        text = self.replace(text, '\nPATH = "', f'\nPATH = "{place}/bin:')
        text = self.replace(text, '\nDROP_INS = "', f'\nDROP_INS = "{place}/health.d"  # ')
        self.program.write_text(text)
        self.program.chmod(0o755)
        command(place, "sinfo", "exit 1")
        forgotten = "echo slurm_load_jobs error: Invalid job id specified; exit 1"
        command(place, "squeue", f"cat {place}/jobs 2>/dev/null || {{ {forgotten}; }}")
        self.shows("IDLE")

    @staticmethod
    def replace(text: str, old: str, new: str) -> str:
        """Replace what must be there once."""
        assert text.count(old) == 1
        return text.replace(old, new)

    def scontrol(self, show: str) -> None:
        """Let `scontrol show` do something."""
        tell = f'for word; do echo "$word"; done > {self.place}/told'
        script = (
            f"case $* in\nupdate*) {tell} ;;\n"
            # Several commands on its input, each with a prompt.
            f'--oneliner) while read -r line; do echo "scontrol: $line"; set -- $line; case $* in\n'
            f"update*) {tell}; [ ! -e {self.place}/after ] || cp {self.place}/after {self.place}/shown ;;\n"
            f"*) cat {self.place}/shown ;; esac; done ;;\n*) {show} ;;\nesac"
        )
        command(self.place, "scontrol", script)

    def shows(self, state: str, reason: str = "", author: str = "root") -> None:
        """Let `scontrol show` show the node in a state."""
        (self.place / "shown").write_text(line(state, reason, author))
        self.scontrol(
            f'case $* in "--oneliner show node node1") cat {self.place}/shown ;;\n'
            # Of the one list with brackets in these tests.
            r'"show hostnames "*) echo "$3" | sed "s/\[1-2\]/1\nnode2/" ;; *) exit 1 ;; esac'
        )

    def check(self, status: int = 0) -> tuple[str, list[str]]:
        """Run the program; returns what it prints and what it told slurmctld."""
        told = self.place / "told"
        told.unlink(missing_ok=True)
        # run_script_health_check of slurmd gives this and nothing else.
        environment = {"SLURMD_NODENAME": "node1"}
        done = subprocess.run(
            [str(self.program)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == status, done.stdout
        return done.stdout, told.read_text().splitlines() if told.exists() else []


@pytest.fixture
def worker(place: pathlib.Path) -> Worker:
    """A worker on which nothing is wrong; the other end of a real shell and of real commands."""
    return Worker(place)


def test_a_healthy_worker_is_left_alone_in_silence(worker: Worker) -> None:
    assert worker.check() == ("", [])


def test_only_this_node_is_fetched_from_slurmctld(worker: Worker) -> None:
    command(worker.place, "sinfo", "echo 4 1900 idle+drain root 2026-11-20T09:00:00 slurmstead: a [b] c")
    worker.scontrol(f"echo show >{worker.place}/told; exit 1")

    assert worker.check()[1] == ["update", "NodeName=node1", "State=RESUME"]


@pytest.mark.parametrize("said", ["", "sinfo: error: Invalid field requested: StateComplete"])
def test_where_sinfo_does_not_show_the_node_scontrol_does(worker: Worker, said: str) -> None:
    command(worker.place, "sinfo", f"echo '{said}'")
    (worker.place / "CPUS").write_text("0-2\n")

    assert worker.check()[1][2:] == ["State=DRAIN", "Reason=slurmstead: CPUs 1 below the declared 4"]


def test_a_share_that_is_slow_once_drains_no_worker(worker: Worker) -> None:
    place, good = worker.place, worker.program.read_text()
    slow = worker.replace(good, "\nLOCK_SECONDS = ", "\nLOCK_SECONDS = 0.2  # ")
    with (place / "lock-share.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        worker.program.write_text(slow)
        said, told = worker.check()
        assert (f"share {place}/share is slow" in said, told) == (True, [])
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert worker.check() == ("", [])
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert worker.check()[1] == []
        assert worker.check()[1][-1] == f"Reason=slurmstead: share {place}/share does not answer"


def test_a_worker_with_less_memory_is_drained_and_comes_back(worker: Worker) -> None:
    memory = worker.place / "MEMORY"
    good = memory.read_text()
    memory.write_text("MemTotal:        1421312 kB\n")

    said, told = worker.check()
    assert told == ["update", "NodeName=node1", "State=DRAIN", f"Reason={OURS}"]
    assert MEMORY in said

    worker.shows("IDLE+DRAIN", OURS)
    assert worker.check() == ("", [])

    memory.write_text(good)
    said, told = worker.check()
    assert told == ["update", "NodeName=node1", "State=RESUME"]
    assert MEMORY in said
    assert not (worker.place / "remembered").exists()


def test_a_worker_whose_drop_in_fails_is_drained_and_comes_back(worker: Worker) -> None:
    drop_in(worker.place, "fan", "echo fan 2 is off; exit 1")

    said, told = worker.check()
    assert told == ["update", "NodeName=node1", "State=DRAIN", "Reason=slurmstead: fan: fan 2 is off"]

    worker.shows("IDLE+DRAIN", "slurmstead: fan: fan 2 is off")
    assert worker.check() == ("", [])

    drop_in(worker.place, "fan", "exit 0")
    said, told = worker.check()
    assert told == ["update", "NodeName=node1", "State=RESUME"]
    assert said == "resumed node1, which was drained for: fan: fan 2 is off\n"


@pytest.mark.parametrize("memory", [1421312, 1945600])
def test_a_drain_of_a_person_stays(worker: Worker, memory: int) -> None:
    (worker.place / "MEMORY").write_text(f"MemTotal: {memory} kB\n")
    worker.shows("IDLE+DRAIN", "fan")

    assert worker.check() == ("", [])


def test_all_that_is_wrong_is_told(worker: Worker) -> None:
    (worker.place / "CPUS").write_text("0-2\n")
    (worker.place / "CONTROLLERS").write_text("cpu cpuset\n")
    (worker.place / "MOUNTS").write_text("")
    (worker.place / "scratch").rmdir()
    command(worker.place, "chronyc", f"echo {TRACKING.format('-20.1', 'Normal')}")

    text = worker.replace(worker.program.read_text(), "\nLONGEST = ", "\nLONGEST = 9999  # ")
    worker.program.write_text(text)

    _, told = worker.check()

    reason = told[-1].removeprefix("Reason=slurmstead: ")
    assert reason.split("; ") == [
        "CPUs 1 below the declared 4",
        "cgroup controller missing: memory",
        f"share {worker.place}/share is not mounted",
        f"scratch {worker.place}/scratch: No such file or directory",
        "clock 20 s off",
    ]


@pytest.mark.parametrize(
    "show",
    [
        "echo 'slurm_load_node: Unable to contact slurm controller (connect failure)' >&2; exit 1",
        "echo 'Node node1 not found'",
        "exit 0",
    ],
)
def test_a_controller_that_does_not_answer_is_no_failure(worker: Worker, show: str) -> None:
    (worker.place / "CPUS").write_text("0\n")
    worker.scontrol(show)

    said, told = worker.check()

    assert said.startswith("slurmctld says nothing of node1: ")
    assert told == []


def test_a_controller_that_hangs_is_no_failure(worker: Worker) -> None:
    text = worker.replace(worker.program.read_text(), "\nSCONTROL_SECONDS = ", "\nSCONTROL_SECONDS = 0.5  # ")
    worker.program.write_text(text)
    worker.scontrol("exec sleep 60")

    said, told = worker.check()

    assert "no answer" in said
    assert told == []


def test_a_drain_that_slurmctld_refuses_fails_the_check(worker: Worker) -> None:
    (worker.place / "CPUS").write_text("0\n")
    command(
        worker.place, "scontrol", f"case $* in update*) echo refused; exit 1 ;; *) cat {worker.place}/shown ;; esac"
    )

    said, _ = worker.check(status=1)

    assert "failed: refused" in said


def test_the_check_ends_at_its_deadline(worker: Worker) -> None:
    text = worker.replace(worker.program.read_text(), "\nDEADLINE = ", "\nDEADLINE = 1  # ")
    worker.program.write_text(text)
    worker.scontrol("exec sleep 60")

    said, _ = worker.check(status=1)

    assert said == "not finished after 1 s\n"


def test_slurmd_does_not_wait_for_a_stuck_look(worker: Worker) -> None:
    text = worker.replace(worker.program.read_text(), "\nLOOK_SECONDS = ", "\nLOOK_SECONDS = 0.5  # ")
    hanging = "        time.sleep(20)\n        seen = os.statvfs("
    worker.program.write_text(worker.replace(text, "        seen = os.statvfs(", hanging))
    # As a process that even SIGKILL does not end.
    worker.program.write_text(
        worker.replace(worker.program.read_text(), "    os.killpg(look.pid, ", "    max(look.pid, ")
    )
    (worker.place / "lock-share.slow").touch()
    started = time.monotonic()

    _, told = worker.check()

    assert time.monotonic() - started < 20
    assert f"share {worker.place}/share does not answer" in told[-1]


# What Slurm drained, and what is left of jobs

JOB = "7|RUNNING|node1\n"


def left(worker: Worker, job: str = "7", pid: int = 4000000) -> None:
    """Let a process of a job be there, in its control group; the number is one that no process has."""
    directory = worker.place / "PROC" / str(pid)
    directory.mkdir(exist_ok=True)
    (directory / "cgroup").write_text(f"0::/system.slice/slurmstepd.scope/job_{job}/step_0/user/task_0\n")
    (directory / "cmdline").write_text("sleep\0")
    (directory / "stat").write_text(f"{pid} (sleep) S 1 1\n")


@pytest.mark.parametrize(
    ("reason", "author"),
    [
        ("Kill task failed", "root"),
        ("Duplicate jobid", "slurm"),
        ("Prolog error", "slurm"),
        ("Epilog error", "slurm"),
        ("batch job complete failure", "slurm"),
    ],
)
def test_what_slurm_drained_is_taken_back_when_its_cause_was_gone_twice(
    worker: Worker, reason: str, author: str
) -> None:
    worker.shows("IDLE+DRAIN", reason, author)

    assert worker.check() == ("", [])
    said, told = worker.check()

    assert told == ["update", "NodeName=node1", "State=RESUME"]
    assert said == f"resumed node1, which was drained for: {reason}\n"


@pytest.mark.parametrize("author", ["ann", "root"])
def test_the_same_words_of_an_administrator_are_a_drain_of_an_administrator(worker: Worker, author: str) -> None:
    worker.shows("IDLE+DRAIN", "Prolog error", author)

    assert [worker.check(), worker.check()] == [("", []), ("", [])]


def test_a_node_with_a_process_of_a_lost_job_stays_drained(worker: Worker) -> None:
    worker.shows("IDLE+DRAIN", "Kill task failed")
    left(worker)

    said, told = worker.check()
    assert "found 1 processes of job 7, which slurmctld no longer has on this node" in said
    assert "node1 stays drained (Kill task failed): processes of job 7 are left" in said
    assert [told, *worker.check()[1:], worker.check()] == [[], [], ("", [])]

    (worker.place / "PROC" / "4000000" / "cgroup").write_text("0::/init.scope\n")
    assert worker.check() == ("", [])
    assert worker.check()[1] == ["update", "NodeName=node1", "State=RESUME"]


@pytest.mark.parametrize(
    ("job", "lost"),
    [
        (JOB, False),
        (JOB.replace("RUNNING", "COMPLETING"), False),
        (JOB.replace("RUNNING", "PENDING"), True),
        (JOB.replace("RUNNING", "COMPLETED"), True),
        (JOB.replace("node1", "node9"), True),
        (JOB.replace("node1", "node[1-2]"), False),
        (JOB.replace("node1", "rack[1-2]"), True),
        ("8|RUNNING|node1\n7|RUNNING|node1\n", False),
        ("8|RUNNING|node1\n7|COMPLETED|node1\n", True),
        ("", True),
    ],
)
def test_a_job_is_lost_when_slurmctld_does_not_have_it_on_the_node(worker: Worker, job: str, lost: bool) -> None:
    left(worker)
    if job:
        (worker.place / "jobs").write_text(job)

    said, told = worker.check()

    assert (bool(said), told) == (lost, [])
    assert (worker.place / "remembered").exists() == lost


def test_nothing_is_lost_while_slurmctld_does_not_answer(worker: Worker) -> None:
    left(worker)
    command(worker.place, "squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller'; exit 1")
    worker.check()

    worker.shows("IDLE+DRAIN", "Kill task failed")
    said, told = worker.check()

    assert said == "node1 stays drained (Kill task failed): slurmctld does not say which jobs it has here\n"
    assert told == []


@pytest.mark.parametrize("scontrol", ["echo 'error: fetch_config: DNS SRV lookup failed'; exit 1", "exec sleep 60"])
def test_a_job_of_several_nodes_is_not_lost_while_scontrol_fails(worker: Worker, scontrol: str) -> None:
    text = worker.replace(worker.program.read_text(), "\nSCONTROL_SECONDS = ", "\nSCONTROL_SECONDS = 2  # ")
    worker.program.write_text(text)
    left(worker)
    (worker.place / "jobs").write_text(JOB.replace("node1", "node[1-2]"))
    worker.scontrol(f'[ "$1" = --oneliner ] || {{ {scontrol}; }}; cat {worker.place}/shown')

    assert worker.check() == ("", [])
    assert not (worker.place / "remembered").exists()


def test_a_list_that_names_only_this_node_needs_no_scontrol(worker: Worker) -> None:
    left(worker)
    (worker.place / "jobs").write_text(JOB)
    worker.scontrol(f'[ "$1" = --oneliner ] || touch {worker.place}/asked; cat {worker.place}/shown')

    assert worker.check() == ("", [])
    assert not (worker.place / "asked").exists()


def test_a_fault_of_the_worker_delays_what_slurm_drained_and_keeps_its_reason(worker: Worker) -> None:
    worker.shows("IDLE+DRAIN", "Kill task failed")
    worker.check()
    (worker.place / "CPUS").write_text("0\n")
    assert worker.check() == ("", [])
    (worker.place / "CPUS").write_text("0-3\n")

    assert [worker.check()[1], worker.check()[1]] == [[], ["update", "NodeName=node1", "State=RESUME"]]


def test_after_a_failed_prolog_it_must_succeed_twice(worker: Worker) -> None:
    worker.shows("IDLE+DRAIN", "Prolog error", "slurm")
    for name in ("Prolog", "Epilog"):
        script = f'#!/bin/sh\necho "{name} $SLURM_JOB_ID $SLURM_JOB_USER" >> {worker.place}/ran\n'
        (worker.place / name).write_text(f"{script}[ ! -e {worker.place}/bad ] || {{ echo no licence; exit 3; }}\n")
        (worker.place / name).chmod(0o755)
    (worker.place / "slurm.conf").write_text(f"Prolog={worker.place}/Prolog\nepilog = {worker.place}/Epilog\n")
    (worker.place / "bad").touch()

    assert worker.check() == ("node1 stays drained (Prolog error): Prolog: no licence\n", [])
    assert worker.check() == ("", [])
    (worker.place / "bad").unlink()
    (worker.place / "ran").unlink()
    assert [worker.check()[1], worker.check()[1]] == [[], ["update", "NodeName=node1", "State=RESUME"]]
    assert (worker.place / "ran").read_text().splitlines() == ["Prolog 0 root", "Epilog 0 root"] * 2


def test_another_drain_of_the_same_kind_must_be_fine_twice_itself(worker: Worker) -> None:
    worker.shows("IDLE+DRAIN", "Kill task failed")
    worker.check()
    shown = worker.place / "shown"
    shown.write_text(shown.read_text().replace("T10:00:00", "T10:00:30"))

    assert [worker.check()[1], worker.check()[1]] == [[], ["update", "NodeName=node1", "State=RESUME"]]


def test_what_is_left_of_a_lost_job_is_ended_after_a_time(place: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    ended: list[str] = []
    monkeypatch.setattr(health, "uptime", lambda: now)
    monkeypatch.setattr(health, "log", lambda text: None)
    monkeypatch.setattr(health, "end", lambda number, pids: ended.append(number))

    first = health.settle(["7"], {"7": [1]}, {})
    now += health.LOST_SECONDS - 1
    first = health.settle(["7", "8"], {"7": [1], "8": [2]}, first)
    assert (first, ended) == ({"7": 1000.0, "8": now}, [])
    now += 1
    assert (health.settle(["7"], {"7": [1]}, first), ended) == ({"7": 1000.0}, ["7"])


def test_only_root_can_pose_as_a_slurmstepd(place: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "PROC", str(place / "PROC"))
    process = place / "PROC" / "12"
    process.mkdir()
    (process / "cgroup").write_text("0::/user.slice\n")
    (process / "cmdline").write_text("slurmstepd: [7.batch]\0")
    (process / "status").write_text("Name:\tslurmstepd\nUid:\t0\t0\t0\t0\n")
    assert health.processes() == {"7": [12]}

    # A setuid program, whose user chooses its words.
    (process / "status").write_text("Name:\tsu\nUid:\t2001\t0\t0\t0\n")
    assert health.processes() == {}


STUCK = {
    "cmdline": "slurmstepd: [7.0]\0",
    "status": "Name:\tslurmstepd\nUid:\t0\t2001\t0\t0\n",
    "stat": f"12 (slurmstepd) S 1{' 0' * 17} {900 * os.sysconf('SC_CLK_TCK')} 0 0",
    "syscall": f"{health.OPENAT[os.uname().machine]} 0xffffff9c 0x55d0 0x80000 0x0",
}
"""What the kernel says 100 seconds later of a slurmstepd that opens a FIFO to which no process writes."""


@pytest.mark.parametrize(
    ("file", "text", "ended"),
    [
        ("cmdline", STUCK["cmdline"], True),
        ("cmdline", "/usr/sbin/sshd\0", False),
        ("status", STUCK["status"].replace("Uid:\t0", "Uid:\t2001"), False),
        ("spool/node1_7.0", "", False),
        ("spool/node1_7.1", "", True),
        ("stat", STUCK["stat"].replace(") S ", ") D "), False),
        ("stat", STUCK["stat"].replace("900", "950"), False),
        ("syscall", "0 0x3 0x7ffc", False),
        ("syscall", "running", False),
        ("syscall", "", False),
    ],
)
def test_a_slurmstepd_that_waits_for_a_fifo_of_a_user_is_ended(
    place: pathlib.Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, ended: bool
) -> None:
    killed: list[int] = []
    monkeypatch.setattr(health, "PROC", str(place / "PROC"))
    monkeypatch.setattr(health, "uptime", lambda: 1000.0)
    monkeypatch.setattr(health, "log", lambda text: None)
    monkeypatch.setattr(health.os, "kill", lambda pid, number: killed.append(pid))
    monkeypatch.setattr(health, "CONFIGURATIONS", (str(place / "slurm.conf"),))
    process = place / "PROC" / "12"
    (process / "spool").mkdir(parents=True)
    (place / "slurm.conf").write_text(f"SlurmdSpoolDir={process}/spool\n")
    for name, seen in {**STUCK, file: text}.items():
        (process / name).write_text(seen)

    health.end_stuck()

    assert killed == ([12] if ended else [])


@pytest.mark.parametrize(
    ("words", "socket"),
    [("[7.batch]", "node1_7.4294967291"), ("[7.extern stepmgr]", "node1_7.4294967292"), ("[7.3+1]", "node1_7.3.1")],
)
def test_a_step_that_has_begun_may_wait(
    place: pathlib.Path, monkeypatch: pytest.MonkeyPatch, words: str, socket: str
) -> None:
    monkeypatch.setattr(health, "PROC", str(place / "PROC"))
    monkeypatch.setattr(health, "uptime", lambda: 1000.0)
    monkeypatch.setattr(health, "CONFIGURATIONS", (str(place / "slurm.conf"),))
    process = place / "PROC" / "12"
    process.mkdir()
    (place / "spool").mkdir()
    (place / "slurm.conf").write_text(f"SlurmdSpoolDir={place}/spool\n")
    for name, seen in {**STUCK, "cmdline": f"slurmstepd: {words}\0"}.items():
        (process / name).write_text(seen)

    before = health.is_stuck(12)
    (place / "spool" / socket).touch()

    assert (before, health.is_stuck(12)) == (True, False)


def test_no_word_of_a_users_command_ends_the_check(place: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that root starts for a user, such as with sudo, may have words of the user."""
    monkeypatch.setattr(health, "PROC", str(place / "PROC"))
    process = place / "PROC" / "12"
    process.mkdir()
    (process / "cgroup").write_text("0::/user.slice\n")
    (process / "cmdline").write_bytes(b"su\0\xff\0")
    (process / "status").write_text("Name:\tsu\nUid:\t0\t0\t0\t0\n")

    assert health.processes() == {}


@pytest.mark.parametrize("name", [b"\xff", b"a\x0bb", b"a\x0bx\x0c/share\x0cnfs4"], ids=str)
def test_no_name_of_a_users_mount_ends_or_misleads_the_check(
    place: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: bytes
) -> None:
    """The kernel escapes space, tab, line break and backslash only."""
    mounts = place / "mounts-of-a-user"
    mounts.write_bytes(b"none / ext4 rw 0 0\nsshfs /tmp/%s fuse rw 0 0\n" % name)
    monkeypatch.setattr(health, "MOUNTS", str(mounts))

    assert (health.is_mounted("/"), health.is_mounted("/share")) == (True, False)


def test_what_is_remembered_is_for_root_only(place: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "REMEMBERED", str(place / "remembered"))
    kept = health.Memory(fine="x", lost={"7": 1.5})

    health.remember(kept)

    assert health.recall() == kept
    assert (place / "remembered").stat().st_mode & 0o777 == 0o600
    (place / "remembered").write_text("{")
    assert health.recall() == health.Memory()


# An administrator drains while the check runs


def test_a_drain_while_the_check_asks_for_jobs_stays(worker: Worker) -> None:
    (worker.place / "CPUS").write_text("0\n")
    left(worker)
    (worker.place / "late").write_text(line("IDLE+DRAIN", "fan", "ann"))
    command(worker.place, "squeue", f"cp {worker.place}/late {worker.place}/shown; echo '{JOB.strip()}'")

    assert worker.check() == ("", [])


def test_a_drain_just_before_the_resume_is_restored(worker: Worker) -> None:
    worker.shows("IDLE+DRAIN", OURS)
    text = (worker.place / "bin" / "scontrol").read_text()
    fan = line("IDLE+DRAIN", "fan", "ann").strip()
    late = text.replace('echo "scontrol: $line"', f'echo "{fan}" > {worker.place}/shown; echo "scontrol: $line"')
    command(worker.place, "scontrol", late.removeprefix("#!/bin/sh\n"))

    said, told = worker.check()

    assert told == ["update", "NodeName=node1", "State=DRAIN", "Reason=fan"]
    assert said == "node1 stays as ann drained it meanwhile: fan\n"


def test_a_drain_at_the_very_resume_is_restored_where_slurm_still_shows_it(worker: Worker) -> None:
    worker.shows("IDLE+DRAIN", OURS)
    (worker.place / "after").write_text(line("IDLE", "fan", "ann"))

    assert worker.check()[1] == ["update", "NodeName=node1", "State=DRAIN", "Reason=fan"]
