"""What a program needs, as one text for pip; and environments that are complete or absent."""

import os
import pathlib
import subprocess
import sys
import time
from typing import Any

import pytest

from slurmstead.client import environment, submitting
from slurmstead.client.remote import sweep, venv
from slurmstead.client.remote.store import Store
from slurmstead.client.settings import Settings
from slurmstead.errors import UsageError


def write(folder: pathlib.Path, **texts: str) -> pathlib.Path:
    for name, text in texts.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def test_the_lock_says_more_than_the_wish(tmp_path: pathlib.Path) -> None:
    lock = 'lock-version = "1.0"\n[[packages]]\nname = "a"\nversion = "2"\nwheels = [{hashes = {sha256 = "ff"}}]\n'
    write(tmp_path, requirements_txt="b", pyproject_toml='[project]\ndependencies = ["c"]\n')
    wished = environment.find(tmp_path, Settings())
    write(tmp_path, pylock_toml=lock)
    locked = environment.find(tmp_path, Settings())

    assert wished is not None and wished["requirements"] == "b\n"
    assert locked is not None and locked["requirements"] == "a==2 --hash=sha256:ff\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements_txt", "# nothing\n\n"),
        ("pyproject_toml", "[tool.x]\n"),
        ("pyproject_toml", "[tool]\npoetry = 'x'\n"),
        ("pyproject_toml", "[tool.poetry.dependencies]\npython = '^3.11'\n"),
        ("pyproject_toml", "[project]\ndependencies = []\n"),
    ],
)
def test_nothing_to_install_is_no_environment(tmp_path: pathlib.Path, name: str, text: str) -> None:
    assert environment.find(write(tmp_path, **{name: text}), Settings()) is None


def test_included_files_stand_in_their_place(tmp_path: pathlib.Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "base.txt").write_text("b==1 \\\n    --hash=sha256:aa\n-r ../requirements.txt\n")
    write(tmp_path, requirements_txt="a\n-r more/base.txt\nc\n")

    assert environment.read(tmp_path, "requirements.txt") == "a\nb==1 --hash=sha256:aa\nc\n"


@pytest.mark.parametrize("way", ["a setting", "a line", "a link"])
def test_no_file_outside_of_the_folder_is_sent(tmp_path: pathlib.Path, way: str) -> None:
    """The folder may be another user's, and name another head node."""
    secret, folder = tmp_path / "id_ed25519", tmp_path / "folder"
    secret.write_text("secret\n")
    folder.mkdir()
    if way == "a link":
        (folder / "requirements.txt").symlink_to(secret)
    else:
        write(folder, requirements_txt="-r ../id_ed25519\n" if way == "a line" else "")
    with pytest.raises(UsageError, match="which is outside of it"):
        environment.find(folder, Settings(requirements=str(secret) if way == "a setting" else None))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("# of ours @ ./here\na  # and @ /there\n", "# of ours @ ./here\na  # and @ /there\n"),
        ("# a comment \\\na\n", "# a comment \\\na\n"),
        ("a==1\\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n", "a==1 --hash=sha256:aa --hash=sha256:bb\n"),
        (
            "a @ https://x/a.whl#sha256=ff \\\n  ; python_version > '3'\n",
            "a @ https://x/a.whl#sha256=ff ; python_version > '3'\n",
        ),
        ("\ufeff-r more.txt\n", "b\n"),
    ],
    ids=["comments", "a comment ends with its line", "hashes", "a fragment is no comment", "saved by Windows"],
)
def test_requirements_mean_what_they_mean_to_pip(tmp_path: pathlib.Path, text: str, read: str) -> None:
    write(tmp_path, requirements_txt=text, more_txt="b\n")

    assert environment.read(tmp_path, "requirements.txt") == read


@pytest.mark.parametrize("line", ["-e .", "./local", "file:x.whl", "a @ file:///x", "--editable=.", "-c limits.txt"])
def test_what_only_this_computer_has_is_refused(tmp_path: pathlib.Path, line: str) -> None:
    with pytest.raises(UsageError):
        environment.read(write(tmp_path, requirements_txt=f"{line}\n"), "requirements.txt")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("requirements.txt", b"a  # M\xfcller\n", "is not UTF-8"),
        (
            "pyproject.toml",
            b'[tool.poetry.dependencies]\npython = "^3.11"\na = "1"\n',
            "in a table that only Poetry reads",
        ),
        ("pyproject.toml", b'[project]\ndependencies = "rich"\n', "to be a list of strings, seen 'rich'"),
        (
            "pylock.toml",
            b'lock-version = "1.0"\n[[packages]]\nversion = "1"\n',
            "expected a name in each of its packages",
        ),
        ("pyproject.toml", b'project = "rich"\n', "to be a list of strings, seen 'rich'"),
        ("pyproject.toml", b'[project]\ndependencies = ["a @ file:///a"]\n', "is a package on this computer"),
    ],
)
def test_requirements_that_cannot_be_read_are_refused(
    tmp_path: pathlib.Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=said):
        environment.find(tmp_path, Settings())


