"""Who left the inventory, whose account is ours to lock, and who is let in again."""

from __future__ import annotations

import os
import pathlib
import stat
import subprocess
import sys
import time

import pytest

from ansible.module_utils.slurmstead.identity import departures, sessions
from ansible.module_utils.slurmstead.identity.accounts import Group, Known, User, conflicts
from ansible.module_utils.slurmstead.identity.departures import (
    Lock,
    Made,
    departed,
    expiry_option,
    marked,
    renewed,
    settled,
)

ALICE = User("alice", 2001, "alice", (), "", "/bin/bash", ())
NODE = Known(
    {"root": 0, "alice": 2001, "bob": 2002, "carl": 1001},
    {},
    {},
    homes={"alice": "/share/home/alice", "bob": "/share/home/bob", "carl": "/home/carl"},
)
LOCKS = {name: Lock(password=True) for name in NODE.users}


def test_an_account_that_is_created_now_is_ours() -> None:
    dora = User("dora", 2004, "dora", (), "", "/bin/bash", ())

    assert renewed({}, [dora], NODE, LOCKS, "/share/home") == {"dora": Made(2004, in_people=False)}


def test_the_first_record_adopts_what_earlier_versions_created() -> None:
    assert renewed(None, [ALICE], NODE, LOCKS, "/share/home") == {"alice": Made(2001, in_people=False)}


@pytest.mark.parametrize(
    ("user", "lock"),
    [
        (User("carl", 1001, "carl", (), "", "/bin/bash", ()), Lock(password=True)),
        (ALICE, Lock()),
        (ALICE, Lock(password=True, stored=True)),
    ],
    ids=["home elsewhere", "has a password", "has a locked password"],
)
def test_the_first_record_leaves_the_administrators_accounts_out(user: User, lock: Lock) -> None:
    assert renewed(None, [user], NODE, {user.name: lock}, "/share/home") == {}


def test_a_later_record_adopts_no_account() -> None:
    assert renewed({}, [ALICE], NODE, LOCKS, "/share/home") == {}


def test_an_account_whose_number_was_changed_stays_ours() -> None:
    record = renewed({"alice": Made(1999)}, [ALICE], NODE, LOCKS, "/share/home")

    assert departed(renewed(record, [], NODE, LOCKS, "/share/home"), [], []) == {"alice": 2001}


def test_an_account_that_was_removed_by_hand_is_forgotten() -> None:
    record = {"bob": Made(2002, left=True), "gone": Made(2009, left=True), "carl": Made(2003)}

    assert renewed(record, [], NODE, LOCKS, "/share/home") == {"bob": Made(2002, left=True)}


def test_only_accounts_of_ours_leave() -> None:
    record = {"alice": Made(2001), "bob": Made(2002), "carl": Made(70001), "debian": Made(1000), "odd": Made(0)}

    assert departed(record, [ALICE], ["debian"]) == {"bob": 2002, "carl": 70001}


def test_jobs_are_cancelled_when_a_user_leaves_and_not_later() -> None:
    record = {"alice": Made(2001), "bob": Made(2002, left=True)}

    assert marked(record, ["alice", "bob"], jobs=True) == {"alice": Made(2001, True, True), "bob": Made(2002, True)}


def test_jobs_of_a_user_whose_time_is_over_go_on_until_the_user_is_removed() -> None:
    over = marked({"alice": Made(2001)}, ["alice"], jobs=True, expired=["alice"])
    again = marked(settled(over, ["alice"]), ["alice"], jobs=True, expired=["alice"])
    removed = marked(again, ["alice"], jobs=True)

    assert over == again == {"alice": Made(2001, left=True, over=True)}
    assert removed == {"alice": Made(2001, left=True, jobs=True)}
    assert marked(again, ["alice"], jobs=False) == {"alice": Made(2001, left=True)}


def test_jobs_of_a_user_who_came_back_go_on() -> None:
    assert marked({"alice": Made(2001, left=True, jobs=True)}, [], jobs=True) == {"alice": Made(2001, left=True)}


def test_jobs_of_who_left_are_cancelled_in_each_run_and_who_came_back_is_let_in() -> None:
    record = {"alice": Made(2001, True, True), "bob": Made(2002, True), "carol": Made(2003, left=True)}

    after = settled(record, ["alice", "bob"])

    assert after == {"alice": Made(2001, True, True), "bob": Made(2002, True), "carol": Made(2003)}


def test_a_record_can_be_read_again_and_only_by_root(tmp_path: pathlib.Path) -> None:
    path, record = tmp_path / "new/accounts.json", {"bob": Made(2002, left=True, jobs=True)}
    departures.write(record, path)

    assert departures.read(path) == record
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_a_file_there_is_no_record(tmp_path: pathlib.Path) -> None:
    assert departures.read(tmp_path / "none") is None


