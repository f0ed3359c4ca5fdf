"""What the installer does on the new machine, as far as it can be tried anywhere."""

from __future__ import annotations

import hashlib
import pathlib
import subprocess
import threading
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.install import machine


class Cut(machine.Control):
    """Control, whose network is cut while it sends the system."""

    def read(self, name: str) -> Iterator[bytes]:
        yield b"\x28\xb5\x2f\xfd"  # how zstd's output begins
        raise TimeoutError("timed out")


def test_a_network_that_is_cut_while_the_system_is_unpacked_is_a_failure(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "TARGET", tmp_path)
    failures: list[str] = []

    def unpack() -> None:
        try:
            machine.unpack(Cut(""), "5a")
        except OSError as error:
            failures.append(str(error))

    unpacking = threading.Thread(target=unpack, daemon=True)
    unpacking.start()
    unpacking.join(20)

    assert failures == ["timed out"]


def test_the_system_of_control_is_unpacked_and_another_one_is_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "target").mkdir()
    (tmp_path / "source/file").write_text("of the system")
    packed = subprocess.run(["tar", "-c", "--zstd", "-C", tmp_path / "source", "."], capture_output=True, check=True)
    monkeypatch.setattr(machine, "TARGET", tmp_path / "target")
    monkeypatch.setattr(machine.Control, "read", lambda *_: iter([packed.stdout]))

    machine.unpack(machine.Control(""), hashlib.sha256(packed.stdout).hexdigest())

    assert (tmp_path / "target/file").read_text() == "of the system"
    with pytest.raises(OSError, match="was changed on its way"):
        machine.unpack(machine.Control(""), "5a")
