"""The lab: the machines of inventory/lab as virtual machines or containers on this computer."""

import concurrent.futures
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import time
from collections.abc import Collection, Mapping

from rich.console import Console
from rich.table import Table

from slurmstead.errors import MachineError, UsageError
from slurmstead.lab import advice, host
from slurmstead.paths import LAB_INVENTORY, PLAYBOOKS, lab_directory
from slurmstead.runner import playbook, processes
from slurmstead.runner.outcome import Result
from slurmstead.runner.progress import Progress

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
"""Valid names of labs; they are part of socket paths, which are limited to 107 bytes (unix(7))."""

LEFT_OUT = (
    "Containers share this computer's kernel. Left out: NFS (the share is a directory of this computer), LVM (scratch "
    "is a directory), cgroups (proctrack/linuxproc; the smoke test's one-cpu and memory-limit fail), setting the clock."
)
"""The differences between containers and virtual machines."""

END_SECONDS = 30
PROBE_SECONDS = 20
"""Seconds to wait for a machine's answer; a busy emulated one needs several for a login."""


@dataclasses.dataclass(frozen=True)
class Node:
    """A machine: `pid` is None if it does not run, `release` if it does not answer; `memory` in bytes."""

    name: str
    pid: int | None
    memory: int | None
    release: str | None


def choose(name: str | None, inventory: pathlib.Path = LAB_INVENTORY) -> str:
    """Choose the lab for all further commands of this process, and return its name.

    The default name is that of the inventory, and `default` for inventory/lab.

    :raises UsageError: the name is invalid
    """
    directory = inventory.resolve().parent if inventory.is_file() else inventory.resolve()
    own = "default" if directory == LAB_INVENTORY else directory.name
    chosen = name or os.environ.get("STEAD_LAB") or own
    if not NAME.fullmatch(chosen):
        raise UsageError(
            f"{chosen!r} is not a valid name of a lab", "Use lower-case letters, digits and hyphens, at most 31."
        )
    os.environ["STEAD_LAB"] = chosen
    return chosen


def variables(*, image: str | None, release: str | None, native: bool = False) -> dict[str, str]:
    """Return the playbook variables for the options that are set."""
    given = {"lab_image": image, "lab_release": release, "lab_kind": "container" if native else None}
    return {name: value for name, value in given.items() if value is not None}


def needs_arm64(inventory: pathlib.Path) -> bool:
    """Whether an inventory has a machine that is emulated as arm64.

    :raises InventoryError: the inventory does not exist or cannot be read
    """
    hosts = playbook.listed(inventory)["_meta"]["hostvars"].values()
    return any(host.get("lab_board") or host.get("lab_architecture") == "arm64" for host in hosts)


def is_native(directory: pathlib.Path) -> bool:
    """Whether an existing lab consists of containers."""
    return (directory / "bridge").exists()


def check_image(directory: pathlib.Path, extra_vars: Mapping[str, str]) -> None:
    """Check that the existing machines of a lab have the release and the kind of image that are wanted.

    :raises UsageError: a machine has another one
    """
    for file in sorted(directory.glob("*/image")):
        # As in roles/lab/vars/main.yml.
        words = pathlib.Path(file.read_text()).name.split("-")
        made = dict(zip(("lab_release", "lab_architecture", "lab_image"), words, strict=False))
        for name, wanted in extra_vars.items():
            if made.get(name, wanted) != wanted:
                raise UsageError(
                    f"{file.parent.name} of the lab {directory.name} exists with {made[name]}, not {wanted}",
                    f"Remove the lab first ({advice.command('down', directory.name)}), or make another with --name.",
                )


def up(console: Console, inventory: pathlib.Path, extra_vars: Mapping[str, str]) -> Result:
    """Start the machines that do not run; install missing packages on this computer first.

    :raises UsageError: containers are wanted, and a machine of the inventory cannot be a container; or a machine exists
        with another image
    :raises MachineError: containers need root
    """
    directory = lab_directory(os.environ["STEAD_LAB"])
    check_image(directory, extra_vars)
    if extra_vars.get("lab_kind") != "container" and not is_native(directory):
        host.ensure_packages(console, arm64=needs_arm64(inventory))
        return _play(console, "create-lab.yml", inventory, extra_vars)
    if needs_arm64(inventory):
        raise UsageError(
            f"{inventory} has a machine of another architecture, which a container cannot have",
            "Start it without --native.",
        )
    _need_root("start")
    host.ensure_packages(console, native=True)
    result = _play(console, "create-lab.yml", inventory, extra_vars)
    console.print(LEFT_OUT, highlight=False, soft_wrap=True)
    return result


