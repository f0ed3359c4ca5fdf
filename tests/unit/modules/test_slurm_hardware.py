"""CPUs and memory are measured as Slurm counts them, and remembered beside the inventory."""

from __future__ import annotations

import os
import pathlib
import platform
import subprocess
import types
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import yaml

RunModule = Callable[..., Any]

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture
def slurm_hardware(load_module: Callable[[str], types.ModuleType]) -> types.ModuleType:
    return load_module("slurm_hardware")


def make_cpus(root: pathlib.Path, cpus: Iterable[tuple[str, str]], offline: Iterable[int] = ()) -> pathlib.Path:
    """Make a sysfs tree with the package and the siblings (`core_cpus_list`) of each CPU that is online."""
    for other in ("cpufreq", "cpuidle"):
        (root / other).mkdir()
    for number, (package, siblings) in enumerate(cpus):
        topology = root / f"cpu{number}" / "topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{package}\n")
        (topology / "core_cpus_list").write_text(f"{siblings}\n")
    for number in offline:
        (root / f"cpu{number}").mkdir()
    return root


CASES = {
    "one package": ([("0", "0"), ("0", "1")], [], (2, 1, 2, 1)),
    "one package with SMT": ([("0", "0,2"), ("0", "1,3"), ("0", "0,2"), ("0", "1,3")], [], (4, 1, 2, 2)),
    "SMT with neighbours as siblings": ([("0", "0-1"), ("0", "0-1")], [], (2, 1, 1, 2)),
    "two packages": ([("0", "0"), ("0", "1"), ("1", "2"), ("1", "3")], [], (4, 2, 2, 1)),
    "a CPU is offline": ([("0", "0"), ("0", "1"), ("0", "2")], [3], (3, 1, 3, 1)),
    "a sibling is offline": ([("0", "0,2"), ("0", "1"), ("0", "0,2")], [3], (3, 1, 2, 2)),
    "a kernel that knows no packages": ([("-1", "0"), ("-1", "1")], [], (2, 1, 2, 1)),
    "RK3588, the vendor's kernel": ([(package, str(cpu)) for cpu, package in enumerate("00001122")], [], (8, 3, 4, 1)),
    "RK3588, mainline": ([("0", str(cpu)) for cpu in range(8)], [], (8, 1, 8, 1)),
}


@pytest.mark.parametrize(("cpus", "offline", "expected"), CASES.values(), ids=CASES)
def test_cpus_are_counted_as_they_are_arranged(
    slurm_hardware: types.ModuleType,
    tmp_path: pathlib.Path,
    cpus: list[tuple[str, str]],
    offline: list[int],
    expected: tuple[int, int, int, int],
) -> None:
    assert slurm_hardware.topology(make_cpus(tmp_path, cpus, offline)) == expected


def test_meminfo_without_a_total_is_an_error(slurm_hardware: types.ModuleType) -> None:
    with pytest.raises(ValueError, match="MemTotal"):
        slurm_hardware.memory_mib("MemFree: 1 kB\n")


def test_this_machine_can_be_measured(run_module: RunModule) -> None:
    hardware = run_module("slurm_hardware").result["hardware"]

    assert hardware["architecture"] == platform.machine()
    assert hardware["cpus"] == len(list(pathlib.Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology")))
    assert hardware["memory"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20


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


def test_what_is_measured_is_remembered_once(site: Site) -> None:
    first = site.run("--diff")
    second = site.run("--diff")

    assert "changed=1" in first.stdout
    assert "+architecture:" in first.stdout
    assert "changed=0" in second.stdout
    assert yaml.safe_load(site.remembered.read_text())["architecture"] == platform.machine()
    assert (first.stderr, second.stderr) == ("", ""), "Ansible took what is remembered for an inventory"


def test_check_mode_remembers_nothing(site: Site) -> None:
    assert "changed=1" in site.run("--check").stdout
    assert not site.remembered.exists()


def test_a_node_whose_hardware_changed_is_reported(site: Site) -> None:
    site.remembered.parent.mkdir()
    site.remembered.write_text("cpus: 1000\n")

    done = site.run("--diff")

    assert "changed=1" in done.stdout
    assert "-cpus: 1000" in done.stdout


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
