"""Read-only directories, with real mounts in a mount namespace of the test."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

Run = Callable[[str], bool]

ROOT = pathlib.Path(__file__).resolve().parents[3]
PRELUDE = """
import contextlib, os, pathlib, subprocess, sys
sys.path.insert(0, sys.argv[2])
import tests.conftest
from ansible.module_utils.slurmstead.storage import disks, freezing, share, units
from ansible.module_utils.slurmstead.storage.disks import DiskError
place = pathlib.Path(sys.argv[1])
units.UNITS, share.EXPORTS, freezing.BUSY = place / "units", place / "exports", 0
disks.ENVIRONMENT["PATH"] = f"{place}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
store = str(place / "store")

def writable(path):
    try:
        pathlib.Path(path, "new").write_text("x")
    except OSError:
        return False
    return True

def mount(*words):
    subprocess.run(["mount", *words], check=True)

def units_now():
    return sorted(str(path.relative_to(place / "units")) for path in (place / "units").rglob("*") if not path.is_dir())
"""


@pytest.fixture
def run(tmp_path: pathlib.Path) -> Run:
    """Return a function that runs a program after PRELUDE, as root of a mount namespace; true if it got to its end."""
    for name in ("units", "bin", "store/home", "share"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("systemctl", "exportfs"):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\necho {name} $* >> {tmp_path}/called\n")
        (tmp_path / "bin" / name).chmod(0o755)

    def program(text: str) -> bool:
        code = PRELUDE + textwrap.dedent(text)
        done = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", code, tmp_path, ROOT],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "scripts")])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.endswith("all seen\n")

    return program


def test_a_directory_becomes_read_only_and_writable_again(run: Run) -> None:
    assert run("""
        assert freezing.freeze(store)
        assert not writable(store)
        assert not freezing.freeze(store), "a second time changed something"
        assert units_now()[0].startswith("local-fs.target.wants/"), units_now()
        assert "Options=bind,ro" in (place / "units" / units_now()[1]).read_text()
        assert f"rm -r {store}" in freezing.removal(store)
        assert freezing.thaw(store)
        assert writable(store)
        assert units_now() == []
        print("all seen")
    """)


def test_a_file_system_becomes_read_only_and_writable_again(run: Run) -> None:
    assert run("""
        mount("-t", "tmpfs", "tmpfs", store)
        unit = place / "units" / f"{units.escape(store)}.mount"
        unit.write_text("[Mount]\\nOptions=loop,nodev\\n")
        assert freezing.freeze(store)
        assert not writable(store)
        (drop_in,) = [name for name in units_now() if name.endswith(".conf")]
        assert "Options=loop,nodev,ro" in (place / "units" / drop_in).read_text()
        assert f"rm -rf '{unit}' '{unit}.d' &&" in freezing.removal(store), "a later volume there would be read-only"
        assert freezing.thaw(store)
        assert writable(store)
        assert units_now() == [unit.name]
        print("all seen")
    """)


def test_the_unit_of_a_disk_that_is_not_mounted_is_kept(run: Run) -> None:
    assert run("""
        unit = place / "units" / f"{units.escape(store)}.mount"
        unit.write_text("[Mount]\\nWhat=/dev/share/share\\n")
        try:
            freezing.freeze(store)
        except DiskError as error:
            assert f"systemctl start '{unit.name}'" in str(error)
        else:
            raise AssertionError("the empty mount point became the share")
        assert unit.read_text() == "[Mount]\\nWhat=/dev/share/share\\n"
        print("all seen")
    """)


def test_an_interruption_before_the_mount_does_no_harm(run: Run) -> None:
    assert run("""
        freezing.keep(store, is_own=False)
        assert freezing.freeze(store)
        assert not writable(store)
        assert freezing.thaw(store)
        assert units_now() == []
        print("all seen")
    """)


def test_what_was_frozen_at_the_next_boot_only_is_thawed_too(run: Run) -> None:
    assert run("""
        freezing.keep(store, is_own=False)
        assert freezing.thaw(store)
        assert units_now() == []
        mount("--bind", store, store)
        (units.UNITS / f"{units.escape(store)}.mount").write_text("[Mount]\\nOptions=noatime\\n")
        freezing.keep(store, is_own=True)
        assert len(units_now()) == 2
        assert freezing.thaw(store)
        assert len(units_now()) == 1
        assert writable(store)
        assert not freezing.thaw(store)
        print("all seen")
    """)


def test_a_directory_that_is_in_use_becomes_writable_again(run: Run) -> None:
    assert run("""
        assert freezing.freeze(store)
        reader = os.open(f"{store}/home", os.O_RDONLY)
        assert freezing.thaw(store)
        assert writable(store)
        assert units_now() == []
        assert not freezing.thaw(store)
        print("all seen")
    """)


def test_a_file_that_is_open_for_writing_is_not_cut_off(run: Run) -> None:
    assert run("""
        mount("--bind", store, str(place / "share"))
        with (place / "share/open").open("w") as file:
            try:
                freezing.freeze_clients([str(place / "share")], "ro")
            except DiskError as error:
                assert "cannot become read-only" in str(error)
            else:
                raise AssertionError("it became read-only")
            file.write("kept")
        assert freezing.freeze_clients([str(place / "share")], "ro")
        assert (place / "share/open").read_text() == "kept"
        assert freezing.freeze_clients([str(place / "share")], "rw")
        print("all seen")
    """)


def test_nfs_clients_can_only_read(run: Run) -> None:
    assert run("""
        share.EXPORTS.write_text(f"# note\\n{store} 10.0.0.1(rw,sync)\\n{store} 10.0.0.2(rw,sync)\\n")
        assert freezing.freeze(store)
        assert share.EXPORTS.read_text() == f"# note\\n{store} 10.0.0.1(ro,sync)\\n{store} 10.0.0.2(ro,sync)\\n"
        assert "exportfs -r" in (place / "called").read_text()
        assert share.exported() == store
        print("all seen")
    """)
