"""Snapshots of a whole lab: all machines as they were at one instant, with disks, memory and devices.

A snapshot is a directory below `snapshots/` of the lab. It contains the directory and the memory of each machine, the
command that ran it, and the recorded hardware of the workers. Thawed machines write to overlays and copies of its
disks, so a snapshot never changes.
"""

import concurrent.futures
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from slurmstead.errors import Interrupted, MachineError, SteadError, UsageError
from slurmstead.lab import advice, clocks, machines
from slurmstead.lab.qmp import Qemu
from slurmstead.runner.interruption import Cancellation, signals_to

LABEL = "converged"
"""The default label of a snapshot."""

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
SNAPSHOTS = "snapshots"
MANIFEST = "machines.json"
UNFINISHED = "machines.json.new"
MEMORY = "memory"
MEASURED = "hardware"
"""The playbooks' records of the workers' hardware, in the lab's directory (inventory/lab)."""

OF_A_PROCESS = ("pid", "qmp", "console.log")
SAVE_SECONDS = 300
LOGIN_SECONDS = 120
UNLIMITED = 1 << 40

T = TypeVar("T")


def labels(directory: pathlib.Path) -> list[str]:
    """Return the labels of a lab's snapshots."""
    return sorted(path.parent.name.partition(".")[0] for path in directory.glob(f"{SNAPSHOTS}/*/{MANIFEST}"))


def freeze(directory: pathlib.Path, label: str = LABEL) -> None:
    """Make a snapshot of all machines of a lab, which then keep running; it replaces one with the same label.

    Connections to the machines break, as after a network failure.

    :param directory: of the lab, see `slurmstead.paths.lab_directory`
    :raises UsageError: the label is invalid, the lab does not exist, or it consists of containers
    :raises MachineError: a machine does not run, or QEMU cannot save it; the machines keep running
    """
    if not NAME.fullmatch(label):
        raise UsageError(
            f"{label!r} is not a valid label of a snapshot", "Use lower-case letters, digits and hyphens, at most 31."
        )
    if (directory / "bridge").exists():
        raise UsageError(
            f"the lab {directory.name} consists of containers, which cannot be frozen",
            "Create another lab, without --native: scripts/stead lab up --name NAME",
        )
    pids = _machines(directory)
    stopped = [name for name, pid in pids.items() if pid is None]
    if stopped:
        raise MachineError(
            f"{', '.join(stopped)} must run to be frozen", f"Start it: {advice.command('up', directory.name)}"
        )
    commands = {name: plain_command(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()) for name, pid in pids.items()}
    (directory / SNAPSHOTS).mkdir(exist_ok=True)
    replaced = list(directory.glob(f"{SNAPSHOTS}/{label}.*/{MANIFEST}"))
    snapshot = pathlib.Path(tempfile.mkdtemp(prefix=f"{label}.", dir=directory / SNAPSHOTS))
    try:
        (snapshot / UNFINISHED).write_text(json.dumps(commands))
        if (directory / MEASURED).exists():
            shutil.copytree(directory / MEASURED, snapshot / f".{MEASURED}")
        _save(directory, snapshot, pids)
    except BaseException:
        shutil.rmtree(snapshot)
        raise
    _complete(directory, snapshot, commands, replaced)
    thaw(directory, label)


def _complete(
    directory: pathlib.Path, snapshot: pathlib.Path, names: Iterable[str], replaced: Iterable[pathlib.Path]
) -> None:
    """End all machines and move them into a snapshot; signals wait, and no free space is needed.

    :raises Interrupted: a signal arrived meanwhile; the snapshot is complete
    """
    cancellation = Cancellation()
    with signals_to(cancellation):
        machines.end(directory)
        for name in names:
            (directory / name).rename(snapshot / name)
        (snapshot / UNFINISHED).rename(snapshot / MANIFEST)
        for manifest in replaced:
            _forget(manifest)
    if cancellation.number is not None:
        label = snapshot.name.partition(".")[0]
        how = advice.command(f"thaw {label}", directory.name)
        raise Interrupted(cancellation.number, f"The machines are frozen and off. Start them: {how}")


def thaw(directory: pathlib.Path, label: str = LABEL) -> None:
    """Reset all machines of a lab to a snapshot, even if they are broken or were removed.

    They get back their hardware of that time. Their clocks are set to the present, so Slurm counts the time since the
    snapshot as run time of jobs. Connections to the machines end.

    :param directory: of the lab, see `slurmstead.paths.lab_directory`
    :raises UsageError: there is no such snapshot, or the lab has machines that are not in it
    :raises MachineError: a machine did not come back
    """
    manifest = next(directory.glob(f"{SNAPSHOTS}/{label}.*/{MANIFEST}"), None)
    if manifest is None:
        raise UsageError(
            f"the lab {directory.name} has no snapshot {label!r}; it has: {', '.join(labels(directory)) or 'none'}",
            f"Create a snapshot of a running lab: {advice.command('freeze', directory.name)}",
        )
    commands: dict[str, list[str]] = json.loads(manifest.read_text())
    others = sorted(machines.pids(directory).keys() - commands.keys())
    if others:
        raise UsageError(
            f"the snapshot {label!r} does not contain {', '.join(others)}",
            "Remove the machine, or freeze the lab again.",
        )
    switch = _switch(directory)
    machines.end(directory)
    if (manifest.parent / f".{MEASURED}").exists():
        shutil.rmtree(directory / MEASURED, ignore_errors=True)
        shutil.copytree(manifest.parent / f".{MEASURED}", directory / MEASURED)

    def start(name: str) -> Qemu:
        frozen, home = manifest.parent / name, directory / name
        _copy(frozen, home)
        (home / "switch").write_text(switch)
        with frozen.with_suffix(f".{MEMORY}").open("rb") as memory:
            _run([*commands[name], "-S", "-incoming", f"fd:{memory.fileno()}"], home, memory.fileno())
        return Qemu(home)

    with contextlib.ExitStack() as stack:
        qemus = _each(start, commands)
        for qemu in qemus.values():
            stack.callback(qemu.close)
        _each(lambda name: _wait(qemus[name], "query-status", "paused", ("inmigrate",)), commands)
        _each(lambda name: qemus[name].execute("cont"), commands)
    clocks.set_all(directory, commands, LOGIN_SECONDS)


