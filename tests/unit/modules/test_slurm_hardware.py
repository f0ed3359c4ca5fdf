"""CPUs and memory are measured as Slurm counts them, and remembered beside the inventory."""

from __future__ import annotations

import os
import pathlib
import platform
import resource
import subprocess
import types
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from ansible.module_utils.slurmstead.hardware import record as hardware_record

RunModule = Callable[..., Any]

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_this_machine_can_be_measured(run_module: RunModule) -> None:
    hardware = run_module("slurm_hardware").result["hardware"]

    assert hardware["architecture"] == platform.machine()
    assert hardware["cpus"] == len(list(pathlib.Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology")))
    assert hardware["memory"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    assert hardware["hwloc"] is None or hardware["hwloc"]["pus"] >= hardware["cpus"]


def test_what_is_documented_is_what_is_returned(
    run_module: RunModule, load_module: Callable[[str], types.ModuleType]
) -> None:
    documented = yaml.safe_load(load_module("slurm_hardware").RETURN)["hardware"]["contains"]

    assert documented.keys() == run_module("slurm_hardware").result["hardware"].keys()


class Site:
    """An inventory of one node, which is this machine, and a playbook that measures it."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.inventory = directory / "inventory"
        self.inventory.mkdir()
        (self.inventory / "hosts.yml").write_text("all: {hosts: {node1: {ansible_connection: local}}}")
        play = {"hosts": "all", "tasks": [{"name": "Measure", "slurm_hardware": {}}]}
        (directory / "measure.yml").write_text(yaml.safe_dump([play]))
        self.remembered = self.inventory / "hardware/node1.yml"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_LOCAL_TEMP": str(directory / "local"),
            "ANSIBLE_REMOTE_TEMP": str(directory / "remote"),
            "ANSIBLE_NOCOLOR": "1",
            "LC_ALL": "C.UTF-8",
        }

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        playbook = self.inventory.parent / "measure.yml"
        command = ["ansible-playbook", "--inventory", str(self.inventory), *options, str(playbook)]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)


@pytest.fixture
def site(tmp_path: pathlib.Path) -> Site:
    return Site(tmp_path)


@pytest.mark.slow
def test_what_is_measured_is_remembered_once(site: Site) -> None:
    first = site.run("--diff")
    second = site.run("--diff")

    assert "changed=1" in first.stdout
    assert "+architecture:" in first.stdout
    assert "has become smaller" not in first.stdout + first.stderr
    assert "changed=0" in second.stdout
    assert yaml.safe_load(site.remembered.read_text())["architecture"] == platform.machine()
    assert (first.stderr, second.stderr) == ("", ""), "Ansible took what is remembered for an inventory"


@pytest.mark.slow
def test_check_mode_remembers_nothing(site: Site) -> None:
    assert "changed=1" in site.run("--check").stdout
    assert not site.remembered.exists()


def test_on_a_full_disk_what_was_known_stays(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "node1.yml"
    path.write_text("cpus: 4\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            hardware_record.keep(path, b"cpus: 8\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "cpus: 4\n"


@pytest.mark.parametrize("text", ["<<<<<<< HEAD\ncpus: 4\n=======\n", "- cpus\n", "cpus: [\n", "4"])
def test_a_record_that_cannot_be_read_is_named(tmp_path: pathlib.Path, text: str) -> None:
    path = tmp_path / "node1.yml"
    path.write_text(text)

    with pytest.raises(hardware_record.RecordError) as said:
        hardware_record.read(path)
    assert str(said.value).startswith(f"{path}: expected measured hardware, found ")
    assert "delete it and run `stead up`" in str(said.value)


@pytest.mark.slow
def test_a_damaged_record_stops_the_measurement_and_stays(site: Site) -> None:
    site.remembered.parent.mkdir()
    site.remembered.write_text("<<<<<<< HEAD\n")

    assert f"{site.remembered}: expected measured hardware" in " ".join(site.run().stdout.split())
    assert site.remembered.read_text() == "<<<<<<< HEAD\n"


@pytest.mark.slow
def test_a_node_whose_hardware_changed_is_reported(site: Site) -> None:
    site.remembered.parent.mkdir()
    site.remembered.write_text("cpus: 1000\n")

    done = site.run("--diff")

    cpus = yaml.safe_load(site.remembered.read_text())["cpus"]
    assert "changed=1" in done.stdout
    assert "-cpus: 1000" in done.stdout
    assert f"node1 has become smaller: cpus 1000 -> {cpus}." in " ".join((done.stdout + done.stderr).split())


@pytest.mark.slow
def test_a_file_of_an_older_version_is_completed_without_a_warning(site: Site) -> None:
    site.run()
    measured = yaml.safe_load(site.remembered.read_text())
    old = ("architecture", "cores_per_socket", "cpus", "memory", "sockets", "threads_per_core")
    site.remembered.write_text(yaml.safe_dump({key: measured[key] for key in old}))

    done = site.run("-v")

    assert "node1: more values are recorded than before" in done.stdout
    assert "WARNING" not in done.stdout + done.stderr
    assert yaml.safe_load(site.remembered.read_text()) == measured


@pytest.mark.slow
def test_memory_that_differs_from_boot_to_boot_is_the_same_memory(site: Site) -> None:
    site.run()
    text = site.remembered.read_text()
    memory = yaml.safe_load(text)["memory"]
    a_little_less = text.replace(f"memory: {memory}", f"memory: {int(memory * 0.99)}")
    site.remembered.write_text(a_little_less)

    assert "changed=0" in site.run().stdout
    assert site.remembered.read_text() == a_little_less

    site.remembered.write_text(text.replace(f"memory: {memory}", f"memory: {int(memory * 0.9)}"))

    assert "changed=1" in site.run().stdout
    assert site.remembered.read_text() == text
