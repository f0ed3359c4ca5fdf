"""The client as a wheel of its own."""

from __future__ import annotations

import io
import pathlib
import subprocess
import sys
import zipfile

from slurmstead.client import wheel


def test_the_same_sources_give_the_same_wheel() -> None:
    assert wheel.build() == wheel.build()


def test_other_sources_give_another_version() -> None:
    files = wheel.sources()

    assert wheel.version(files, "1") != wheel.version({**files, "slurmstead/errors.py": b""}, "1")


def test_a_fresh_python_imports_it_with_nothing_but_what_it_declares(tmp_path: pathlib.Path) -> None:
    name, content = wheel.build()
    (tmp_path / name).write_bytes(content)
    (tmp_path / "pathspec.py").write_text("class GitIgnoreSpec:\n    from_lines = classmethod(lambda *_: None)\n")
    program = f"import sys; sys.path[:0] = [{str(tmp_path / name)!r}, {str(tmp_path)!r}]; import slurmstead.client as c"
    command = [sys.executable, "-I", "-S", "-c", f"{program}; print(c.__file__, c.Client('local').head.is_local)"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert name in said and said.endswith("True\n")


def test_a_pathspec_that_is_too_old_is_replaced() -> None:
    """Debian 12 has 0.11, whose GitIgnoreSpec has no check_file."""
    with zipfile.ZipFile(io.BytesIO(wheel.build()[1])) as archive:
        (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA"))

    assert "Requires-Dist: pathspec>=0.12\n" in metadata


def test_the_file_runs_without_our_packages_and_replaces_an_older_wheel(tmp_path: pathlib.Path) -> None:
    (tmp_path / "slurmstead_client-0.1.0+0123456789ab-py3-none-any.whl").write_bytes(b"")
    command = [sys.executable, "-I", "-S", wheel.__file__, str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert pathlib.Path(said).read_bytes() == wheel.build()[1]
    assert list(tmp_path.glob("*.whl")) == [pathlib.Path(said)]
