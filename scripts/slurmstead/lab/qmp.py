"""The part of the QEMU Machine Protocol that the lab needs (QEMU Machine Protocol Specification)."""

import json
import os
import pathlib
import socket
from typing import Any, TextIO

from slurmstead.errors import MachineError
from slurmstead.lab import advice

ANSWER_SECONDS = 60


class Qemu:
    """A connection to the QEMU process of a machine; the socket `qmp` is in the machine's directory."""

    def __init__(self, home: pathlib.Path) -> None:
        self._name = home.name
        self._lines: TextIO | None = None
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(ANSWER_SECONDS)
        # A path through a descriptor of the directory stays below the 107 bytes of unix(7).
        directory = os.open(home, os.O_PATH)
        try:
            self._socket.connect(f"/proc/self/fd/{directory}/qmp")
            self._lines = self._socket.makefile("r")
            self._lines.readline()
            self.execute("qmp_capabilities")
        except OSError as error:
            self.close()
            raise MachineError(
                f"{self._name}: QEMU does not answer on {home / 'qmp'}: {error}",
                f"Another process may be connected to it; otherwise recreate the lab: {advice.again(home.parent.name)}",
            ) from error
        finally:
            os.close(directory)

    def close(self) -> None:
        """End the connection."""
        if self._lines:
            self._lines.close()
        self._socket.close()

    def execute(self, command: str, *files: int, **arguments: Any) -> Any:
        """Return QEMU's answer to a command, which may pass file descriptors to it.

        In the names of arguments, `_` stands for `-`.

        :raises MachineError: QEMU refuses the command
        :raises OSError: it does not answer in time, or has ended
        """
        words = {name.replace("_", "-"): value for name, value in arguments.items()}
        request = json.dumps({"execute": command, "arguments": words}).encode() + b"\n"
        socket.send_fds(self._socket, [request], files)
        for line in self._lines or ():
            answer = json.loads(line)
            if "error" in answer:
                raise MachineError(f"{self._name}: QEMU refuses {command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]
        raise ConnectionError(f"{self._name}: QEMU ended before it answered {command}")
