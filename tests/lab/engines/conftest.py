"""The examples as folders that can be submitted where the nodes have no index of Python packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slurmstead.paths import ROOT
from tests import client


@pytest.fixture(scope="module")
def cluster(lab: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[client.Cluster]:
    """The lab's cluster; the tests of a module share their environments."""
    with client.connected(lab, tmp_path_factory.mktemp("laptop")) as found:
        yield found


@pytest.fixture(scope="module")
def example(lab: Any, cluster: client.Cluster) -> Callable[[str], Path]:
    """A copy of an example, by its name, with the wheels that it needs on the workers."""

    def copy(name: str) -> Path:
        folder = cluster.directory / name
        if not folder.exists():
            shutil.copytree(ROOT / "examples" / name, folder)
            if (folder / "requirements.txt").exists():
                version = lab.user("python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'")
                download(folder, version)
        return folder

    return copy


def download(folder: Path, version: str) -> None:
    """Put wheels for a version of Python on amd64 into a folder, and tell `stead submit` of them."""
    platforms = [f"--platform=manylinux_2_{minor}_x86_64" for minor in (28, 27, 17, 12, 5)]
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *platforms]
        + [f"--python-version={version}", "--dest", folder / "wheels", "--requirement", folder / "requirements.txt"],
        check=True,
        timeout=300,
    )
    settings = folder / "stead.toml"
    settings.write_text('wheels = "wheels"\n' + settings.read_text())
