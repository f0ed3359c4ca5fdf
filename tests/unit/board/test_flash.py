"""An image is written by a simulated bmcd, over its protocol; faults say what state the module is in."""

from __future__ import annotations

import dataclasses
import pathlib
import sys
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.board import flash
from ansible.module_utils.slurmstead.power.model import Machine
from tests import power_devices as devices

SIZE = 3 * 2**20 + 17
RELAY = """#!{python}
# Stands for ssh: -W HOST:PORT connects its input and output with an address.
import os, socket, sys, threading
host, port = sys.argv[sys.argv.index("-W") + 1].rsplit(":", 1)
open("{log}", "w").write(" ".join(sys.argv[1:]))
far = socket.create_connection((host, int(port)))
def copy():
    while data := far.recv(65536):
        os.write(1, data)
    os._exit(0)
threading.Thread(target=copy, daemon=True).start()
while data := os.read(0, 65536):
    far.sendall(data)
"""


@dataclasses.dataclass
class Board:
    """A simulated board, its module, and an image for it."""

    device: devices.Device
    machine: Machine
    image: pathlib.Path
    disk: pathlib.Path
    told: list[str] = dataclasses.field(default_factory=list)

    def flash(self) -> None:
        flash.flash(self.machine, self.image, self.told.append)


@pytest.fixture
def board(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    monkeypatch.setattr(flash, "PAUSE", 0.01)
    image, disk = tmp_path / "image", tmp_path / "disk"
    image.write_bytes(bytes(range(251)) * (SIZE // 251) + bytes(SIZE % 251))
    disk.write_bytes(bytes(SIZE + 2**20))
    with devices.served(devices.BmcdHandler, devices.certificate(tmp_path)) as device:
        device.disk = disk
        own = {"name": "node2", "method": "turing_pi", "slot": 2, "address": device.address, "seconds": 5.0}
        machine = Machine.read({**own, "user": "admin", "password": "right", "certificate": device.certificate})
        yield Board(device, machine, image, disk)


def test_an_image_is_written_verified_and_the_module_is_on(board: Board) -> None:
    board.flash()

    assert board.disk.read_bytes() == board.image.read_bytes() + bytes(2**20)
    assert (board.device.on, board.device.switched) == (True, ["1"])
    assert board.device.announced["file"] == "image.img" and len(board.device.announced["sha256"]) == 64
    assert "writing: 100 % of 3 MB" in board.told and any(line.startswith("verifying: 66 %") for line in board.told)


def test_a_board_behind_control_is_reached_by_ssh(board: Board, tmp_path: pathlib.Path) -> None:
    ssh, log = tmp_path / "ssh", tmp_path / "log"
    ssh.write_text(RELAY.format(python=sys.executable, log=log))
    ssh.chmod(0o755)
    board.machine = dataclasses.replace(board.machine, through=[str(ssh), "-p", "2222", "ansible@control"])
    board.flash()

    assert board.disk.read_bytes().startswith(board.image.read_bytes())
    assert log.read_text() == f"-W {board.device.address} -p 2222 ansible@control"


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("write", "bmcd reports: No space left on device"),
        ("flip", "bmcd reports: crc error"),
        ("restart", "has dropped the transfer"),
        ("cut", "answers HTTP 503"),
    ],
)
def test_a_failure_says_that_the_disk_is_partly_written_and_the_same_command_repeats_it(
    board: Board, fault: str, why: str
) -> None:
    board.device.fault = fault
    with pytest.raises(flash.FlashError, match=why) as raised:
        board.flash()
    assert "partly written" in str(raised.value)
    assert not board.device.switched

    board.device.fault, board.device.broken = "", 0
    board.device.transfer = {"Error": "cancelled by user"}
    board.flash()

    assert board.disk.read_bytes().startswith(board.image.read_bytes())


def test_a_board_that_writes_another_image_is_left_alone(board: Board) -> None:
    doing = {"id": 7, "process_name": "Node 3 os install service", "size": 9, "bytes_written": 1}
    board.device.transfer = {"Transferring": doing}

    with pytest.raises(flash.FlashError, match="is writing another image"):
        board.flash()
    assert not board.device.announced


def test_a_refused_password_is_sent_once(board: Board) -> None:
    board.machine = dataclasses.replace(board.machine, password="wrong")

    with pytest.raises(flash.FlashError, match="refuses the credentials .* nothing was written"):
        board.flash()
    assert board.device.refused == 1


def test_another_certificate_gets_no_password(board: Board) -> None:
    board.machine = dataclasses.replace(board.machine, certificate="0" * 64)

    with pytest.raises(flash.FlashError, match="another certificate"):
        board.flash()
    assert board.device.logins == 0