@pytest.mark.parametrize("text", ["{", "[]", '{"bob": 2002}', '{"bob": {"gid": 1}}'])
def test_another_file_is_not_mistaken_for_a_record(tmp_path: pathlib.Path, text: str) -> None:
    path = tmp_path / "accounts.json"
    path.write_text(text)

    with pytest.raises(ValueError, match="is not a record of accounts"):
        departures.read(path)


def test_locks_are_read_as_login_reads_them(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "shadow"
    never = int(time.time() // 86400) + 1000
    path.write_text(
        f"a:$y$x:20000:0:99999:7:::\nb:!:20000:0:99999:7::1:\nc:!$y$x:20000:0:99999:7::0:\nd:*:20000::::::\n"
        f"e:$y$x:20000:0:99999:7::{never}:\n"
    )

    assert departures.locks(path) == {
        "a": Lock(),
        "b": Lock(password=True, expired=True, day=1),
        "c": Lock(password=True, stored=True, expired=True, day=0),
        "d": Lock(password=True),
        "e": Lock(day=never),
    }


def test_the_number_of_a_departed_user_is_reserved() -> None:
    eve = User("eve", 2002, "eve", (), "", "/bin/bash", ())
    (problem,) = conflicts([Group("eve", 2002)], [eve], NODE, ["bob"])

    assert problem.startswith("accounts_users: uid 2002 of eve stays reserved for bob, who left the inventory")


def process(
    directory: pathlib.Path, number: int, parent: int, name: str, uid: int, cgroup: str = "/", state: str = "S"
) -> None:
    (directory / str(number)).mkdir()
    ids = "\t".join([str(uid)] * 4)
    (directory / str(number) / "status").write_text(f"Name:\t{name}\nState:\t{state}\nPPid:\t{parent}\nUid:\t{ids}\n")
    (directory / str(number) / "cgroup").write_text(f"0::{cgroup}\n")


def test_processes_outside_jobs_are_found(tmp_path: pathlib.Path) -> None:
    process(tmp_path, 1, 0, "systemd", 0)
    process(tmp_path, 10, 1, "sshd", 2002)
    process(tmp_path, 11, 1, "sleep", 2003)
    process(tmp_path, 12, 1, "sleep", 2002, state="Z")
    process(tmp_path, 20, 1, "slurmstepd", 0)
    process(tmp_path, 21, 20, "bash", 2002)
    process(tmp_path, 22, 21, "python3", 2002)
    process(tmp_path, 30, 1, "python3", 2002, "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0")

    assert sessions.outside_jobs([2002], tmp_path) == {10: 2002}


def test_a_user_cannot_pass_a_process_off_as_a_jobs(tmp_path: pathlib.Path) -> None:
    process(tmp_path, 1, 0, "systemd", 0)
    process(tmp_path, 10, 1, "slurmstepd", 2002)
    process(tmp_path, 11, 10, "sleep", 2002)
    process(tmp_path, 12, 1, "sleep", 2002, "/user.slice/user-2002.slice/user@2002.service/job_7")

    assert sessions.outside_jobs([2002], tmp_path) == {10: 2002, 11: 2002, 12: 2002}


def test_a_user_cannot_hide_a_process_behind_a_name_that_is_not_text(tmp_path: pathlib.Path) -> None:
    process(tmp_path, 1, 0, "systemd", 0)
    process(tmp_path, 10, 1, "NAME", 2002, "/user.slice/NAME")
    for path in (tmp_path / "10").iterdir():
        path.write_bytes(path.read_bytes().replace(b"NAME", b"\xff\x0b"))

    assert sessions.outside_jobs([2002], tmp_path) == {10: 2002}


def test_a_process_ends_though_it_ignores_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        real = sessions.outside_jobs
        monkeypatch.setattr(
            sessions, "outside_jobs", lambda _: {pid: 0 for pid in real([os.getuid()]) if pid == child.pid}
        )

        assert sessions.end([0]) == {}
        assert child.wait(5) == -9


@pytest.mark.parametrize(
    ("expires", "made", "lock", "options"),
    [
        ("1970-01-11", Made(2002), Lock(), ["--expiredate", "10"]),
        ("1970-01-11", Made(2002, expires="1970-01-11"), Lock(day=10), []),
        ("1970-01-11", None, Lock(day=9), ["--expiredate", "10"]),
        ("", Made(2002, expires="1970-01-11"), Lock(day=10), ["--expiredate", ""]),
        ("", Made(2002, left=True), Lock(expired=True, day=1), ["--expiredate", ""]),
        ("", Made(2002), Lock(day=10), []),
        ("", None, Lock(expired=True, day=1), []),
    ],
    ids=["new", "set", "changed", "withdrawn", "returned", "by hand", "not ours"],
)
def test_the_day_of_expiry_is_the_declared_one(expires: str, made: Made | None, lock: Lock, options: list[str]) -> None:
    user = User("bob", 2002, "bob", (), "", "/bin/bash", (), expires)

    assert expiry_option(user, made, lock) == options
