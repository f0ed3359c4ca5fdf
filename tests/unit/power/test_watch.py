"""What a look asks of devices."""

from __future__ import annotations

import errno
import json
import pathlib
import threading
import time

import pytest
import yaml

from ansible.module_utils.slurmstead.power import watch
from ansible.module_utils.slurmstead.power.model import Machine
from ansible.module_utils.slurmstead.power.watch import Configuration, Memories, Sleeper, Watch
from ansible.module_utils.slurmstead.reach import durable
from tests import power_devices as devices

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("state", ["IDLE", "IDLE+POWERED_DOWN", "MIXED+POWERING_UP"])
@pytest.mark.parametrize("answers", [True, False])
def test_a_refused_password_is_sent_once(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, state: str, answers: bool
) -> None:
    shown = f"NodeName=node1 State={state} LastBusyTime=2026-11-25T10:00:00\n"
    monkeypatch.setattr(watch, "run", lambda *_, **__: (0, shown, ""))
    monkeypatch.setattr(watch.shutdown, "answers", lambda _: answers)
    with devices.served(devices.RedfishHandler, devices.certificate(tmp_path)) as device:
        machine = Machine("node1", "redfish", address=device.address, user="admin", password="wrong")
        for _ in range(4):
            Watch(
                Configuration((Sleeper(machine, idle=60),)), Memories(tmp_path / "memory.json"), lambda _: None
            ).look()

    assert device.refused <= 1
    assert device.logins == device.refused


def test_a_device_that_accepts_what_it_refused_is_asked_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "run", lambda *_, **__: (0, "NodeName=node1 State=IDLE+POWERED_DOWN\n", ""))
    monkeypatch.setattr(watch.shutdown, "answers", lambda _: False)
    with devices.served(devices.RedfishHandler, devices.certificate(tmp_path)) as device:
        wrong, right = (
            Machine("node1", "redfish", address=device.address, user="admin", password=password)
            for password in ("wrong", "right")
        )
        for accepted in (right, wrong):
            Watch(Configuration((Sleeper(wrong),)), Memories(tmp_path / "memory.json"), lambda _: None).look()
            # As if the device had been repaired since.
            watch.accepted([accepted], tmp_path)
        Watch(Configuration((Sleeper(wrong),)), Memories(tmp_path / "memory.json"), lambda _: None).look()

    assert device.refused == 2


