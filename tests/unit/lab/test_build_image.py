"""An image is there whole or not at all, and what is missing is said before anything is built."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = ROOT / "roles/lab/files/build-image"

pytestmark = pytest.mark.slow


class Builder:
    """build-image with an `mmdebstrap` of the test in the place of the real one, which needs a minute and a network."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.image = directory / "images" / "bookworm-amd64-0123"
        self.bin = directory / "bin"
        self.bin.mkdir()
        self.environment = {
            **os.environ,
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "LAB_MIRROR": "http://mirror.test",
        }
        self.calls = directory / "calls"
        self.input = directory / "input"
        self.script("mmdebstrap", f"{self.call}; cat > {self.input}; {self.outputs('')}")

    @property
    def call(self) -> str:
        """Shell words that note a call and its arguments in a line of `calls`; hooks are arguments of many lines."""
        return f'echo "$@" | tr "\\n" " " >> {self.calls}; echo >> {self.calls}'

    def outputs(self, last: str) -> str:
        """Return the shell words that write an image as the hooks do, then `last`."""
        return f"for file in $LAB_DISK $LAB_KERNEL $LAB_INITRD; do echo made > $file; done; {last}"

    def script(self, name: str, body: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.bin / name).chmod(0o755)

    def start(self, *packages: str) -> subprocess.Popen[str]:
        command = [str(BUILD), str(self.image), "bookworm", "amd64", *(packages or ("sudo", "udev"))]
        return subprocess.Popen(
            command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *packages: str) -> tuple[int, str]:
        """Return the exit code and what was said."""
        with self.start(*packages) as process:
            _, errors = process.communicate(timeout=30)
        return process.returncode, errors

    def left(self) -> list[str]:
        """Return what stands beside and in the image, but for its lock."""
        below = (path.relative_to(self.image.parent) for path in self.image.parent.rglob("*"))
        return sorted(str(path) for path in below if path.suffix != ".lock")


@pytest.fixture
def builder(tmp_path: pathlib.Path) -> Builder:
    return Builder(tmp_path)


def test_an_image_is_a_disk_a_kernel_and_an_initrd(builder: Builder) -> None:
    assert builder.run() == (0, "")

    name = builder.image.name
    assert builder.left() == [name, f"{name}/disk", f"{name}/initrd", f"{name}/kernel"]


def test_the_release_the_packages_and_the_archive_are_passed_on(builder: Builder) -> None:
    builder.environment["LAB_SECURITY_MIRROR"] = "http://security.test"

    builder.run("sudo", "udev", "zstd")

    words = builder.calls.read_text().split()
    assert {"--include=sudo,udev,zstd", "--architectures=amd64", "--variant=minbase"} <= set(words)
    assert words[-3:] == ["bookworm", "/dev/null", "-"]
    assert builder.input.read_text().splitlines() == [
        "deb http://mirror.test bookworm main",
        "deb http://mirror.test bookworm-updates main",
        "deb http://security.test bookworm-security main",
    ]


def test_an_image_is_readable_and_only_its_owner_writes_to_it(builder: Builder) -> None:
    builder.run()

    assert {path.stat().st_mode & 0o777 for path in builder.image.iterdir()} == {0o644}


def test_an_image_is_on_the_disk_before_it_has_its_name(builder: Builder) -> None:
    """After a power cut, an empty kernel would be used for good."""
    builder.script("sync", f'for file; do basename "$file"; done > {builder.calls}; [ ! -e {builder.image} ]')

    assert builder.run() == (0, "")

    assert builder.calls.read_text().split() == ["disk", "initrd", "kernel"]


def test_the_hooks_are_handed_over_as_text(builder: Builder) -> None:
    """An ordinary user's mmdebstrap runs them as an account that may not enter that user's home."""
    builder.run()

    assert str(BUILD.parent) not in builder.calls.read_text()
    assert str(builder.image.parent) not in builder.calls.read_text()
    assert {"useradd", "mke2fs"} <= set(builder.calls.read_text().split())


def test_a_built_image_is_not_built_again(builder: Builder) -> None:
    builder.run()
    builder.run()

    assert len(builder.calls.read_text().splitlines()) == 1


def test_several_calls_at_once_build_it_once(builder: Builder) -> None:
    builder.script("mmdebstrap", f"{builder.call}; sleep 0.3; {builder.outputs('')}")
    processes = [builder.start() for _ in range(4)]

    assert [process.communicate(timeout=30) for process in processes] == [("", "")] * 4
    assert [process.returncode for process in processes] == [0] * 4
    assert len(builder.calls.read_text().splitlines()) == 1


def test_a_failed_build_leaves_nothing_and_its_own_words(builder: Builder) -> None:
    builder.script("mmdebstrap", builder.outputs("echo 'E: unable to pick chroot mode' >&2; exit 25"))

    assert builder.run() == (25, "E: unable to pick chroot mode\n")
    assert builder.left() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda one: one.name)
def test_an_interrupted_build_leaves_nothing(builder: Builder, number: signal.Signals) -> None:
    builder.script("mmdebstrap", builder.outputs(f"touch {builder.calls}; exec sleep 60"))
    process = builder.start()
    wait_for(builder.calls)

    os.killpg(process.pid, number)

    process.communicate(timeout=10)
    assert process.returncode != 0
    assert builder.left() == []


def test_a_killed_build_leaves_nothing_that_is_taken_for_an_image(builder: Builder) -> None:
    builder.script("mmdebstrap", builder.outputs(f"touch {builder.calls}; exec sleep 60"))
    process = builder.start()
    wait_for(builder.calls)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=10)
    assert not builder.image.exists()
    builder.script("mmdebstrap", builder.outputs(""))

    assert builder.run() == (0, "")

    name = builder.image.name
    assert builder.left() == [name, f"{name}/disk", f"{name}/initrd", f"{name}/kernel"], "the remains were not removed"


def test_a_machine_whose_apt_knows_no_debian_is_told_what_to_set(builder: Builder) -> None:
    del builder.environment["LAB_MIRROR"]
    builder.script("apt-get", "echo 'Ubuntu http://archive.ubuntu.test/ubuntu'")

    code, said = builder.run()

    assert (code, builder.left()) == (1, [])
    assert said == ("apt on this machine knows no Debian archive (apt-get indextargets); set lab_mirror to one\n")


def test_the_archive_of_this_machine_is_used_unless_one_is_set(builder: Builder) -> None:
    del builder.environment["LAB_MIRROR"]
    builder.script(
        "apt-get",
        "printf '%s\\n' 'Debian http://near.test/debian' 'Debian-Security http://near.test/security' 'Debian http://near.test/debian'",
    )

    assert builder.run() == (0, "")

    assert builder.input.read_text().splitlines() == [
        "deb http://near.test/debian bookworm main",
        "deb http://near.test/debian bookworm-updates main",
        "deb http://near.test/security bookworm-security main",
    ]


def wait_for(path: pathlib.Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)
