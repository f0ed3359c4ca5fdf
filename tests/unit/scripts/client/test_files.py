"""Which files of a folder are submitted."""

import os
import pathlib
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from slurmstead.client import files
from slurmstead.client.remote.store import Store
from slurmstead.errors import UsageError


def write(folder: pathlib.Path, contents: Mapping[str, str]) -> pathlib.Path:
    for path, text in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def submitted(folder: pathlib.Path) -> list[str]:
    return [file.path for file in files.collect(folder).files]


TREE = {
    name: "" for name in ("a.py", "b.log", "keep.log", "data/x.csv", "data/deep/y.csv", "out/z", "src/out/q", "s p/f")
}

IGNORED = [
    "*.log\n!keep.log\n",
    "data/\n",
    "/out\n",
    "out\n",
    "data/*\n!data/x.csv\n",
    "data/\n!data/x.csv\n",
    "**/deep\n",
    "data/**/y.csv\n",
    "s\\ p/\n",
    "# a comment\n\n*.py  \n",
    "[ab].*\n",
    "!\n/\n*.log\n",
    "*\n!*/\n!*.py\n",
    "\ufeff*.log\n",
    "*.log\r\n",
    "\x0c*.log\n",
]


@pytest.mark.parametrize("text", IGNORED)
@pytest.mark.parametrize("place", ["", "data/", "src/"])
def test_gitignore_means_what_it_means_to_git(tmp_path: pathlib.Path, text: str, place: str) -> None:
    folder = write(tmp_path / "project", {**TREE, f"{place}.gitignore": text})
    git_init(folder)

    assert without_directories(folder) == listed_by_git(folder)


GIT = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def git_init(folder: pathlib.Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=folder, env=GIT, check=True)


def without_directories(folder: pathlib.Path) -> list[str]:
    return [path for path in submitted(folder) if not path.endswith("/")]


def listed_by_git(folder: pathlib.Path) -> list[str]:
    """Return the files of a folder that git would add; directories are nothing to git."""
    command = ["git", "ls-files", "-z", "--others", "--exclude-standard"]
    said = subprocess.run(command, cwd=folder, env=GIT, check=True, capture_output=True, text=True).stdout
    return sorted(said.strip("\0").split("\0"))


ABOVE = [
    *IGNORED,
    "/in/project/data/\n",
    "/data/\n/project/data/\n",
    "in/*/out\n",
    "in/**/deep\n",
    "*.log\n!/in/project/\n",
]


@pytest.mark.parametrize("text", ABOVE)
@pytest.mark.parametrize("place", [".gitignore", "in/.gitignore", ".git/info/exclude"])
def test_ignore_files_above_mean_what_they_mean_to_git(tmp_path: pathlib.Path, text: str, place: str) -> None:
    git_init(tmp_path)
    folder = write(tmp_path / "in" / "project", {**TREE, ".gitignore": "!b.log\n"})
    write(tmp_path, {place: text})

    assert without_directories(folder) == listed_by_git(folder)


@pytest.mark.parametrize("text", ["in\n", "/in/\n", "in/project\n", "*\n", "/*\n", "**/project/\n"])
def test_a_folder_that_git_ignores_is_submitted_by_the_other_rules(tmp_path: pathlib.Path, text: str) -> None:
    git_init(tmp_path)
    write(tmp_path, {".gitignore": f"{text}*.log\n"})

    assert without_directories(write(tmp_path / "in" / "project", {"a": "", "b.log": "", "c/d": ""})) == ["a", "c/d"]


def test_only_ignore_files_of_the_repository_count(tmp_path: pathlib.Path) -> None:
    folder = write(tmp_path / "in" / "project", {"a": "", "stead-results/x": "", "c/stead-results/x": ""})
    write(tmp_path, {".gitignore": "a\n", "in/.steadignore": "a\n"})
    seen = [submitted(folder)]
    git_init(tmp_path / "in")
    seen.append(submitted(folder))

    assert seen == [["a", "c/stead-results/x"]] * 2


def test_environments_of_conda_and_pixi_are_skipped(tmp_path: pathlib.Path) -> None:
    folder = write(tmp_path / "p", {"main.py": "", "env/conda-meta/history": "", "env/bin/x": "", ".pixi/envs/x": ""})
    found = files.collect(folder)

    assert [file.path for file in found.files] == ["main.py"]
    assert sorted(found.warnings) == [
        f"{name!r} is a conda environment and is skipped: the cluster installs what requirements.txt lists"
        for name in (".pixi", "env")
    ]