def test_a_lock_that_only_uv_reads_needs_uv(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="only uv can read"):
        environment.find(write(tmp_path, uv_lock=""), Settings())


def test_uv_is_asked_for_its_lock(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "uv"
    fake.write_text('#!/bin/sh\necho "a==1 --hash=sha256:ff"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = environment.find(write(tmp_path, uv_lock=""), Settings())

    assert found is not None and found["requirements"] == "a==1 --hash=sha256:ff\n"


def test_other_wheels_are_another_environment(tmp_path: pathlib.Path) -> None:
    (tmp_path / "wheels").mkdir()
    with pytest.raises(UsageError, match="expected wheels"):
        environment.find(write(tmp_path, requirements_txt="a"), Settings(wheels="wheels"))
    digests = []
    for content in ("1", "2"):
        (tmp_path / "wheels" / "a-1-py3-none-any.whl").write_text(content)
        found = environment.find(tmp_path, Settings(wheels="wheels"))
        assert found is not None
        digests.append(found["wheels_digest"])

    assert digests[0] != digests[1]


@pytest.mark.parametrize("name", ["wheels", "./wheels/", "link"])
def test_wheels_are_submitted_whatever_ignore_files_exclude(tmp_path: pathlib.Path, name: str) -> None:
    folder = write(tmp_path, requirements_txt="a", main_py="", _gitignore="wheels/\n*.whl\n/link\n")
    (folder / "wheels").mkdir()
    for file in ("a-1-py3-none-any.whl", "notes"):
        (folder / "wheels" / file).write_text("")
    (folder / "link").symlink_to("wheels")
    order = submitting.order_of(folder, Settings(wheels=name))

    assert [file.path for file in order.folder.files if "wheels/" in file.path] == ["wheels/a-1-py3-none-any.whl"]
    assert order.request()["environment"]["wheels"] == "wheels"


def test_wheels_can_be_next_to_the_program(tmp_path: pathlib.Path) -> None:
    found = environment.find(write(tmp_path, requirements_txt="a", a_whl=""), Settings(wheels="."))

    assert found is not None and found["wheels"] == "."


@pytest.mark.parametrize("name", ["..", "/usr", "none"])
def test_wheels_outside_the_folder_are_refused(tmp_path: pathlib.Path, name: str) -> None:
    write(tmp_path, x_whl="")
    folder = tmp_path / "project"
    folder.mkdir()
    order = submitting.order_of(write(folder, requirements_txt="a", main_py=""), Settings(wheels=name))

    with pytest.raises(UsageError, match="expected wheels in"):
        order.request()


PYTHON = venv.Python(os.path.realpath(sys.executable), "3.11", "linux-x86_64")
WANTED: dict[str, Any] = {"requirements": "a==1\n", "index": None}


@pytest.mark.parametrize(
    ("wanted", "python"),
    [
        ({**WANTED, "requirements": "a==2\n"}, PYTHON),
        ({**WANTED, "index": "https://packages.example"}, PYTHON),
        ({**WANTED, "wheels_digest": "ff"}, PYTHON),
        ({**WANTED, "container": "/share/images/python"}, PYTHON),
        (WANTED, PYTHON._replace(path="/usr/local/bin/python3")),
        (WANTED, PYTHON._replace(version="3.13")),
        (WANTED, PYTHON._replace(platform="linux-aarch64")),
    ],
)
def test_all_that_decides_what_is_in_it_makes_another_environment(wanted: dict[str, Any], python: venv.Python) -> None:
    assert venv.key(wanted, python) != venv.key(WANTED, PYTHON)


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({}, []),
        ({"wheels": "/w"}, ["--find-links=/w", "--no-index"]),
        ({"index": "https://i"}, ["--index-url=https://i"]),
        ({"wheels": "/w", "index": "https://i"}, ["--find-links=/w", "--index-url=https://i"]),
    ],
    ids=str,
)
def test_pip_looks_only_where_it_is_told(given: dict[str, str], options: list[str]) -> None:
    command = venv.install_command(pathlib.Path("/e"), given, pathlib.Path("/r"))

    assert command[:4] == ["/e/bin/python", "-m", "pip", "install"]
    assert command[7:-1] == options


