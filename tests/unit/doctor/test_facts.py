"""What is read of a machine, on the machine that runs the tests."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ansible.module_utils.slurmstead.doctor.facts import jobs, machine, network, people, services, slurm
from ansible.module_utils.slurmstead.identity.accounts import Known
from ansible.module_utils.slurmstead.reach import remote_call
from ansible.module_utils.slurmstead.slurm import daemons


@pytest.fixture
def daemon(tmp_path: pathlib.Path) -> Iterator[tuple[pathlib.Path, int]]:
    """A program and the number of a process that runs it."""
    program = tmp_path / "daemon"
    shutil.copy(shutil.which("sleep") or "", program)
    with subprocess.Popen([program, "60"]) as process:
        yield program, process.pid
        process.kill()


def test_a_process_is_as_old_as_its_program_until_that_is_replaced(daemon: tuple[pathlib.Path, int]) -> None:
    program, pid = daemon
    assert services.outdated(pid) == ""

    new = program.with_suffix(".new")
    shutil.copy(program, new)
    new.replace(program)

    assert services.outdated(pid) == str(program)


def test_the_start_of_a_process_is_known(daemon: tuple[pathlib.Path, int]) -> None:
    assert services.started(daemon[1]) == pytest.approx(time.time(), abs=30)
    assert services.started(0) == 0.0


def test_code_of_a_library_that_was_replaced_is_seen() -> None:
    maps = (
        "7f00-7f01 r-xp 00000000 08:01 11 /usr/lib/libmunge.so.2.0.0\n"
        "7f02-7f03 r--p 00000000 08:01 12 /usr/lib/locale/C.utf8 (deleted)\n"
        "7f04-7f05 r-xp 00000000 08:01 13 /usr/lib/libslurm.so.38 (deleted)\n"
    )
    replaced = services.DELETED.search(maps)

    assert replaced is not None
    assert replaced[1] == "/usr/lib/libslurm.so.38"


@pytest.mark.parametrize(
    ("journal", "said"),
    [
        ("slurmctld: error: no state\nslurmctld: fatal: no room\nslurmctld.service: Failed with result", "no room"),
        ("slurmctld: fatal: no room\nslurmctld: fatal: no rights\n", "no rights"),
        ("munged: Error: Logfile is insecure\n", "Logfile is insecure"),
        ("slurmd: error: cannot send\nStopped slurmd.service\n", ""),
    ],
)
def test_the_last_words_of_a_daemon_are_why_it_ended(monkeypatch: pytest.MonkeyPatch, journal: str, said: str) -> None:
    monkeypatch.setattr(services, "run", lambda *_: (0, journal, ""))

    assert services.died_of("slurmctld") == said


def test_keys_can_be_compared_within_a_run_only(tmp_path: pathlib.Path) -> None:
    one, same, other = (tmp_path / name for name in ("one", "same", "other"))
    for path, content in ((one, b"secret"), (same, b"secret"), (other, b"another")):
        path.write_bytes(content)
        path.chmod(0o400)
    digest = {path.name: machine.key("salt", path)["digest"] for path in (one, same, other)}

    assert digest["one"] == digest["same"] != digest["other"]
    assert machine.key("another salt", one)["digest"] != digest["one"]
    assert machine.key("salt", one)["mode"].startswith("0400 ")
    assert "secret" not in str(machine.key("salt", one))


def test_a_key_that_is_missing_is_no_failure(tmp_path: pathlib.Path) -> None:
    assert machine.key("salt", tmp_path / "none") == {"error": "No such file or directory"}


def test_a_directory_that_is_missing_says_so_and_another_says_its_space(tmp_path: pathlib.Path) -> None:
    missing = str(tmp_path / "none")
    found = machine.paths([missing, "/"])

    assert found[missing] == {"source": None, "error": "No such file or directory"}
    assert found["/"]["source"]
    assert 0 <= found["/"]["free"] <= found["/"]["size"]


def test_a_share_that_never_answers_costs_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    run, waited = machine.run, []

    def hangs(*command: str, seconds: float) -> tuple[int, str, str]:
        if "/share" not in command:
            return run(*command, seconds=seconds)
        waited.append(float(command[2]))
        return 137, "", ""

    monkeypatch.setattr(machine, "run", hangs)
    found = machine.paths(["/", "/share"])

    assert found["/share"]["error"] == "no answer in 8 s"
    assert found["/"]["size"] > 0
    assert sum(waited) <= 12


def test_directories_of_one_file_system_are_known_as_such(tmp_path: pathlib.Path) -> None:
    (tmp_path / "below").mkdir()
    found = machine.paths([str(tmp_path), str(tmp_path / "below"), "/proc"])

    one, same, other = (state["id"] for state in found.values())
    assert one == same != other


@pytest.mark.parametrize("name", [b"\xff", b"a\x0bb", b"a\x0bx\x0c/share\x0cnfs4"], ids=str)
def test_no_name_of_a_users_mount_hides_or_feigns_a_mount(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: bytes
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_bytes(b"disk / ext4 rw 0 0\nsshfs /tmp/%s fuse rw 0 0\n" % name)
    monkeypatch.setattr(machine, "MOUNTS", mounts)
    found = machine.paths(["/"])

    assert found["/"]["source"] == "disk"
    assert "/share" not in machine.mounted(mounts.read_text(errors="replace"))


def test_only_names_that_are_resolved_wrongly_are_facts() -> None:
    assert machine.misresolved({"localhost": "127.0.0.1", "no-such-name.invalid": "10.0.0.1"}) == {
        "no-such-name.invalid": []
    }
    assert machine.misresolved({"localhost": "10.0.0.1"}) == {"localhost": ["127.0.0.1"]}


SILENT = """
import socket, time
socket.getaddrinfo = lambda *_: time.sleep(60)
"""
"""A name server that does not answer."""


NAMES = [f"node{number}" for number in range(40)]


@pytest.mark.parametrize(
    ("module", "function", "arguments"),
    [
        ("machine", "misresolved", {"addresses": dict.fromkeys(NAMES, "10.0.0.1")}),
        ("network", "unreached", {"peers": dict.fromkeys(NAMES, [6817, 60001])}),
    ],
)
def test_the_facts_end_in_time_while_a_name_server_is_silent(
    module: str, function: str, arguments: dict[str, Any]
) -> None:
    text = remote_call.program(f"doctor.facts.{module}", function, arguments)
    short = text.replace("LOOK = 8.0", "LOOK = 0.5")
    assert short != text

    done = subprocess.run(
        [sys.executable, "-IS", "-"], input=SILENT + short, capture_output=True, text=True, timeout=30, check=True
    )

    assert sorted(json.loads(done.stdout)) == sorted(NAMES)
    assert done.stderr == ""


def test_people_are_known_by_both_numbers() -> None:
    assert all(len(numbers) == 2 for numbers in machine.accounts().values())
    assert "root" not in machine.accounts()


def test_a_machine_without_daemons_of_slurm_is_not_asked() -> None:
    assert slurm.look(["munge"]) == {}


def test_a_controller_whose_state_is_gone_is_seen(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slurm.conf").write_text(f"StateSaveLocation={tmp_path}/none\nSlurmctldLogFile={tmp_path}/log\n")
    monkeypatch.setattr(slurm, "ETC", tmp_path)

    assert slurm.look(["slurmctld"])["unwritable"] == [f"{tmp_path}/none: No such file or directory"]


def test_a_slurmctld_that_shows_no_nodes_in_time_did_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*command: str, seconds: float = 10) -> tuple[int, str, str]:
        return (0, "HASH_VAL = Match\n", "") if "config" in command else (124, "", "no answer")

    for asked in (slurm, daemons):
        monkeypatch.setattr(asked, "run", run)

    assert slurm.look(["slurmctld"])["error"] == "it reports no nodes"


def test_files_of_packages_and_other_daemons_are_no_configuration(tmp_path: pathlib.Path) -> None:
    for name in ("plugstack.conf", "slurm.conf", "slurm.key", "slurmdbd.conf"):
        (tmp_path / name).write_text("x")
    os.symlink(tmp_path / "slurm.conf", tmp_path / "cgroup.conf")

    assert slurm.files(tmp_path) == {"slurm.conf": "x", "cgroup.conf": "x"}


def test_keys_in_homes_are_counted_without_those_that_open_no_shell(tmp_path: pathlib.Path) -> None:
    for name, text in {
        "bob": "# mine\n\nssh-ed25519 AAAA one\nssh-ed25519 BBBB two\n",
        "root": 'no-pty,command="echo Log in as debian" ssh-ed25519 AAAA one\n',
        "carol": "",
    }.items():
        (tmp_path / name / ".ssh").mkdir(parents=True)
        (tmp_path / name / ".ssh/authorized_keys").write_text(text)
    # No user may hide the keys of another one.
    (tmp_path / "eve/.ssh").mkdir(parents=True)
    os.mkfifo(tmp_path / "eve/.ssh/authorized_keys")
    (tmp_path / "mallory/.ssh").mkdir(parents=True)
    with (tmp_path / "mallory/.ssh/authorized_keys").open("wb") as file:
        file.truncate(2**40)
    homes = {name: str(tmp_path / name) for name in ("eve", "mallory", "bob", "root", "carol", "dave")}

    assert people.own_keys(homes) == {"bob": 2}


def test_the_right_to_sudo_is_known_with_the_group_that_gives_it() -> None:
    node = Known(
        {"root": 0, "alice": 2001, "bob": 2002, "carol": 2003},
        {"sudo": 27, "wheel": 28},
        {"carol": 28},
        members={"alice": frozenset({"sudo", "video"}), "bob": frozenset({"video"})},
    )
    entries = [{"username": "root"}, {"usergroup": "sudo"}, {"usergid": 28}, {"userid": 2002}]
    entries += [{"username": "mallory", "negated": True}]

    found = dict(people.allowed({"User_Specs": [{"User_List": entries}]}, node))

    assert found == {"root": "", "alice": "sudo", "carol": "wheel", "bob": ""}


def test_an_open_udp_port_is_seen_with_its_process() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind(("0.0.0.0", 0))
        found = {port["port"]: port["pid"] for port in services.listening("udp")}
        number = here.getsockname()[1]

    assert found[number] == os.getpid()


NAMED = """
import ctypes, socket, sys
ctypes.CDLL(None).prctl(15, {name!r})
with socket.create_server(("0.0.0.0", 0)) as server:
    print(server.getsockname()[1], flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    "name", [b"a\nb", b"\nLISTEN 0 5 a:1", b'a",pid=1,fd=1)', b'",pid=1,fd=1))', b'",pid=1,fd=1),(', b"\xff\x1b[2J"]
)
def test_no_name_of_a_process_hides_its_port_or_gives_it_to_another(name: bytes) -> None:
    program = [sys.executable, "-c", NAMED.format(name=name)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        number = int(process.stdout.readline())
        found = {port["port"]: port for port in services.listening()}
        process.communicate("")

    assert found[number]["pid"] == process.pid
    assert found[number]["process"].isprintable()


def test_a_port_is_reached_when_its_machine_accepts_or_refuses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert network.unreached({"127.0.0.1": [port]}) == {}
    assert network.unreached({"127.0.0.1": [port]}) == {}


def test_a_port_without_an_answer_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    def drops(*_: object) -> socket.socket:
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", drops)
    assert network.unreached({"node2": [6818]}) == {"node2": {"6818": "no answer"}}
    assert list(network.unreached({"no-such-name.invalid": [6818]})) == ["no-such-name.invalid"]


def test_each_address_has_the_mtu_of_its_link() -> None:
    assert set(network.mtus()) <= set(machine.addresses())
    assert all(size >= 576 for size in network.mtus().values())


def test_a_slurmstepd_of_root_is_a_step_and_that_of_a_user_is_not(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "PROC", tmp_path)
    # The last is a setuid program of a user.
    users = {12: "0\t0", 13: "2001\t2001", 14: "0\t0", 15: "2001\t0"}
    titles = {12: "slurmstepd: [7.batch]", 13: "slurmstepd: [8.0]", 14: "sleep", 15: "slurmstepd: [9.0]"}
    for pid, title in titles.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cmdline").write_text(f"{title}\0")
        (tmp_path / str(pid) / "status").write_text(f"Name:\tx\nUid:\t{users[pid]}\t0\t0\n")

    assert set(jobs.here()) == {"7"}