def test_a_board_gets_a_refused_password_once_for_all_its_machines(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("node1", "node2", "node3")
    shown = "".join(f"NodeName={name} State=IDLE+POWERED_DOWN\n" for name in names)
    monkeypatch.setattr(watch, "run", lambda *_, **__: (0, shown, ""))
    monkeypatch.setattr(watch.shutdown, "answers", lambda _: False)
    told: list[str] = []
    with devices.served(devices.BmcdHandler, devices.certificate(tmp_path)) as device:
        given = {"method": "turing_pi", "address": device.address, "user": "admin", "password": "wrong"}
        machines = [Machine(name, slot=slot, **given) for slot, name in enumerate(names, 1)]
        for _ in range(3):
            memories = Memories(tmp_path / "memory.json")
            Watch(Configuration(tuple(map(Sleeper, machines))), memories, lambda entry: told.append(entry.node)).look()

    assert device.refused == 1
    assert sorted(told) == list(names)


def test_many_machines_are_looked_at_together(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, hundreds of silent devices would take longer than systemd lets a look last."""
    names = [f"node{number}" for number in range(watch.TOGETHER)]
    monkeypatch.setattr(
        watch, "run", lambda *_, **__: (0, "".join(f"NodeName={name} State=IDLE\n" for name in names), "")
    )
    all_at_once = threading.Barrier(len(names), timeout=10)
    monkeypatch.setattr(watch.shutdown, "answers", lambda _: all_at_once.wait() >= 0)
    sleepers = tuple(Sleeper(Machine(name, "wake_on_lan")) for name in names)
    told: list[object] = []
    Watch(Configuration(sleepers), Memories(tmp_path / "memory.json"), told.append).look()

    assert len(names) == 64
    assert told == []


def test_a_cut_that_failed_is_tried_again(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `status`, no one else would notice, and a board that shut itself down needs an edge to wake."""
    monkeypatch.setattr(watch, "run", lambda *_, **__: (0, "NodeName=node1 State=IDLE+POWERED_DOWN\n", ""))
    monkeypatch.setattr(watch.shutdown, "answers", lambda _: False)
    (tmp_path / "memory.json").write_text('{"machines": {"node1": {"told": 1000, "silent": 1000}}}')
    off = ["sh", "-c", f"test -e {tmp_path}/works"]
    machine = Machine("node1", "command", commands={"on": ["true"], "off": off})
    acts: list[str] = []
    for _ in range(3):
        memories = Memories(tmp_path / "memory.json")
        Watch(Configuration((Sleeper(machine),)), memories, lambda entry: acts.append(entry.what)).look()
        (tmp_path / "works").touch()

    assert acts == ["failed", "cut the supply", "asleep"]


def test_a_machine_that_cannot_be_cut_is_switched_on_for_a_job(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some BMCs say on for a machine that is off, and refuse to switch that off."""
    shown = "NodeName=node1 State=MIXED+NOT_RESPONDING+POWERING_UP\n"
    monkeypatch.setattr(watch, "run", lambda *_, **__: (0, shown, ""))
    monkeypatch.setattr(watch.shutdown, "answers", lambda _: False)
    (tmp_path / "memory.json").write_text('{"machines": {"node1": {"told": 1000, "silent": 1000}}}')
    machine = Machine("node1", "command", commands={"on": ["true"], "off": ["false"], "status": ["true"]})
    acts: list[str] = []
    for _ in range(2):
        memories = Memories(tmp_path / "memory.json")
        Watch(Configuration((Sleeper(machine),)), memories, lambda entry: acts.append(entry.what)).look()

    assert acts == ["failed", "switch on"]


def test_a_system_that_answers_and_cannot_be_cut_is_told_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "run", lambda *_, **__: (0, "NodeName=node1 State=IDLE+POWERED_DOWN\n", ""))
    monkeypatch.setattr(watch.shutdown, "answers", lambda _: True)
    monkeypatch.setattr(watch.shutdown, "shut_down", lambda _: None)
    (tmp_path / "memory.json").write_text('{"machines": {"node1": {"told": 1000}}}')
    acts: list[str] = []
    for _ in range(2):
        memories = Memories(tmp_path / "memory.json")
        sleeper = Sleeper(Machine("node1", "wake_on_lan"))
        Watch(Configuration((sleeper,)), memories, lambda entry: acts.append(entry.what)).look()

    assert acts == ["failed", "shut down"]


def test_a_slow_boot_is_not_cut_off(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = "NodeName=node1 State=MIXED+NOT_RESPONDING+POWERING_UP LastBusyTime=2026-11-25T10:00:00\n"
    monkeypatch.setattr(watch, "run", lambda *_, **__: (0, shown, ""))
    monkeypatch.setattr(watch.shutdown, "answers", lambda _: False)
    monkeypatch.setattr(watch.decide, "RETRY", 0.0)
    acts: list[str] = []
    with devices.served(devices.BmcdHandler, devices.certificate(tmp_path)) as device:
        # A board that shut itself down still says that it is on.
        device.on = True
        machine = Machine("node1", "turing_pi", address=device.address, user="admin", password="right", slot=2)
        for _ in range(4):
            memories = Memories(tmp_path / "memory.json")
            Watch(Configuration((Sleeper(machine),)), memories, lambda entry: acts.append(entry.what)).look()

    assert acts == ["switch on"] * 4
    assert device.switched == ["0", "1"]


def test_a_defect_with_one_machine_does_not_keep_the_others_awake(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = "".join(f"NodeName={name} State=IDLE LastBusyTime=2026-11-25T10:00:00\n" for name in ("node1", "node2"))
    updates: list[str] = []

    def run(*words: str, **_: float) -> tuple[int, str, str]:
        updates.extend(words[2:] if "update" in words else [])
        return 0, shown, ""

    def broken(machine: Machine) -> bool:
        if machine.name == "node1":
            raise UnicodeError("label empty or too long")
        return True

    monkeypatch.setattr(watch, "run", run)
    monkeypatch.setattr(watch.shutdown, "answers", broken)
    monkeypatch.setattr(watch.shutdown, "check", lambda _: None)
    sleepers = tuple(Sleeper(Machine(name, "wake_on_lan"), idle=60) for name in ("node1", "node2"))
    notes: list[str] = []
    for _ in range(2):
        memories = Memories(tmp_path / "memory.json")
        Watch(Configuration(sleepers), memories, lambda entry: notes.append(f"{entry.node} {entry.why}")).look()

    assert updates == ["nodename=node2", "state=power_down"] * 2
    assert notes[0] == "node1 look at it: UnicodeError('label empty or too long')"
    assert [note.partition(" ")[0] for note in notes] == ["node1", "node2", "node2"]


@pytest.mark.parametrize(
    ("state", "decided"),
    [
        ("IDLE", "IDLE+DRAIN"),
        ("IDLE+NOT_RESPONDING", "IDLE+NOT_RESPONDING+DRAIN"),
        ("DOWN+NOT_RESPONDING", "DOWN+NOT_RESPONDING+DRAIN"),
        ("DOWN+POWERED_DOWN", "DOWN+POWERED_DOWN+DRAIN"),
        ("DOWN+POWERED_DOWN", "DOWN+POWERED_DOWN"),
    ],
)
def test_what_a_person_takes_out_of_service_during_a_look_stays_so(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, state: str, decided: str
) -> None:
    """slurmctld drops the drain of a node that it is told to power down, and of one that it is told to resume."""
    signed = "Reason=ResumeTimeout reached [slurm@2026-11-25T10:00:00]" if "DOWN" in state else ""
    shown = [f"NodeName=node1 State={state} LastBusyTime=2026-11-25T10:00:00 {signed}\n"]
    updates: list[str] = []

    def run(*words: str, **_: float) -> tuple[int, str, str]:
        updates.extend(words[2:] if "update" in words else [])
        return 0, shown[-1], ""

    def slow(_: Machine) -> bool:
        shown.append(f"NodeName=node1 State={decided} Reason=fan [root@2026-11-25T11:00:00]\n")
        return state == "IDLE"

    monkeypatch.setattr(watch, "run", run)
    monkeypatch.setattr(watch.shutdown, "answers", slow)
    (tmp_path / "memory.json").write_text('{"machines": {"node1": {"silent": 1000}}}')
    commands = {"status": ["true" if state == "IDLE" else "false"], "on": ["false"], "shut_down": ["true"]}
    sleeper = Sleeper(Machine("node1", "command", commands=commands), idle=60)
    Watch(Configuration((sleeper,)), Memories(tmp_path / "memory.json"), lambda _: None).look()
    during, shown[:] = list(updates), shown[:1]
    monkeypatch.setattr(watch.shutdown, "answers", lambda _: state == "IDLE")
    Watch(Configuration((sleeper,)), Memories(tmp_path / "memory.json"), lambda _: None).look()

    assert during == []
    assert updates, "without the drain, it is told"


def test_what_a_person_takes_out_of_service_during_a_look_is_not_shut_down(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asleep = "NodeName=node1 State=IDLE+POWERED_DOWN\n"
    shown, told = [asleep], []

    def slow(_: Machine) -> bool:
        shown.append("NodeName=node1 State=IDLE+POWERED_DOWN+DRAIN Reason=fan [root@2026-11-25T11:00:00]\n")
        return True

    monkeypatch.setattr(watch, "run", lambda *_, **__: (0, shown[-1], ""))
    monkeypatch.setattr(watch.shutdown, "answers", slow)
    monkeypatch.setattr(watch.shutdown, "shut_down", told.append)
    sleeper = Sleeper(Machine("node1", "wake_on_lan"))
    Watch(Configuration((sleeper,)), Memories(tmp_path / "memory.json"), lambda _: None).look()
    during, shown[:] = list(told), [asleep]
    monkeypatch.setattr(watch.shutdown, "answers", lambda _: True)
    Watch(Configuration((sleeper,)), Memories(tmp_path / "memory.json"), lambda _: None).look()

    assert during == []
    assert told == [sleeper.machine]


def test_no_machine_goes_to_sleep_under_a_command_that_began_during_a_look(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = "NodeName=node1 State=IDLE LastBusyTime=2026-11-25T10:00:00\n"
    begun: list[bool] = []
    notes: list[str] = []
    monkeypatch.setattr(watch, "run", lambda *_, **__: (0, shown, ""))
    monkeypatch.setattr(watch.cluster_lock, "is_held", lambda: bool(begun))
    monkeypatch.setattr(watch.shutdown, "answers", lambda _: begun.append(True) is None)
    monkeypatch.setattr(watch.shutdown, "check", lambda _: None)
    sleeper = Sleeper(Machine("node1", "wake_on_lan"), idle=60)
    Watch(Configuration((sleeper,)), Memories(tmp_path / "memory.json"), lambda one: notes.append(one.what)).look()

    assert notes == []


LOGIN = "ssh to  ends with 255: Permission denied (publickey)."


@pytest.mark.parametrize(
    ("commands", "memory", "notes"),
    [
        ({"status": "true"}, {}, ["let Slurm power it down: it has had no job for long enough"]),
        ({"status": "exit 2"}, {}, [f"failed: {watch.ASK}: the command `status` of node1 exits with 2: "]),
        ({"status": "false"}, {}, ["failed: let Slurm power it down: its device says off, but it answers: the device"]),
        ({"status": "true"}, {"unable": time.time()}, []),
        ({"status": "true"}, {"unable": 1000}, ["let Slurm power it down: it has had no job for long enough"]),
        ({"status": "true", "shut_down": ""}, {}, [f"failed: let Slurm power it down: {LOGIN}"]),
    ],
)
def test_a_machine_that_could_not_be_shut_down_stays_in_service(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    commands: dict[str, str],
    memory: dict[str, float],
    notes: list[str],
) -> None:
    """A BMC without its cable, a wrong password, no key: on, but powered down for Slurm, it would get no job again."""
    shown = "NodeName=node1 State=IDLE LastBusyTime=2026-11-25T10:00:00\n"
    monkeypatch.setattr(watch, "run", lambda *_, **__: (0, shown, ""))
    monkeypatch.setattr(watch.shutdown, "run", lambda *_, **__: (255, "", "Permission denied (publickey).\n"))
    monkeypatch.setattr(watch.shutdown, "answers", lambda _: True)
    (tmp_path / "memory.json").write_text(json.dumps({"machines": {"node1": memory}}))
    words = {verb: ["sh", "-c", text] for verb, text in {"shut_down": "true", **commands}.items() if text}
    sleeper = Sleeper(Machine("node1", "command", commands=words), idle=60)
    said: list[str] = []
    for _ in range(2):
        memories = Memories(tmp_path / "memory.json")
        Watch(Configuration((sleeper,)), memories, lambda one: said.append(f"{one.what}: {one.why}")).look()

    assert len(set(said)) == len(notes)
    assert all(found.startswith(note) for found, note in zip(said, notes, strict=False))


def test_a_machine_that_was_not_told_to_shut_down_is_remembered_until_it_is_off(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "run", lambda *_, **__: (0, "NodeName=node1 State=IDLE+POWERED_DOWN\n", ""))
    sleeper = Sleeper(Machine("node1", "command", commands={"status": ["false"], "shut_down": ["false"]}))
    unable: list[bool] = []
    for on in (True, False):
        monkeypatch.setattr(watch.shutdown, "answers", lambda _, on=on: on)
        memories = Memories(tmp_path / "memory.json")
        Watch(Configuration((sleeper,)), memories, lambda _: None).look()
        unable.append(memories.machines["node1"].unable > 0)

    assert unable == [True, False]


def test_a_machine_that_did_not_wake_is_drained_again_and_not_resumed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asleep = "NodeName=node1 State=IDLE+POWERED_DOWN+DRAIN Reason=fan [ann@2026-11-25T10:00:00]\n"
    given_up = "NodeName=node1 State=DOWN+POWERED_DOWN Reason=ResumeTimeout reached [slurm@2026-11-25T11:00:00]\n"
    shown, updates = [asleep], []

    def run(*words: str, **_: float) -> tuple[int, str, str]:
        if "update" in words:
            updates.append(words[2:])
            shown.append("NodeName=node1 State=DOWN+DRAIN+POWERED_DOWN Reason=fan [root@2026-11-25T11:00:10]\n")
        return 0, shown[-1], ""

    monkeypatch.setattr(watch, "run", run)
    monkeypatch.setattr(watch.shutdown, "answers", lambda _: False)
    for _ in range(4):
        memories = Memories(tmp_path / "memory.json")
        Watch(Configuration((Sleeper(Machine("node1", "wake_on_lan")),)), memories, lambda _: None).look()
        if shown == [asleep]:
            shown.append(given_up)

    assert updates == [("nodename=node1", "state=drain", "reason=fan")]


def test_a_full_disk_of_control_keeps_no_machine_off(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waking = "NodeName=node1 State=MIXED+NOT_RESPONDING+POWERING_UP\n"
    drained = "NodeName=node2 State=IDLE+POWERED_DOWN+DRAIN Reason=fan [ann@2026-11-25T10:00:00]\n"

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "power.log")

    monkeypatch.setattr(watch, "run", lambda *_, **__: (0, waking + drained, ""))
    monkeypatch.setattr(watch.shutdown, "answers", lambda _: False)
    monkeypatch.setattr(durable, "write", full)
    (tmp_path / "memory.json").write_text('{"machines": {"node1": {"asleep": true}}}')
    on = ["touch", str(tmp_path / "on")]
    sleepers = tuple(Sleeper(Machine(name, "command", commands={"on": on})) for name in ("node1", "node2"))
    looked = Watch(Configuration(sleepers), Memories(tmp_path / "memory.json"), full)

    looked.look()

    assert (tmp_path / "on").exists()
    assert str(looked.unwritten) == "[Errno 28] No space left on device: 'power.log'"


def test_slurm_powers_no_node_down_when_the_clock_of_a_board_without_a_battery_jumps() -> None:
    """It compares `now - SuspendTime` with when a node was last busy, which can be in 1970. 22.05 reads it by atoi."""
    power = yaml.safe_load((ROOT / "roles/slurm/vars/main.yml").read_text())["__slurm_power_config"]

    assert time.time() < power["SuspendTime"] < 2**31