class FakeBuild:
    """Takes the place of venv and pip; ends with the codes that are given. Where pip is, is asked for real."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.commands: list[list[str]] = []
        self.real = subprocess.run

    def __call__(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[Any]:
        if "-c" in command:
            return self.real(command, **options)
        self.commands.append(command)
        if "venv" in command:
            pathlib.Path(command[-1]).mkdir()
        return subprocess.CompletedProcess(command, self.codes.pop(0) if self.codes else 0)


def ensure(tmp_path: pathlib.Path, run: str = "run") -> pathlib.Path:
    (tmp_path / run).mkdir(exist_ok=True)
    return venv.ensure(tmp_path / "environments", WANTED, PYTHON, tmp_path / "log", {}, tmp_path / run)


def names(tmp_path: pathlib.Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "environments").iterdir() if path.suffix != ".lock")


@pytest.mark.slow
def test_an_environment_is_built_once(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = FakeBuild()
    monkeypatch.setattr(subprocess, "run", build)
    first, second = ensure(tmp_path), ensure(tmp_path)

    assert first == second
    assert len(build.commands) == 2
    assert names(tmp_path) == [venv.key(WANTED, PYTHON), first.name]


@pytest.mark.slow
@pytest.mark.parametrize("codes", [(1,), (0, 1), (0, -9)], ids=str)
def test_a_build_that_fails_leaves_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, codes: tuple[int, ...]
) -> None:
    monkeypatch.setattr(subprocess, "run", FakeBuild(*codes))
    with pytest.raises(venv.BuildError):
        ensure(tmp_path)

    assert names(tmp_path) == []


@pytest.mark.slow
def test_a_build_that_failed_is_tried_again_by_the_next_run_only(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = FakeBuild(0, 1)
    monkeypatch.setattr(subprocess, "run", build)
    for _ in range(2):
        with pytest.raises(venv.BuildError, match="exited with 1"):
            ensure(tmp_path)

    assert len(build.commands) == 2
    assert ensure(tmp_path, "next").exists()


@pytest.mark.slow
def test_a_build_that_was_killed_says_nothing_of_the_next(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", FakeBuild(0, -15))
    with pytest.raises(venv.BuildKilledError):
        ensure(tmp_path)

    assert ensure(tmp_path).exists()


@pytest.mark.slow
def test_an_environment_that_this_node_does_not_see_is_neither_removed_nor_replaced(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An NFS client remembers for a while that a file did not exist."""
    monkeypatch.setattr(subprocess, "run", FakeBuild())
    first = ensure(tmp_path)
    exists = pathlib.Path.exists
    monkeypatch.setattr(pathlib.Path, "exists", lambda path: path.name != "used" and exists(path))

    assert ensure(tmp_path) == first
    assert names(tmp_path) == [venv.key(WANTED, PYTHON), first.name]


HOLD = "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.lockf(f, 2); print(flush=True); time.sleep(60)"


def test_what_a_killed_builder_left_goes_after_a_day(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 25 * 3600)
    store.make()
    left, used, busy = (venv.key({"requirements": name}, PYTHON) for name in ("left", "used", "busy"))
    builds = [f"{name}.build-1a2b3c4{end}" for name, end in ((left, 1), (used, 1), (used, 2), (busy, 1))]
    for name in builds:
        (store.environments / name).mkdir()
    (store.environments / used).symlink_to(builds[2])
    (store.environments / used / "used").touch()
    command = [sys.executable, "-c", HOLD, str(store.environments / f"{busy}.lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as builder:
        assert builder.stdout is not None
        builder.stdout.readline()
        sweep.sweep(store)
        builder.kill()

    assert set(names(store.root)) == {used, *builds[2:], ".stead"}


def test_a_build_whose_lock_its_node_has_yet_to_claim_again_is_left_alone(store: Store) -> None:
    store.make()
    live = store.environments / f"{venv.key({}, PYTHON)}.build-1a2b3c4d"
    live.mkdir()
    sweep.sweep(store)

    assert live.exists()
