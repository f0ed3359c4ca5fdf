"""Environments that venv and pip really make, from packages that are written here: no index is asked.

Each test with a real venv and pip is marked as slow: it takes 2 to 4 s of a CPU. test_environment.py tests the rest.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from typing import Any

import pytest

from slurmstead.client.remote import bundled_pip, venv
from slurmstead.paths import ROOT
from tests.lab.submit.dependencies import wheel

PYTHON = venv.Python(os.path.realpath(sys.executable), "3.11", "linux-x86_64")

TOOL = {
    "tool.py": "import beta\n\ndef main():\n    print(beta.times(2, 21))\n",
    "tool-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tool\nVersion: 1.0\n"
    "Provides-Extra: more\nRequires-Dist: beta==1.0 ; extra == 'more'\n",
    "tool-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "tool-1.0.dist-info/entry_points.txt": "[console_scripts]\ntool = tool:main\n",
    "tool-1.0.dist-info/RECORD": "",
}

BACKEND = f"""
import os, pathlib, time, zipfile

def build_wheel(directory, config_settings=None, metadata_directory=None):
    if "BEGAN" in os.environ:
        pathlib.Path(os.environ["BEGAN"]).touch()
        time.sleep(600)
    with zipfile.ZipFile(os.path.join(directory, "tool-1.0-py3-none-any.whl"), "w") as archive:
        for name, text in {TOOL!r}.items():
            archive.writestr(name, text)
    return "tool-1.0-py3-none-any.whl"
"""

PROJECT = '[build-system]\nrequires = ["builder==1.0"]\nbuild-backend = "builder"\n'


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a directory of packages: tool as source, which builder makes a wheel of, and beta, its extra."""
    directory = tmp_path_factory.mktemp("packages")
    wheel(directory, "builder", BACKEND)
    wheel(directory, "beta", "def times(a, b):\n    return a * b\n")
    source = tmp_path_factory.mktemp("source") / "tool-1.0"
    source.mkdir()
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: tool\nVersion: 1.0\n")
    with tarfile.open(directory / "tool-1.0.tar.gz", "w:gz") as archive:
        archive.add(source, "tool-1.0")
    return directory


@pytest.fixture
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Return a directory for environments, a run, and what this computer keeps on its own disk."""
    for name in ("run", "disk"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "disk"))
    return tmp_path


def build(place: pathlib.Path, **wanted: Any) -> pathlib.Path:
    """Return an environment that is built as a job does it."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(place), "PIP_CONFIG_FILE": os.devnull}
    return venv.ensure(place / "environments", wanted, PYTHON, place / "log", variables, place / "run")


def output(*command: object) -> str:
    return subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True, check=True).stdout


def names(place: pathlib.Path) -> list[str]:
    return sorted(path.name for path in (place / "environments").iterdir() if path.suffix != ".lock")


@pytest.mark.slow
def test_a_source_package_with_an_extra_is_built_and_its_script_runs(
    place: pathlib.Path, packages: pathlib.Path
) -> None:
    made = build(place, requirements="tool[more]==1.0\n", wheels=str(packages))

    assert output(made / "bin" / "tool") == "42\n"
    assert not list(made.rglob("builder*")), "what only its build required"


@pytest.mark.slow
def test_pip_and_bytecode_are_no_files_of_an_environment(place: pathlib.Path, packages: pathlib.Path) -> None:
    made = build(place, requirements="beta==1.0\n", wheels=str(packages))

    assert not list(made.rglob("pip*"))
    assert not list(made.rglob("*.pyc"))
    assert len([path for path in made.rglob("*") if path.is_file()]) < 20
    assert list((place / "disk").iterdir()) == []


