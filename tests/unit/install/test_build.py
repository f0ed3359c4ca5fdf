"""The image of new machines is built once, again after a week, and never half. mmdebstrap itself is replaced here."""

from __future__ import annotations

import os
import pathlib
import stat
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PARTS = ("roles/lab/files/image/sources", "roles/install/files/build-installer")

TOOLS = {
    "dpkg": "echo amd64",
    "apt-get": 'echo "Debian http://archive.example/debian"',
    "mmdebstrap": 'cat > "$SEEN"; printf "%s\\n" "$@" "TMPDIR=$TMPDIR" >> "$SEEN"; [ ! -e "$FAILS" ] || exit 1\n'
    'for name in kernel initrd; do echo "$name" > "$WORK/$name"; done; echo root',
}


class Builder:
    """The program of the role, with these tools."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.images, self.seen, self.fails = directory / "images", directory / "seen", directory / "fails"
        self.program = directory / "build-installer"
        self.program.write_text("\n".join((ROOT / name).read_text() for name in PARTS))
        (directory / "bin").mkdir()
        for name, text in TOOLS.items():
            tool = directory / "bin" / name
            tool.write_text(f"#!/bin/sh\n{text}\n")
            tool.chmod(0o755)
        self.path = directory / "bin"
        self.release = directory / "os-release"
        self.release.write_text("ID=debian\nVERSION_CODENAME=bookworm\n")

    def __call__(self, *packages: str) -> subprocess.CompletedProcess[str]:
        own = {"IMAGES": self.images, "SEEN": self.seen, "FAILS": self.fails, "OS_RELEASE": self.release}
        others = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
        environment = {
            **others,
            **{name: str(path) for name, path in own.items()},
            "PATH": f"{self.path}:{os.environ['PATH']}",
        }
        return subprocess.run(
            ["bash", str(self.program), *packages],
            env=environment,
            umask=0o077,
            capture_output=True,
            text=True,
            timeout=60,
        )

    @property
    def directories(self) -> list[pathlib.Path]:
        """The images that exist, and what was left of one."""
        return sorted(path for path in self.images.iterdir() if path.is_dir())


@pytest.fixture
def build(tmp_path: pathlib.Path) -> Builder:
    """The program, before its first call."""
    return Builder(tmp_path)


def test_an_image_is_built_once_and_has_the_packages_of_a_worker(build: Builder) -> None:
    first, second = build("munge", "slurmd"), build("munge", "slurmd")
    (image,) = build.directories

    assert (first.stdout, second.stdout) == (f"built {image}\n", f"kept {image}\n"), first.stderr
    assert sorted(path.name for path in image.iterdir()) == ["checksum", "initrd", "kernel", "root.tar.zst"]
    assert len((image / "checksum").read_text().strip()) == 64
    assert [stat.S_IMODE(path.stat().st_mode) for path in (build.images, image)] == [0o755, 0o755]
    assert "zstd,munge,slurmd" in build.seen.read_text()
    assert "deb http://archive.example/debian" in build.seen.read_text()


def test_the_system_is_not_built_in_memory_as_tmp_is_on_debian_13(build: Builder) -> None:
    build("munge")

    assert "TMPDIR=/var/tmp" in build.seen.read_text()


def test_other_packages_replace_the_image(build: Builder) -> None:
    build("munge")
    before = build.directories
    done = build("munge", "slurmd")

    assert done.stdout.startswith("built ")
    assert len(build.directories) == 1 and build.directories != before


def test_an_image_that_is_older_than_a_week_is_replaced(build: Builder) -> None:
    build("munge")
    (image,) = build.directories
    os.utime(image, (0, image.stat().st_mtime - 8 * 86400))

    assert build("munge").stdout == f"built {image}\n"


def test_a_build_that_failed_leaves_nothing(build: Builder) -> None:
    build.images.mkdir()
    build.fails.touch()
    failed = build("munge")
    build.fails.unlink()

    assert failed.returncode == 1
    assert build.directories == []
    assert build("munge").stdout.startswith("built ")


def test_another_architecture_is_refused(build: Builder) -> None:
    (build.path / "dpkg").write_text("#!/bin/sh\necho arm64\n")
    done = build("munge")

    assert done.returncode == 1
    assert "this machine has debian for arm64: only Debian for amd64 can install others" in done.stderr


def test_ubuntu_is_refused(build: Builder) -> None:
    """It has no package linux-image-amd64."""
    build.release.write_text("ID=ubuntu\nVERSION_CODENAME=noble\n")
    done = build("munge")

    assert done.returncode == 1
    assert "this machine has ubuntu for amd64: only Debian for amd64 can install others" in done.stderr
