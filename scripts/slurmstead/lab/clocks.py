"""The clocks of the lab's machines, which stop while a machine is frozen."""

import pathlib
import subprocess
import threading
import time
from collections.abc import Iterable

from slurmstead.errors import MachineError
from slurmstead.lab import advice, machines

SET = "sudo sh -c 'echo ready && read now && date --set=@$now >/dev/null'"


def set_all(directory: pathlib.Path, names: Iterable[str], seconds: float) -> None:
    """Set the clocks of machines to this computer's, all at the same moment.

    Slurm and MUNGE compare the machines' clocks, so this logs in to all machines before it sets the first clock.

    :raises MachineError: a machine does not accept the login within `seconds`, or its clock cannot be set
    """
    logins = {
        name: subprocess.Popen(
            machines.ssh_command(directory, name, [SET]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    }
    deadline = threading.Timer(seconds, _kill, [logins.values()])
    deadline.start()
    try:
        if all([login.stdout and login.stdout.readline() for login in logins.values()]):
            for login in logins.values():
                assert login.stdin is not None
                login.stdin.write(f"{time.time():.3f}\n")
                login.stdin.flush()
        said = {name: login.communicate()[1] for name, login in logins.items()}
    finally:
        deadline.cancel()
        _kill(logins.values())
    wrong = [f"{name}: {said[name].strip() or 'no answer'}" for name, login in logins.items() if login.returncode]
    if wrong:
        raise MachineError(
            f"expected to set the clocks of {', '.join(logins)} over ssh within {seconds:.0f} s, "
            f"seen: {'; '.join(wrong)}",
            f"Thaw the lab again; if that fails too, recreate it: {advice.again(directory.name)}",
        )


def _kill(logins: Iterable[subprocess.Popen[str]]) -> None:
    for login in logins:
        login.kill()
