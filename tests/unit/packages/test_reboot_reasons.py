"""When a machine has to be rebooted before it uses what is installed."""

from __future__ import annotations

import pathlib
import time

import pytest

from ansible.module_utils.slurmstead.packages.reboot_reasons import reboot_reasons

MAPS = "7f1 r-xp 0 fe:01 7   /usr/lib/x86_64-linux-gnu/libc.so.6{}\n7f2 r-xp 0 fe:01 9   /usr/lib/systemd/systemd\n"


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> pathlib.Path:
    """A machine that booted an hour ago, with the kernel of that time."""
    for name in ("proc/1", "boot", "run"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "proc" / "1" / "maps").write_text(MAPS.format(""))
    (tmp_path / "proc" / "stat").write_text(f"cpu 1 2\nbtime {time.time() - 3600:.0f}\n")
    return tmp_path


def test_a_machine_that_uses_all_that_it_has_needs_no_reboot(machine: pathlib.Path) -> None:
    assert reboot_reasons(machine) == []


def test_a_kernel_that_came_after_the_boot_is_named(machine: pathlib.Path) -> None:
    (machine / "boot" / "vmlinuz-6.1.0-42-amd64").touch()

    assert reboot_reasons(machine) == ["kernel 6.1.0-42-amd64 was installed after it booted"]


def test_a_kernel_from_before_the_boot_is_in_use(machine: pathlib.Path) -> None:
    (machine / "boot" / "vmlinuz-6.1.0-42-amd64").touch()
    (machine / "proc" / "stat").write_text(f"btime {time.time() + 5:.0f}\n")

    assert reboot_reasons(machine) == []


def test_the_first_process_with_a_c_library_that_is_gone_needs_a_reboot(machine: pathlib.Path) -> None:
    (machine / "proc" / "1" / "maps").write_text(MAPS.format(" (deleted)"))

    assert reboot_reasons(machine) == ["the C library was replaced after it booted"]


def test_what_packages_ask_for_is_said_with_their_names(machine: pathlib.Path) -> None:
    (machine / "run" / "reboot-required").touch()
    (machine / "run" / "reboot-required.pkgs").write_text("dbus\nlibssl3\ndbus\n")

    assert reboot_reasons(machine) == ["requested by dbus, libssl3"]
