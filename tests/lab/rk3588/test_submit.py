"""The same submission runs on the board and on a PC, each with an environment of its own architecture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests import client
from tests.lab.submit.dependencies import environments, two_dependencies

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def test_one_folder_runs_on_both_architectures(lab: Any, tmp_path: Path) -> None:
    with client.connected(lab, tmp_path) as cluster:
        folder = two_dependencies(cluster)
        with open(folder / "main.py", "a") as file:
            file.write("import platform\nprint(platform.machine())\n")
        command = ("submit", folder, "--wait", "--constraint")
        processes = {feature: cluster.start(*command, feature) for feature in MACHINES}
        said = {feature: process.communicate(timeout=1200) for feature, process in processes.items()}
        print(said)
        assert [process.returncode for process in processes.values()] == [0, 0]
        outputs = {feature: cluster.stead("logs", cluster.run_of(out)) for feature, (out, _) in said.items()}

        assert outputs == {feature: f"42\n{machine}\n" for feature, machine in MACHINES.items()}
        names = {name for name in environments(cluster) if ".build-" not in name}
        assert sorted(name.split("-")[2] for name in names) == ["aarch64", "x86_64"]
