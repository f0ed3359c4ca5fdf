"""Which files of a folder are submitted."""

import os
import pathlib
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from slurmstead.client import files
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
]


@pytest.mark.parametrize("text", IGNORED)
@pytest.mark.parametrize("place", ["", "data/", "src/"])
def test_gitignore_means_what_it_means_to_git(tmp_path: pathlib.Path, text: str, place: str) -> None:
    folder = write(tmp_path / "project", {**TREE, f"{place}.gitignore": text})
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    subprocess.run(["git", "init", "-q"], cwd=folder, env=environment, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    # Directories are nothing to git.
    assert [path for path in submitted(folder) if not path.endswith("/")] == sorted(listed.strip("\0").split("\0"))


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