def test_steadignore_says_more_than_gitignore(tmp_path: pathlib.Path) -> None:
    folder = write(tmp_path / "p", {"a": "", "data.bin": "", ".gitignore": "*.bin\n", ".steadignore": "!data.bin\na\n"})

    assert submitted(folder) == [".gitignore", ".steadignore", "data.bin"]


def test_what_only_this_computer_can_use_stays_here(tmp_path: pathlib.Path) -> None:
    unwanted = {".git/config": "", "x/__pycache__/y.pyc": "", "stead-results/r/stdout": "", "venv/pyvenv.cfg": ""}
    folder = write(tmp_path / "p", {"main.py": "", "x/stead-results/kept": "", "venv/lib/q.py": "", **unwanted})
    found = files.collect(folder)

    assert [file.path for file in found.files] == ["main.py", "x/stead-results/kept"]
    assert found.warnings == ("'venv' is a virtual environment and is skipped: the cluster creates its own",)


def test_names_and_links_of_any_kind_are_listed(tmp_path: pathlib.Path) -> None:
    names = ["-rf", "new\nline", "é\udcff", " lead", "*"]
    folder = write(tmp_path / "p", dict.fromkeys(names, "x"))
    (folder / "in").symlink_to("-rf")
    (folder / "out").symlink_to("../elsewhere")
    os.mkfifo(folder / "pipe")
    found = files.collect(folder)

    assert [(file.path, file.size) for file in found.files] == sorted(
        [*((n, 1) for n in names), ("in", None), ("out", None)]
    )
    assert sorted(found.warnings) == [
        "'out' links to '../elsewhere', outside the folder; on the cluster it links to that path there",
        "'pipe' is not a regular file and is skipped",
    ]


def test_a_file_that_cannot_be_read_is_named_before_anything_is_sent(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path, {"a": "1", "b": "2"})
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).endswith("/b"))

    with pytest.raises(UsageError, match=f"{folder}/b cannot be read: Permission denied") as refused:
        files.collect(folder)
    assert refused.value.hint == "Exclude it in .steadignore."


def test_a_change_of_a_file_changes_the_fingerprint(tmp_path: pathlib.Path) -> None:
    folder = write(tmp_path, {"a": "1", "b": "2"})
    seen = [files.collect(folder).fingerprint, files.collect(folder).fingerprint]
    (folder / "a").chmod(0o700)
    seen.append(files.collect(folder).fingerprint)
    write(folder, {"a": "3"})
    os.utime(folder / "a", ns=(0, 0))
    seen.append(files.collect(folder).fingerprint)

    assert seen[0] == seen[1]
    assert len(set(seen)) == 3


def test_a_directory_without_files_is_submitted(tmp_path: pathlib.Path) -> None:
    folder = write(tmp_path / "project", {"main.py": "", ".gitignore": "*.csv\ngone/\n", "out/old.csv": ""})
    for name in ("empty", "a/b", "gone"):
        (folder / name).mkdir(parents=True)

    assert submitted(folder) == [".gitignore", "a/b/", "empty/", "main.py", "out/"]


def test_a_directory_that_goes_while_the_folder_is_read_is_not_submitted(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "project", {"main.py": "", "temporary/x": ""})
    scandir = os.scandir

    def removing(directory: pathlib.Path) -> Any:
        if directory.name == "temporary":
            monkeypatch.undo()
            shutil.rmtree(directory)
        return scandir(directory)

    monkeypatch.setattr(os, "scandir", removing)

    assert submitted(folder) == ["main.py"]


def test_what_is_no_folder_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        files.collect(tmp_path / "none")


def test_a_home_is_submitted_without_its_earlier_runs(tmp_path: pathlib.Path) -> None:
    home = write(tmp_path / "alice", {"main.py": ""})
    store = Store(home / "slurmstead")
    store.make()
    write(store.runs, {"1/input/main.py": "", "1/stdout": ""})

    assert submitted(home) == ["main.py"]
    assert submitted(store.run("1") / "input") == ["main.py"], "a run can be submitted again by its path"


def test_a_project_that_has_the_runs_is_submitted_without_them(tmp_path: pathlib.Path) -> None:
    """`directory` may name it, and its own files may be in a directory of the name `runs`."""
    folder = write(tmp_path / "p", {"main.py": "", "runs/own": "", "runs/r1/.stead": "", "runs/r1/input/main.py": ""})
    Store(folder).make()
    (folder / "latest").symlink_to("runs/r1")

    assert submitted(folder) == ["latest", "main.py", "runs/own"]