def plain_command(cmdline: bytes) -> list[str]:
    """Return the command of a QEMU process from its proc(5) `cmdline`, without the arguments for thawing.

    >>> plain_command(b"qemu\\0-daemonize\\0-S\\0-incoming\\0fd:7\\0")
    ['qemu', '-daemonize']
    """
    words = cmdline.decode().removesuffix("\0").split("\0")
    return words[: words.index("-incoming") - 1] if "-incoming" in words else words


def _machines(directory: pathlib.Path) -> dict[str, int | None]:
    pids = machines.pids(directory)
    if not pids:
        raise UsageError(f"the lab {directory.name} does not exist", f"Make it: {advice.command('up', directory.name)}")
    return pids


def _each(function: Callable[[str], T], names: Iterable[str]) -> dict[str, T]:
    """Call a function for all machines at once; return its results by name."""
    chosen = list(names)
    with concurrent.futures.ThreadPoolExecutor(len(chosen)) as pool:
        return dict(zip(chosen, pool.map(function, chosen), strict=True))


def _save(directory: pathlib.Path, snapshot: pathlib.Path, names: Iterable[str]) -> None:
    """Stop all machines and save their memory and devices; after an error they continue."""
    with contextlib.ExitStack() as stack:
        qemus = {}
        for name in names:
            qemus[name] = Qemu(directory / name)
            stack.callback(qemus[name].close)
        blocked = _each(lambda name: qemus[name].execute("query-migrate").get("blocked-reasons"), qemus)
        wrong = [f"{name} ({'; '.join(reasons)})" for name, reasons in blocked.items() if reasons]
        if wrong:
            raise MachineError(
                f"QEMU cannot save the state of {', '.join(wrong)}",
                "Recreate the lab without these devices: with STEAD_LAB_BUS=virtio, inventory/lab has no NVMe disks.",
            )

        def save(name: str) -> None:
            qemus[name].execute("migrate-set-parameters", max_bandwidth=UNLIMITED)
            with (snapshot / f"{name}.{MEMORY}").open("wb") as memory:
                qemus[name].execute("getfd", memory.fileno(), fdname=MEMORY)
            qemus[name].execute("migrate", uri=f"fd:{MEMORY}")
            _wait(qemus[name], "query-migrate", "completed", ("setup", "active", "device", "pre-switchover"))

        try:
            _each(lambda name: qemus[name].execute("stop"), qemus)
            _each(save, qemus)
        except BaseException:
            for qemu in qemus.values():
                with contextlib.suppress(SteadError, OSError):
                    qemu.execute("cont")
            raise


def _wait(qemu: Qemu, question: str, wanted: str, meanwhile: tuple[str, ...]) -> None:
    deadline = time.monotonic() + SAVE_SECONDS
    while (status := (said := qemu.execute(question)).get("status", meanwhile[0])) != wanted:
        if status not in meanwhile or time.monotonic() > deadline:
            raise MachineError(
                f"expected {question} of QEMU to become {wanted}, seen {status} {said.get('error-desc', '')}".rstrip(),
                "Check the free disk space (df) and memory (free), then repeat the command.",
            )
        time.sleep(0.1)


def _copy(frozen: pathlib.Path, home: pathlib.Path) -> None:
    """Create the directory of a machine from a snapshot: an overlay over its root disk, copies of the other files."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    for path in frozen.iterdir():
        if path.name not in (*OF_A_PROCESS, "root.qcow2"):
            # Blank disks have gigabytes of holes.
            _run(["cp", "--preserve=mode", "--sparse=always", "--reflink=auto", str(path), str(home)], home)
    root = str(frozen / "root.qcow2")
    _run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", root, "-F", "qcow2", "root.qcow2"], home)


def _run(command: list[str], directory: pathlib.Path, *files: int) -> None:
    done = subprocess.run(
        command,
        cwd=directory,
        pass_fds=files,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise MachineError(
            f"{command[0]} failed for {directory.name} ({done.returncode}): {done.stderr.strip()}",
            "Check the free disk space (df) and memory (free), then thaw the lab again.",
        )


def _switch(directory: pathlib.Path) -> str:
    """Return the process ID of the switch between the machines."""
    pid_file = directory / "switch.pid"
    try:
        pid = pid_file.read_text().strip()
        if str(pid_file) in pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
            return pid
    except OSError:
        pass
    raise MachineError(
        f"the switch of the lab {directory.name} does not run", f"Start it: {advice.command('up', directory.name)}"
    )


def _forget(manifest: pathlib.Path) -> None:
    """Remove the large files of a snapshot, except the root disks, on which later overlays are based."""
    manifest.unlink()
    for path in (*manifest.parent.glob(f"*.{MEMORY}"), *manifest.parent.glob("*/*.raw")):
        path.unlink()