@pytest.mark.slow
def test_who_requires_pip_has_one_in_the_environment(place: pathlib.Path, packages: pathlib.Path) -> None:
    bundled = bundled_pip.find(PYTHON.path)
    assert bundled is not None
    (place / "wheels").mkdir()
    shutil.copy(bundled, place / "wheels")
    made = build(place, requirements="pip\n", wheels=str(place / "wheels"))

    assert str(made) in output(made / "bin" / "pip", "--version")


@pytest.mark.slow
def test_the_index_that_is_configured_is_asked(place: pathlib.Path, packages: pathlib.Path) -> None:
    name = "beta-1.0-py3-none-any.whl"
    (place / "index" / "beta").mkdir(parents=True)
    shutil.copy(packages / name, place / "index" / "beta")
    (place / "index" / "beta" / "index.html").write_text(f'<!DOCTYPE html><a href="{name}">{name}</a>')
    made = build(place, requirements="beta==1.0\n", index=(place / "index").as_uri())

    assert output(made / "bin" / "python", "-c", "import beta; print(beta.times(2, 21))") == "42\n"


@pytest.mark.slow
def test_what_is_not_to_be_had_is_named_and_leaves_nothing(place: pathlib.Path, packages: pathlib.Path) -> None:
    with pytest.raises(venv.BuildError, match=r"(?s)`-m pip install .* exited with 1.*distribution found for gamma==3"):
        build(place, requirements="beta==1.0\ngamma==3\n", wheels=str(packages))

    assert names(place) == []
    assert list((place / "disk").iterdir()) == []


def test_a_python_without_pip_is_told_its_package(place: pathlib.Path) -> None:
    bare = place / "python"
    bare.write_text(f"#!/bin/sh\necho {place}\n")
    bare.chmod(0o755)
    wanted, python = {"requirements": "beta\n"}, PYTHON._replace(path=str(bare))
    with pytest.raises(venv.BuildError, match="has no pip .* install python3.11-venv"):
        venv.ensure(place / "environments", wanted, python, place / "log", {}, place / "run")

    assert names(place) == []


BUILD = """
import pathlib, sys
from slurmstead.client.remote import venv

place, packages, began = map(pathlib.Path, sys.argv[1:4])
wanted = {"requirements": "tool[more]==1.0\\n", "wheels": str(packages)}
variables = {"PATH": "/usr/bin:/bin", "HOME": str(place), "PIP_CONFIG_FILE": "/dev/null"}
if began.name != "-":
    variables["BEGAN"] = str(began)
python = venv.Python(*sys.argv[4:7])
print(venv.ensure(place / "environments", wanted, python, place / "log", variables, place / "run"))
"""


def start(place: pathlib.Path, packages: pathlib.Path, began: object = "-") -> subprocess.Popen[str]:
    """Start a builder; its build stands still, once it has made the file `began`."""
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, *map(str, (place, packages, began)), *PYTHON],
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts"), "TMPDIR": str(place / "disk")},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.slow
def test_two_jobs_at_once_build_one_environment(place: pathlib.Path, packages: pathlib.Path) -> None:
    builders = [start(place, packages) for _ in range(2)]
    said = [builder.communicate(timeout=300)[0].strip() for builder in builders]

    assert said[0] == said[1]
    assert len(names(place)) == 2, "the environment and its name"
    assert (place / "log").read_text().count("-m venv") == 1


@pytest.mark.slow
def test_a_build_that_was_killed_is_made_again_from_nothing(place: pathlib.Path, packages: pathlib.Path) -> None:
    with start(place, packages, place / "began") as builder:
        deadline = time.monotonic() + 120
        while not (place / "began").exists():
            assert time.monotonic() < deadline, "the build did not begin"
            time.sleep(0.05)
        os.killpg(builder.pid, signal.SIGKILL)
    (half,) = names(place)
    with start(place, packages) as builder:
        made = pathlib.Path(builder.communicate(timeout=300)[0].strip())

    assert output(made / "bin" / "tool") == "42\n"
    assert made.name != half, "the sweep removes it later: this node cannot know that nobody uses it"