def down(console: Console, inventory: pathlib.Path = LAB_INVENTORY) -> Result:
    """End the machines and remove their files.

    :raises MachineError: they are containers, which need root
    """
    if is_native(lab_directory(os.environ["STEAD_LAB"])):
        _need_root("end")
    return _play(console, "destroy-lab.yml", inventory, {})


def _need_root(verb: str) -> None:
    if os.geteuid() != 0:
        raise MachineError(
            f"only root can {verb} containers (--native), seen user {os.geteuid()}",
            "Run it as root, for example with sudo; virtual machines (without --native) need no root.",
        )


def _play(console: Console, name: str, inventory: pathlib.Path, extra_vars: Mapping[str, str]) -> Result:
    with Progress(console, name) as progress:
        result = playbook.run(PLAYBOOKS / name, inventory, extra_vars=extra_vars, plain=True, observer=progress)
    if result.error:
        raise result.error
    return result


def pids(directory: pathlib.Path) -> dict[str, int | None]:
    """Return the process ID of each machine of a lab by name, None if it does not run."""
    found: dict[str, int | None] = {}
    for home in sorted(path.parent for path in directory.glob("*/ssh_config")):
        try:
            pid = int((home / "pid").read_text())
            # After a crash of this computer, another process can have this ID, also a machine of another lab.
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            runs = not {str(home), f"{home}/pid"}.isdisjoint(words)
        except (OSError, ValueError):
            runs = False
        found[home.name] = pid if runs else None
    return found


def end(directory: pathlib.Path, names: Collection[str] = ()) -> None:
    """Cut the power of machines of a lab, or of all if none is named; return when their processes have ended.

    :raises MachineError: a process survived
    """
    for name, pid in pids(directory).items():
        if pid and (name in names or not names):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + END_SECONDS
    while left := [name for name, pid in pids(directory).items() if pid and (name in names or not names)]:
        if time.monotonic() > deadline:
            raise MachineError(
                f"{', '.join(left)} still runs {END_SECONDS} s after SIGKILL", "Its disk may not answer: see dmesg."
            )
        time.sleep(0.05)


def ssh_command(directory: pathlib.Path, node: str, command: list[str], user: str | None = None) -> list[str]:
    """Return the command line that logs in to a machine, or runs a command on it.

    :raises UsageError: the lab or the machine does not exist
    :raises MachineError: the machine does not run
    """
    config = directory / "ssh_config"
    nodes = pids(directory)
    if not nodes or not config.exists():
        raise UsageError(
            f"the lab {directory.name} does not exist", f"Create it: {advice.command('up', directory.name)}"
        )
    if node not in nodes:
        raise UsageError(f"the lab {directory.name} has no machine {node}", f"It has {', '.join(nodes)}.")
    if nodes[node] is None:
        raise MachineError(f"{node} does not run", f"Start it: {advice.command('up', directory.name)}")
    login = ["-l", user] if user else []
    return ["ssh", "-F", str(config), *login, node, *(["--", *command] if command else [])]


def status(directory: pathlib.Path) -> list[Node]:
    """Return the state of each machine of a lab; empty if the lab does not exist."""

    def look(name: str, pid: int | None) -> Node:
        if pid is None:
            return Node(name, None, None, None)
        # The processes of a container are descendants of the process that started it.
        inside = [process.pid for process in processes.descendants(pid)]
        return Node(name, pid, processes.memory_bytes([pid, *inside]), _release(directory, name))

    found = pids(directory)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return list(pool.map(look, found, found.values()))


def _release(directory: pathlib.Path, node: str) -> str | None:
    command = ssh_command(directory, node, [". /etc/os-release && echo $VERSION_CODENAME"])
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=PROBE_SECONDS
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def print_status(console: Console, nodes: list[Node]) -> None:
    """Print the state of the machines as a table."""
    table = Table("node", "runs", "pid", "memory", "ssh", "release", box=None, pad_edge=False, header_style="bold")
    for node in nodes:
        memory = "" if node.memory is None else f"{node.memory / 2**30:.2f} GiB"
        table.add_row(
            node.name,
            "yes" if node.pid else "no",
            str(node.pid or ""),
            memory,
            "answers" if node.release else "no answer" if node.pid else "",
            node.release or "",
        )
    console.print(table)
