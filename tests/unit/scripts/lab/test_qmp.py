"""The connection to a QEMU process, with a server that speaks as QEMU does."""

import json
import os
import pathlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from slurmstead.errors import MachineError
from slurmstead.lab.qmp import Qemu

ANSWERS = {
    "qmp_capabilities": [{"return": {}}],
    "query-status": [{"event": "STOP"}, {"return": {"status": "paused"}}],
    "migrate": [{"error": {"class": "GenericError", "desc": "no room"}}],
}


@pytest.fixture
def home(tmp_path: pathlib.Path) -> pathlib.Path:
    """The directory of a machine, whose name is longer than that of a socket may be."""
    path = tmp_path / ("long" * 30) / "node1"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def serve(home: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[bytes]]]:
    """Answer one connection; what the files that were handed over hold is returned."""
    seen: list[bytes] = []
    listener = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(home)
    listener.bind("qmp")
    listener.listen()

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b'{"QMP": {}}\n')
            while True:
                request, files, _, _ = socket.recv_fds(connection, 4096, 4)
                if not request:
                    return
                for file in files:
                    seen.append(os.pread(file, 100, 0))
                    os.close(file)
                for line in ANSWERS.get(json.loads(request)["execute"], []):
                    connection.sendall(json.dumps(line).encode() + b"\n")
                if json.loads(request)["execute"] == "quit":
                    return

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    yield lambda: seen
    thread.join(10)
    listener.close()


def test_events_are_not_taken_for_the_answer(home: pathlib.Path, serve: object) -> None:
    qemu = Qemu(home)
    try:
        assert qemu.execute("query-status") == {"status": "paused"}
    finally:
        qemu.close()


def test_what_qemu_refuses_is_an_error_with_its_words(home: pathlib.Path, serve: Callable[[], list[bytes]]) -> None:
    (home / "file").write_text("memory")
    qemu = Qemu(home)
    try:
        with (home / "file").open("rb") as file, pytest.raises(MachineError, match="node1: .* migrate: no room"):
            qemu.execute("migrate", file.fileno(), uri="fd:memory")
        assert serve() == [b"memory"], "the file was not handed over"
        with pytest.raises(ConnectionError, match="ended before it answered quit"):
            qemu.execute("quit")
    finally:
        qemu.close()


def test_a_machine_without_a_socket_is_named(home: pathlib.Path) -> None:
    with pytest.raises(MachineError, match="node1: QEMU does not answer") as caught:
        Qemu(home)
    assert caught.value.hint
