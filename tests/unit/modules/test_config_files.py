"""Files are put in place all or none, exactly as declared, and only where something differs."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import shlex
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import yaml

RunModule = Callable[..., Any]

ROOT = pathlib.Path(__file__).resolve().parents[3]

REFUSES_BAD = "/bin/sh -c '! grep bad \"$1\"' sh %s"
"""A validator: the words of the content that it refuses are what it prints."""


@pytest.fixture
def put(run_module: RunModule, me: dict[str, str]) -> RunModule:
    """Put files that belong to this process's user in place."""

    def run(*files: dict[str, Any], **options: Any) -> Any:
        return run_module(
            "config_files", files=[{**me, **file, "path": str(file["path"])} for file in files], **options
        )

    return run


def mode(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def tree(directory: pathlib.Path) -> dict[str, tuple[int, int, bytes | None]]:
    """Everything below a directory: inode, mode and content by name."""
    paths = sorted(directory.rglob("*"))
    return {
        str(path.relative_to(directory)): (
            path.lstat().st_ino,
            mode(path),
            path.read_bytes() if path.is_file() else None,
        )
        for path in paths
    }


def test_a_file_is_written_with_its_content_and_mode(put: RunModule, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "secret"

    done = put({"path": path, "content": "köy\n", "mode": "0400"})

    assert (done.changed, done.result["changed_paths"]) == (True, [str(path)])
    assert path.read_text() == "köy\n"
    assert mode(path) == 0o400


@pytest.mark.parametrize(("state", "expected"), [("file", 0o644), ("directory", 0o755)])
def test_the_umask_of_the_login_does_not_decide_the_mode(
    put: RunModule, tmp_path: pathlib.Path, state: str, expected: int
) -> None:
    path = tmp_path / "new"
    before = os.umask(0o077)
    try:
        put({"path": path, "state": state, "content": "text" if state == "file" else None})
    finally:
        os.umask(before)

    assert mode(path) == expected


def test_a_directory_that_a_file_needs_is_made_for_all_to_read(put: RunModule, tmp_path: pathlib.Path) -> None:
    before = os.umask(0o077)
    try:
        put({"path": tmp_path / "etc/ssh/file", "content": "text"})
    finally:
        os.umask(before)

    assert [mode(tmp_path / "etc"), mode(tmp_path / "etc/ssh")] == [0o755, 0o755]


def test_bytes_that_are_no_text_arrive_unchanged(put: RunModule, tmp_path: pathlib.Path) -> None:
    content = bytes(range(256))

    put({"path": tmp_path / "key", "content_base64": base64.b64encode(content).decode()})

    assert (tmp_path / "key").read_bytes() == content


def test_a_second_run_changes_nothing(put: RunModule, tmp_path: pathlib.Path) -> None:
    (tmp_path / "old").write_text("")
    files = [
        {"path": tmp_path / "directory", "state": "directory", "mode": "0700"},
        {"path": tmp_path / "directory/file", "content": "text", "mode": "0600"},
        {"path": tmp_path / "old", "state": "absent"},
    ]
    put(*files)
    before = tree(tmp_path)

    second = put(*files)

    assert (second.changed, second.result["changed_paths"], second.diff) == (False, [], "")
    assert tree(tmp_path) == before


def test_the_differences_of_two_files_are_lines_of_their_own(put: RunModule, tmp_path: pathlib.Path) -> None:
    (tmp_path / "old").touch()
    file = tmp_path / "new"

    done = put({"path": file, "content": "1\n"}, {"path": tmp_path / "old", "state": "absent"}, check=True)

    assert done.diff == f"--- {file}\n+++ {file}\n@@ -0,0 +1 @@\n+1\nremoved {tmp_path}/old\n"


def test_only_what_differs_is_named_and_replaced(put: RunModule, tmp_path: pathlib.Path) -> None:
    same, other = tmp_path / "same", tmp_path / "other"
    put({"path": same, "content": "1"}, {"path": other, "content": "1"})
    inode = same.stat().st_ino

    done = put({"path": same, "content": "1"}, {"path": other, "content": "2"})

    assert done.result["changed_paths"] == [str(other)]
    assert same.stat().st_ino == inode


def test_a_reader_sees_the_old_or_the_new_content_and_nothing_between(put: RunModule, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with path.open() as reader:
        put({"path": path, "content": "new"})

        assert reader.read() == "old", "the file was written over, not replaced"
    assert path.read_text() == "new"


def test_a_wrong_mode_is_put_right_without_replacing_the_file(put: RunModule, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"
    path.write_text("text")
    path.chmod(0o666)
    inode = path.stat().st_ino

    done = put({"path": path, "content": "text", "mode": "0640"})

    assert done.changed
    assert (mode(path), path.stat().st_ino) == (0o640, inode)


def test_a_file_is_given_to_its_owner(put: RunModule, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"

    done = put({"path": path, "content": "text", "owner": "nobody", "group": "nogroup"})

    if os.geteuid() == 0:
        assert (path.owner(), path.group()) == ("nobody", "nogroup")
    else:
        assert "not permitted" in done.message
        assert not path.exists()


@pytest.mark.parametrize("kind", ["owner", "group"])
def test_an_owner_that_the_node_does_not_have_stops_before_the_first_file(
    put: RunModule, tmp_path: pathlib.Path, kind: str
) -> None:
    done = put(
        {"path": tmp_path / "first", "content": "text"},
        {"path": tmp_path / "second", "content": "text", kind: "no-such-name"},
    )

    assert done.failed
    assert "no-such-name" in done.message
    assert tree(tmp_path) == {}


def test_an_owner_that_a_package_will_bring_is_no_error_in_check_mode(put: RunModule, tmp_path: pathlib.Path) -> None:
    done = put({"path": tmp_path / "file", "content": "text", "owner": "no-such-name"}, check=True)

    assert done.changed


def test_refused_content_leaves_every_file_as_it_was(put: RunModule, tmp_path: pathlib.Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("old")
    second.write_text("old")
    before = tree(tmp_path)

    done = put(
        {"path": tmp_path / "directory", "state": "directory"},
        {"path": first, "content": "good"},
        {"path": second, "content": "bad idea", "validate": REFUSES_BAD},
    )

    assert done.message == f"{second} was not changed, because /bin/sh refuses its new content: bad idea"
    assert tree(tmp_path) == before


def test_accepted_content_is_put_in_place(put: RunModule, tmp_path: pathlib.Path) -> None:
    put({"path": tmp_path / "file", "content": "good", "validate": REFUSES_BAD})

    assert (tmp_path / "file").read_text() == "good"


def test_a_validator_without_a_place_for_the_file_is_a_mistake(put: RunModule, tmp_path: pathlib.Path) -> None:
    done = put({"path": tmp_path / "file", "content": "text", "validate": "/bin/true"})

    assert "%s" in done.message
    assert tree(tmp_path) == {}


def test_what_is_there_is_not_validated_again(put: RunModule, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("bad, but long in use")

    done = put({"path": tmp_path / "file", "content": "bad, but long in use", "validate": REFUSES_BAD})

    assert not done.changed


def test_check_mode_writes_nothing_and_says_what_would_change(put: RunModule, tmp_path: pathlib.Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "gone").write_text("gone")
    before = tree(tmp_path)

    done = put(
        {"path": tmp_path / "new/file", "content": "text", "validate": REFUSES_BAD},
        {"path": tmp_path / "old", "content": "new"},
        {"path": tmp_path / "gone", "state": "absent"},
        {"path": tmp_path / "directory", "state": "directory"},
        check=True,
    )

    assert done.result["changed_paths"] == [str(tmp_path / name) for name in ("new/file", "old", "gone", "directory")]
    assert tree(tmp_path) == before


def test_check_mode_finds_content_that_would_be_refused(put: RunModule, tmp_path: pathlib.Path) -> None:
    done = put({"path": tmp_path / "file", "content": "bad idea", "validate": REFUSES_BAD}, check=True)

    assert done.failed


WATCHED = """
import runpy, sys
from ansible.module_utils.testing import patch_module_args

temporary = []
sys.addaudithook(lambda event, values: temporary.append(values[0]) if event == "tempfile.mkstemp" else None)
try:
    with patch_module_args(eval(sys.argv[1])):
        runpy.run_path("plugins/modules/config_files.py", run_name="__main__")
finally:
    print(temporary)
"""
"""The module in a process of its own, which prints the names of all temporary files that were ever made."""


def test_check_mode_keeps_a_secret_in_memory(me: dict[str, str], tmp_path: pathlib.Path) -> None:
    files = [{"path": str(tmp_path / "key"), "content": "a secret", "mode": "0400", **me}]
    arguments = {"files": files, "_ansible_check_mode": True, "_ansible_remote_tmp": str(tmp_path)}

    done = subprocess.run([sys.executable, "-c", WATCHED, repr(arguments)], cwd=ROOT, capture_output=True, text=True)

    document, temporary = done.stdout.strip().splitlines()
    assert json.loads(document)["changed"] is True
    assert temporary == "[]"


def test_a_write_that_fails_is_said_of_its_file(tmp_path: pathlib.Path, me: dict[str, str]) -> None:
    path = tmp_path / "file"
    arguments = {"files": [{"path": str(path), "content": 1000 * "x", **me}], "_ansible_remote_tmp": str(tmp_path)}
    command = ["prlimit", "--fsize=100", sys.executable, "-B", "-c", WATCHED, repr(arguments)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    document = json.loads(done.stdout.strip().splitlines()[0])
    assert document["msg"] == f"cannot write the files: [Errno 27] File too large: '{path}'"
    assert list(tmp_path.iterdir()) == []


def test_the_difference_is_shown_as_text(put: RunModule, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"
    path.write_text("one\ntwo\n")

    done = put({"path": path, "content": "one\nthree\n"}, {"path": tmp_path / "d", "state": "directory"}, check=True)

    lines = done.diff.splitlines()
    assert lines[:3] == [f"--- {path}", f"+++ {path}", "@@ -1,2 +1,2 @@"]
    assert lines[3:6] == [" one", "-two", "+three"]
    assert lines[6].startswith(f"{tmp_path}/d: directory, ")


@pytest.mark.parametrize("optional", [True, False])
def test_an_optional_file_waits_for_the_directory_it_stands_in(
    put: RunModule, tmp_path: pathlib.Path, optional: bool
) -> None:
    path = tmp_path / "cloud.cfg.d" / "file"

    done = put({"path": path, "content": "text", "optional": optional})

    assert done.changed is not optional
    assert path.exists() is not optional


def test_an_optional_file_is_written_where_its_directory_is(put: RunModule, tmp_path: pathlib.Path) -> None:
    put({"path": tmp_path / "file", "content": "text", "optional": True})

    assert (tmp_path / "file").read_text() == "text"


@pytest.mark.parametrize("kind", ["file", "directory", "link", "broken link"])
def test_what_is_to_be_absent_goes_whatever_it_is(put: RunModule, tmp_path: pathlib.Path, kind: str) -> None:
    path, target = tmp_path / "old", tmp_path / "target"
    target.mkdir()
    (target / "kept").write_text("kept")
    match kind:
        case "file":
            path.write_text("")
        case "directory":
            (path / "below").mkdir(parents=True)
        case "link":
            path.symlink_to(target)
        case "broken link":
            path.symlink_to(tmp_path / "nowhere")

    done = put({"path": path, "state": "absent"})

    assert done.changed
    assert not os.path.lexists(path)
    assert (target / "kept").exists()


def test_a_link_in_the_place_of_a_file_is_replaced_and_its_target_left(put: RunModule, tmp_path: pathlib.Path) -> None:
    path, target = tmp_path / "file", tmp_path / "target"
    target.write_text("kept")
    path.symlink_to(target)

    put({"path": path, "content": "new"})

    assert not path.is_symlink()
    assert (path.read_text(), target.read_text()) == ("new", "kept")


def test_a_directory_may_stand_elsewhere_behind_a_link(put: RunModule, tmp_path: pathlib.Path) -> None:
    """As if an administrator had moved /var/log to a bigger disk."""
    (tmp_path / "disk").mkdir(mode=0o755)
    path = tmp_path / "log"
    path.symlink_to(tmp_path / "disk")
    directory = {"path": path, "state": "directory", "mode": "0750"}

    first, second = put(directory), put(directory)

    assert (first.changed, second.changed) == (True, False)
    assert path.is_symlink()
    assert mode(tmp_path / "disk") == 0o750


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(("wanted", "seen"), [("file", "directory"), ("directory", "file")])
def test_another_kind_of_thing_is_never_replaced(
    put: RunModule, tmp_path: pathlib.Path, wanted: str, seen: str, check: bool
) -> None:
    path = tmp_path / "place"
    if seen == "directory":
        path.mkdir()
        (path / "kept").write_text("kept")
    else:
        path.write_text("kept")
    before = tree(tmp_path)

    done = put(
        {"path": tmp_path / "first", "content": "text"},
        {"path": path, "state": wanted, "content": "text" if wanted == "file" else None},
        check=check,
    )

    assert done.message == f"expected {path} to be a {wanted}, seen: a {seen}; move it away"
    assert tree(tmp_path) == before


def test_a_file_in_a_new_directory_keeps_its_owner_across_file_systems(put: RunModule, tmp_path: pathlib.Path) -> None:
    """Content is validated in the temporary directory while its own does not exist yet: perhaps another file system."""
    shared_memory = pathlib.Path("/dev/shm")
    assert shared_memory.stat().st_dev != tmp_path.stat().st_dev
    path = tmp_path / "new/file"

    # Only root can give a file away; others see that it arrives.
    owner = {"owner": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
    file = {"path": path, "content": "text", "mode": "0600", "validate": REFUSES_BAD, **owner}

    put(file, _ansible_remote_tmp=str(shared_memory))

    assert (mode(path), path.owner()) == (0o600, owner.get("owner", tmp_path.owner()))
    assert os.listdir(path.parent) == ["file"]


@pytest.mark.parametrize(
    "file",
    [{}, {"content": "text", "content_base64": "dGV4dA=="}],
    ids=["no content", "two contents"],
)
def test_a_file_has_exactly_one_content(put: RunModule, tmp_path: pathlib.Path, file: dict[str, Any]) -> None:
    done = put({"path": tmp_path / "file", **file})

    assert done.failed
    assert tree(tmp_path) == {}


def test_nothing_temporary_is_left(put: RunModule, tmp_path: pathlib.Path) -> None:
    put(
        {"path": tmp_path / "a", "content": "text"},
        {"path": tmp_path / "b", "content": "text", "validate": REFUSES_BAD},
    )
    put({"path": tmp_path / "c", "content": "bad", "validate": REFUSES_BAD})

    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@pytest.fixture
def told(tmp_path: pathlib.Path) -> Callable[[], list[str]]:
    """What the commands of `tell` have written, in their order."""
    return lambda: (tmp_path / "told").read_text().split() if (tmp_path / "told").exists() else []


@pytest.fixture
def configure(put: RunModule, tmp_path: pathlib.Path) -> RunModule:
    """Put files in place, each a path with its content and the words that its commands tell."""

    def run(*files: tuple[str, str, list[str]], **options: Any) -> Any:
        tell = (
            f"sh -c 'cat {tmp_path}/new* > {tmp_path}/seen; test ! -e {tmp_path}/deaf && echo {{}} >> {tmp_path}/told'"
        )
        entries = [
            {"path": tmp_path / path, "content": content, "apply": [tell.format(word) for word in words]}
            for path, content, words in files
        ]
        return put(*entries, pending=str(tmp_path / "pending"), **options)

    return run


def test_each_command_runs_once_after_all_files_are_in_place(
    configure: RunModule, told: Callable[[], list[str]], tmp_path: pathlib.Path
) -> None:
    files = [("new1", "1", ["b", "a"]), ("new2", "2", ["a", "c"])]

    first, second = configure(*files), configure(*files)

    assert told() == ["b", "a", "c"]
    assert (tmp_path / "seen").read_text() == "12"
    assert (first.changed, len(first.result["commands"])) == (True, 3)
    assert (second.changed, second.result["commands"]) == (False, [])


def test_only_the_commands_of_what_changed_are_run(configure: RunModule, told: Callable[[], list[str]]) -> None:
    configure(("new1", "1", ["a"]), ("new2", "2", ["b"]))

    configure(("new1", "1", ["a"]), ("new2", "3", ["b"]))

    assert told() == ["a", "b", "b"]


def test_a_command_that_an_earlier_run_did_not_come_to_is_still_run(
    configure: RunModule, told: Callable[[], list[str]]
) -> None:
    configure(("new1", "1", ["a"]), ("new2", "2", ["b"]), defer=True)
    assert told() == []

    second = configure(("new1", "1", ["a"]))

    assert (second.changed, second.result["changed_paths"], told()) == (True, [], ["a"])
    assert "still to do" in second.diff
    assert not configure(("new1", "1", ["a"])).changed


def test_a_command_that_fails_is_named_and_tried_again(
    configure: RunModule, told: Callable[[], list[str]], tmp_path: pathlib.Path
) -> None:
    (tmp_path / "deaf").touch()
    failed = configure(("new1", "1", ["a"]))
    (tmp_path / "deaf").unlink()

    again = configure(("new1", "1", ["a"]))

    assert "echo a" in failed.result["msg"]
    assert "failed; the next run will try it again" in failed.result["msg"]
    assert (again.changed, told()) == (True, ["a"])


def test_a_dry_run_says_which_commands_would_run_and_runs_none(
    configure: RunModule, told: Callable[[], list[str]]
) -> None:
    dry = configure(("new1", "1", ["a"]), check=True)

    assert (dry.changed, len(dry.result["commands"]), told()) == (True, 1, [])
    assert configure(("new1", "1", ["a"])).changed


@pytest.mark.parametrize("defer", [False, True])
def test_systemd_reads_its_files_before_a_daemon_takes_any(
    configure: RunModule,
    told: Callable[[], list[str]],
    load_module: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
    defer: bool,
) -> None:
    module = load_module("config_files")
    monkeypatch.setattr(module, "UNITS", tmp_path / "units")
    monkeypatch.setattr(module, "RELOAD", f"sh -c 'echo reload >> {tmp_path}/told'")
    files = [("new1", "1", ["a"]), ("units/a.service.d/new2", "2", ["a"])]

    configure(*files, defer=defer)
    configure(*files)

    assert told() == ["reload", "a"]


def test_a_file_that_the_service_lost_is_loaded_again(put: RunModule, tmp_path: pathlib.Path) -> None:
    """As `nft flush ruleset` does with a table, whose file and unit stay as they are."""
    loaded = tmp_path / "loaded"
    file = {"path": tmp_path / "table.nft", "content": "1", "loaded": f"cat {loaded}", "apply": [f"touch {loaded}"]}
    pending = str(tmp_path / "pending")
    put(file, pending=pending)
    assert not put(file, pending=pending).changed
    loaded.unlink()

    shown = put(file, pending=pending, check=True)
    assert (shown.changed, shown.diff, loaded.exists()) == (True, f"{tmp_path}/table.nft is not loaded\n", False)
    assert (put(file, pending=pending).changed, loaded.exists()) == (True, True)
    assert not put(file, pending=pending).changed


def test_a_host_name_that_a_program_has_set_is_seen() -> None:
    wanted = yaml.safe_load((ROOT / "roles/os/vars/main.yml").read_text())["__os_files"][0]

    def code(name: str) -> int:
        command = wanted["loaded"].replace("{{ inventory_hostname }}", name)
        return subprocess.run(shlex.split(command), check=False).returncode

    assert wanted["path"] == "/etc/hostname"
    assert (code(socket.gethostname()), code(f"{socket.gethostname()}x")) == (0, 1)


def test_a_file_of_a_unit_is_read_by_systemd_first(load_module: Callable[[str], Any]) -> None:
    wanted = {"state": "absent", "validate": None, "owner": "root", "group": "root", "mode": None, "optional": False}
    content = {"content": None, "content_base64": None, "loaded": None, "apply": ["systemctl try-restart a.service"]}
    entry = load_module("config_files").Entry

    unit = entry({**wanted, **content, "path": "/etc/systemd/system/a.service.d/slurmstead.conf"})
    other = entry({**wanted, **content, "path": "/etc/default/a"})

    assert unit.apply == ["systemctl daemon-reload", "systemctl try-restart a.service"]
    assert other.apply == ["systemctl try-restart a.service"]


def programs(**texts: str) -> dict[str, str]:
    """Programs as the module is given them."""
    return {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}


def test_a_directory_of_programs_holds_them_and_nothing_else(put: RunModule, tmp_path: pathlib.Path) -> None:
    directory = tmp_path / "health.d"
    wanted = {"path": directory, "state": "directory", "programs": programs(a="#!/bin/sh\n", b="#!/bin/sh\n")}
    put(wanted)
    before = tree(tmp_path)

    second = put(wanted)

    assert (second.changed, tree(tmp_path)) == (False, before)
    assert (mode(directory), mode(directory / "a"), sorted(os.listdir(directory))) == (0o755, 0o755, ["a", "b"])

    # One that is no longer wanted, and what a killed run, an editor and an administrator left.
    for name in (".a.x1y2", "a~", "own"):
        (directory / name).write_text("")
    (directory / "old").mkdir()
    (directory / "old/file").write_text("")
    inode = (directory / "a").stat().st_ino

    preview = put({**wanted, "programs": programs(a="#!/bin/sh\n")}, _ansible_check_mode=True)
    assert sorted(os.listdir(directory)) == [".a.x1y2", "a", "a~", "b", "old", "own"]
    done = put({**wanted, "programs": programs(a="#!/bin/sh\n")})

    assert preview.result["changed_paths"] == done.result["changed_paths"]
    assert done.result["changed_paths"] == [str(directory / name) for name in (".a.x1y2", "a~", "b", "old", "own")]
    assert os.listdir(directory) == ["a"]
    assert (directory / "a").stat().st_ino == inode

    (directory / "a").chmod(0o644)
    assert put({**wanted, "programs": programs(a="#!/bin/sh\n")}).result["changed_paths"] == [str(directory / "a")]
    assert mode(directory / "a") == 0o755

    assert put({**wanted, "programs": {}}).changed
    assert os.listdir(directory) == []
