"""Accounts, keys and homes are brought to what is declared; users who leave are locked out, and lose nothing."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import pwd
import stat
import types
from collections.abc import Callable
from typing import Any

import pytest

from ansible.module_utils.slurmstead.identity import departures
from ansible.module_utils.slurmstead.identity.accounts import Group, Known, User
from ansible.module_utils.slurmstead.storage import mounts, units

RunModule = Callable[..., Any]

NEW = User("nobody-yet", 54321, "nobody-yet", (), "", "/bin/bash", ())
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMFrb3Z5 alice@laptop"


@pytest.fixture
def local_accounts(
    load_module: Callable[[str], types.ModuleType], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> types.ModuleType:
    """The module, with keys and the skeleton of homes in a directory of the test."""
    module = load_module("local_accounts")
    monkeypatch.setattr(module, "KEYS", tmp_path / "keys")
    monkeypatch.setattr(module, "SKELETON", tmp_path / "skel")
    monkeypatch.setattr(departures, "RECORD", tmp_path / "state/accounts.json")
    monkeypatch.setattr(departures, "SHADOW", tmp_path / "shadow")
    (tmp_path / "shadow").write_text("".join(f"{user.pw_name}:$y$1:20000:0:99999:7:::\n" for user in pwd.getpwall()))
    (tmp_path / "skel/below").mkdir(parents=True)
    (tmp_path / "skel/.profile").write_text("umask 027\n")
    (tmp_path / "skel/below/link").symlink_to("../.profile")
    return module


def existing() -> tuple[User, str]:
    """A user of this machine whose home bears its name, and the directory that the home is in."""
    for there in pwd.getpwall():
        parent, name = os.path.split(there.pw_dir)
        if name == there.pw_name and parent != "/":
            return User(name, there.pw_uid, name, (), there.pw_gecos, there.pw_shell, ()), parent
    raise LookupError("no user of this machine has a home of its own name")


def myself() -> User:
    """The user of this process, under whose name homes can be made."""
    me = pwd.getpwuid(os.geteuid())
    return User(me.pw_name, me.pw_uid, me.pw_name, (), "", me.pw_shell, ())


def mode(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_new_user_comes_after_its_group(local_accounts: types.ModuleType) -> None:
    user = dataclasses.replace(NEW, comment="New One", shell="/bin/zsh", groups=("users", "video"))

    commands = local_accounts.account_commands([Group("nobody-yet", 54321)], [user], "/share/home", {})

    assert [" ".join(command) for command in commands] == [
        "groupadd --gid 54321 nobody-yet",
        "useradd --uid 54321 --gid nobody-yet --no-create-home --home-dir /share/home/nobody-yet --shell /bin/zsh "
        "--comment New One --groups users,video nobody-yet",
    ]


def test_a_user_that_is_as_declared_needs_no_command(local_accounts: types.ModuleType) -> None:
    user, home_root = existing()

    assert local_accounts.account_commands([], [user], home_root, {}) == []


@pytest.mark.parametrize(
    ("change", "options"),
    [
        ({"shell": "/bin/other"}, ["--shell", "/bin/other"]),
        ({"comment": "Some One"}, ["--comment", "Some One"]),
        ({"groups": ("users", "tty")}, ["--append", "--groups", "tty,users"]),
    ],
    ids=["shell", "comment", "groups"],
)
def test_only_what_differs_is_changed(
    local_accounts: types.ModuleType, change: dict[str, Any], options: list[str]
) -> None:
    user, home_root = existing()

    commands = local_accounts.account_commands([], [dataclasses.replace(user, **change)], home_root, {})

    assert commands == [["usermod", *options, user.name]]


def test_a_home_elsewhere_is_moved_in_name_only(local_accounts: types.ModuleType) -> None:
    user, _ = existing()

    commands = local_accounts.account_commands([], [user], "/share/home", {})

    assert commands == [["usermod", "--home", f"/share/home/{user.name}", user.name]]


def test_a_group_that_is_there_is_left_alone(local_accounts: types.ModuleType) -> None:
    assert local_accounts.account_commands([Group("root", 0)], [], "/share/home", {}) == []


def test_a_home_is_made_from_the_skeleton_for_its_user_alone(
    local_accounts: types.ModuleType, tmp_path: pathlib.Path
) -> None:
    user, home = myself(), tmp_path / "homes" / "alice"
    home.parent.mkdir()

    local_accounts.make_home(user, home)

    assert sorted(str(path.relative_to(home)) for path in home.rglob("*")) == [".profile", "below", "below/link"]
    assert os.readlink(home / "below/link") == "../.profile"
    assert mode(home) == 0o700
    assert {path.lstat().st_uid for path in [home, *home.rglob("*")]} == {user.uid}
    assert os.listdir(home.parent) == ["alice"]


def test_a_home_that_was_interrupted_is_made_anew(local_accounts: types.ModuleType, tmp_path: pathlib.Path) -> None:
    (tmp_path / ".alice.new/half").mkdir(parents=True)

    local_accounts.make_home(myself(), tmp_path / "alice")

    assert not (tmp_path / ".alice.new").exists()
    assert not (tmp_path / "alice/half").exists()


def arguments(user: User, home_root: str, **more: Any) -> dict[str, Any]:
    """Arguments that describe a user of this machine as it is."""
    declared = {"name": user.name, "uid": user.uid, "comment": user.comment, "shell": user.shell, "group": user.group}
    return {"users": [{**declared, "keys": list(user.keys)}], "home_root": home_root, **more}


def test_keys_are_written_for_sshd_to_read_and_only_once(
    local_accounts: types.ModuleType, run_module: RunModule, tmp_path: pathlib.Path
) -> None:
    user, home_root = existing()
    declared = arguments(dataclasses.replace(user, keys=(f"{KEY}\n", "ssh-rsa BBBB")), home_root)
    before = os.umask(0o077)
    try:
        first, second = run_module("local_accounts", **declared), run_module("local_accounts", **declared)
    finally:
        os.umask(before)

    file = tmp_path / "keys" / user.name
    assert (first.result["made"], first.changed, second.changed) == ([f"keys of {user.name}"], True, False)
    assert file.read_text() == f"{KEY}\nssh-rsa BBBB\n"
    # sshd reads them as the user that logs in.
    assert (mode(file.parent), mode(file)) == (0o755, 0o644)


def test_a_key_that_is_declared_no_more_logs_in_no_more(
    local_accounts: types.ModuleType, run_module: RunModule, tmp_path: pathlib.Path
) -> None:
    user, home_root = existing()
    run_module("local_accounts", **arguments(dataclasses.replace(user, keys=(KEY,)), home_root))

    done = run_module("local_accounts", **arguments(user, home_root))

    assert done.changed
    assert (tmp_path / "keys" / user.name).read_text() == ""


def test_homes_are_made_where_they_are_stored_and_never_again(
    local_accounts: types.ModuleType, run_module: RunModule, tmp_path: pathlib.Path
) -> None:
    user, home_root = existing()
    if os.geteuid():
        # Only root can give a home away: others make their own.
        user, home_root = myself(), os.path.dirname(pwd.getpwuid(os.geteuid()).pw_dir)
        user = dataclasses.replace(user, comment=pwd.getpwnam(user.name).pw_gecos)
    store = tmp_path / "store/home"
    declared = arguments(user, home_root, home_store=str(store))
    before = os.umask(0o077)
    try:
        first = run_module("local_accounts", **declared)
    finally:
        os.umask(before)
    (store / user.name / "work").write_text("a year")

    second = run_module("local_accounts", **declared)

    assert first.result["made"] == [f"home {store / user.name}"]
    assert second.changed is False
    assert (store / user.name / "work").exists()
    assert mode(store) == 0o755


@pytest.mark.parametrize("kind", ["not mounted", "mounted", "a directory", "an earlier share"])
def test_no_home_is_made_below_the_mount_point_of_a_share_that_is_not_mounted(
    local_accounts: types.ModuleType,
    run_module: RunModule,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    monkeypatch.setattr(units, "UNITS", tmp_path / "units")
    place = tmp_path / "srv"
    units.UNITS.mkdir()
    place.mkdir()
    unit = units.UNITS / f"{units.escape(str(place))}.mount"
    if kind != "a directory":
        unit.write_text(f"[Unit]\nDescription={units.OLD if kind == 'an earlier share' else 'Volume cluster/share'}\n")
    seen = [mounts.Mount("253:0", str(place), "ext4", "/dev/dm-0")] if kind == "mounted" else []
    monkeypatch.setattr(mounts, "mounts", lambda: seen)
    user, home_root = existing()
    declared = {**arguments(user, home_root, home_store=str(place / "home")), "users": []}

    tried = run_module("local_accounts", check=True, **declared)
    done = run_module("local_accounts", **declared)

    refused = kind == "not mounted"
    assert (tried.failed, done.failed) == (False, refused)
    assert (place / "home").exists() is not refused
    assert not refused or f"run `scripts/stead up`, or `systemctl start '{unit.name}'`" in done.message


def test_check_mode_makes_nothing_and_says_what_it_would(
    local_accounts: types.ModuleType, run_module: RunModule, tmp_path: pathlib.Path
) -> None:
    done = run_module(
        "local_accounts",
        users=[{"name": NEW.name, "uid": NEW.uid, "keys": [KEY]}],
        home_root="/share/home",
        home_store=str(tmp_path / "store"),
        check=True,
    )

    assert done.changed
    assert [line.split()[0] for line in done.result["made"]] == ["groupadd", "useradd", "keys", "home"]
    assert done.diff == "\n".join(done.result["made"])
    assert sorted(os.listdir(tmp_path)) == ["shadow", "skel"]


def test_a_conflict_stops_before_anything_is_made(
    local_accounts: types.ModuleType, run_module: RunModule, tmp_path: pathlib.Path
) -> None:
    done = run_module(
        "local_accounts",
        groups=[{"name": NEW.name, "gid": NEW.uid}],
        users=[{"name": "alice", "uid": 0, "keys": [KEY]}],
        home_root="/share/home",
        home_store=str(tmp_path / "store"),
    )

    assert done.failed
    assert "accounts_users: uid 0 of alice belongs to root here; declare another uid for alice" in done.message
    assert sorted(os.listdir(tmp_path)) == ["shadow", "skel"]


LOCKED = {"bob": departures.Lock(password=True, expired=True)}
OPEN = {"bob": departures.Lock(password=True)}
THERE = Known({"bob": 2002}, {"bob": 2002}, {"bob": 2002}, members={"bob": frozenset({"sudo"})})


def test_a_user_who_left_is_locked_and_loses_every_group(local_accounts: types.ModuleType) -> None:
    commands = local_accounts.lock_commands(["bob"], THERE, OPEN)

    assert commands == [["usermod", "--expiredate", "1", "--groups", "", "bob"]]


def test_a_stored_password_is_locked_too(local_accounts: types.ModuleType) -> None:
    commands = local_accounts.lock_commands(["bob"], dataclasses.replace(THERE, members={}), {"bob": departures.Lock()})

    assert commands == [["usermod", "--lock", "--expiredate", "1", "bob"]]


def test_who_is_locked_out_is_locked_once(local_accounts: types.ModuleType) -> None:
    assert local_accounts.lock_commands(["bob"], dataclasses.replace(THERE, members={}), LOCKED) == []


def test_the_groups_of_an_account_that_we_made_are_the_declared_ones(local_accounts: types.ModuleType) -> None:
    name = next(name for name in ("daemon", "nobody") if name in {user.pw_name for user in pwd.getpwall()})
    there = pwd.getpwnam(name)
    user = User(name, there.pw_uid, name, ("video", "tty"), there.pw_gecos, there.pw_shell, ())
    home_root = os.path.dirname(there.pw_dir)

    ours = local_accounts.account_commands([], [user], home_root, {name: departures.Made(there.pw_uid)})
    others = local_accounts.account_commands([], [user], home_root, {})

    assert ours[-1][-3:] == ["--groups", "tty,video", name]
    assert others[-1][-4:] == ["--append", "--groups", "tty,video", name]


def test_an_account_of_another_maker_is_left_alone_when_it_leaves(
    local_accounts: types.ModuleType, run_module: RunModule
) -> None:
    user, home_root = existing()
    run_module("local_accounts", **arguments(user, home_root))

    done = run_module("local_accounts", users=[], home_root=home_root)

    assert done.changed is False
    assert departures.read(departures.RECORD) == {}


def test_a_record_that_cannot_be_read_stops_the_run(
    local_accounts: types.ModuleType, run_module: RunModule, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "state").mkdir()
    departures.RECORD.write_text("{")

    done = run_module("local_accounts", users=[], home_root="/share/home")

    assert done.failed
    assert "is not a record of accounts" in done.message


@pytest.fixture
def ann(local_accounts: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> departures.Made:
    """Ann of people.yml has an account here; her jobs and processes are imagined."""
    made = departures.Made(10002, in_people=True)
    known = Known({"ann": 10002}, {"ann": 10002}, {"ann": 10002})
    monkeypatch.setattr(local_accounts.accounts, "known", lambda: known)
    monkeypatch.setattr(local_accounts, "end_sessions", lambda module, uids: [])
    departures.SHADOW.write_text("ann:!:20000:0:99999:7:::\n")
    departures.write({"ann": made}, departures.RECORD)
    return made


MISSING: dict[str, Any] = {"groups": [], "users": [], "expired": [], "missing": True}
EMPTY: dict[str, Any] = {"groups": [], "users": [], "expired": []}


def test_people_whose_file_disappeared_during_the_run_are_not_locked(
    run_module: RunModule, ann: departures.Made, tmp_path: pathlib.Path
) -> None:
    done = run_module("local_accounts", people=MISSING, home_root="/share/home", cancel_jobs=True)

    assert done.failed
    assert done.message.startswith("files/people.yml is missing, so ann would be locked and lose their jobs; restore")
    assert departures.read(departures.RECORD) == {"ann": ann}
    assert not (tmp_path / "keys").exists()


def test_people_whom_an_empty_file_locked_do_not_need_the_file_any_more(
    run_module: RunModule, ann: departures.Made
) -> None:
    left = run_module("local_accounts", people=EMPTY, home_root="/share/home", cancel_jobs=True, check=True)
    departures.write({"ann": dataclasses.replace(ann, left=True)}, departures.RECORD)
    departures.SHADOW.write_text("ann:!:20000:0:99999:7::1:\n")

    done = run_module("local_accounts", people=MISSING, home_root="/share/home")

    assert (left.failed, left.result["cancel"]) == (False, ["ann"])
    assert left.result["made"][0] == "usermod --expiredate 1 ann"
    assert not done.failed


def test_a_cluster_that_never_had_people_does_not_need_their_file(
    local_accounts: types.ModuleType, run_module: RunModule
) -> None:
    user, home_root = existing()
    declared = arguments(user, home_root, people=MISSING)

    assert [run_module("local_accounts", **declared).failed for _ in range(2)] == [False, False]


def test_people_get_accounts_like_other_users(local_accounts: types.ModuleType, run_module: RunModule) -> None:
    people = {
        "groups": [{"name": "course", "gid": 54322}],
        "users": [{"name": NEW.name, "uid": NEW.uid, "groups": ["course"]}],
    }

    done = run_module("local_accounts", people=people, home_root="/share/home", check=True)

    assert done.result["made"][:2] == ["groupadd --gid 54322 course", f"groupadd --gid {NEW.uid} {NEW.name}"]
    assert done.result["made"][2].endswith(f"--groups course {NEW.name}")
