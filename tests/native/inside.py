"""The first process of a cluster's namespaces: makes machines, cuts them off and ends them, as it is told on its input.

Each machine has processes, mounts, a host name and a network of its own: an overlay over the packages of a release, and
one cable, whose other end is here. This process forwards between the cables. Network neighbours are permanent entries,
because the kernel's table has room for 1024 others on the whole computer.

It needs nothing but Python. Each line of its input is a list in JSON, a command and its arguments; so is each answer.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable

PLACE = pathlib.Path("/mnt")
"""Where the cluster's files are: in memory, and visible to this cluster only."""

PACKAGES, LAYER = PLACE / "packages", PLACE / "layer"

OUTER, INNER, GATEWAY = "02:00:00:00:00:01", "02:00:00:00:00:02", "169.254.0.1"
"""The same at each cable: no two cables share a network."""

SHARED = {"munge": "run/munge", "share": "share"}
"""Directories of the cluster that all machines have, below PLACE and on the machines."""

SHARED_OWNERS = {"munge": "munge", "share": "root"}

Files = dict[str, dict[str, tuple[str, int, str]]]
"""Text, mode and owner by path, by machine."""

LIBC = ctypes.CDLL(None, use_errno=True)
# mount(2), umount(2) and unshare(2)
MS_RDONLY, MS_BIND, MS_REC, MNT_DETACH = 0x1, 0x1000, 0x4000, 0x2
NEW_MACHINE = 0x00020000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000  # mount, uts, ipc, pid, net
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}[os.uname().machine]


def call(name: str, *arguments: object) -> None:
    """Call a function of the C library. Raises OSError."""
    if getattr(LIBC, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}{arguments}: {os.strerror(number)}")


def mount(source: str, target: pathlib.Path | str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Call mount(2); the target is created."""
    os.makedirs(target, exist_ok=True)
    call("mount", source.encode(), str(target).encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())


def ip(lines: Iterable[str]) -> None:
    """Run the lines of an `ip -batch`."""
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True, stdout=subprocess.DEVNULL)


class Machines:
    """The machines of a cluster. `addresses` are by name; the files are by machine, those of all of them under "".

    Each machine has those of the directories `root` and `layer`.
    """

    def __init__(self, root: str, addresses: dict[str, str], homes: list[str], files: Files, layer: str = "") -> None:
        self.addresses = addresses
        self.pids: dict[str, int] = {}
        self.waiting: dict[str, socket.socket] = {}
        # It may be below what is hidden now.
        below = {PACKAGES: os.open(root, os.O_PATH), **({LAYER: os.open(layer, os.O_PATH)} if layer else {})}
        mount("tmpfs", PLACE, "tmpfs")
        for path, place in below.items():
            mount(f"/proc/self/fd/{place}", path, "", MS_BIND)
            os.close(place)
        self.lower = ":".join(map(str, (PLACE / "common", *reversed(below))))
        for name, those in files.items():
            base = PLACE / "machines" / name / "upper" if name else PLACE / "common"
            for place, (text, mode, owner) in those.items():
                path = base / place
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
                path.chmod(mode)
                os.chown(path, *self._owner(owner))
        for name, owner in [*SHARED_OWNERS.items(), *((f"share/home/{user}", user) for user in homes)]:
            (PLACE / name).mkdir(parents=True)
            os.chown(PLACE / name, *self._owner(owner))
        pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        ip(["link set lo up"])

    def _owner(self, name: str) -> tuple[int, int]:
        for base in (PLACE / "common", PACKAGES):
            for line in (base / "etc/passwd").read_text().splitlines() if (base / "etc/passwd").exists() else ():
                fields = line.split(":")
                if fields[0] == name:
                    return int(fields[2]), int(fields[3])
        raise KeyError(name)

    def create(self, names: list[str]) -> dict[str, int]:
        """Make machines, which wait to be started; returns the number of the first process of each."""
        forked = {name: self._fork(name) for name in names}
        ip(
            f"link add c{self._number(name)} address {OUTER} type veth peer name eth0 address {INNER} netns {pid}"
            for name, (pid, _) in forked.items()
        )
        self.join(names)
        self.waiting |= {name: line for name, (_, line) in forked.items()}
        self.pids |= {name: pid for name, (pid, _) in forked.items()}
        return {name: pid for name, (pid, _) in forked.items()}

    def start(self, daemons: dict[str, list[list[str]]]) -> None:
        """Start machines, each with its daemons, which are command lines; returns when commands can enter them."""
        for name, commands in daemons.items():
            self.waiting[name].sendall(f"{json.dumps(commands)}\n".encode())
        for name in daemons:
            with self.waiting.pop(name) as line:
                line.recv(1)

    def _number(self, name: str) -> int:
        return list(self.addresses).index(name)

    def _fork(self, name: str) -> tuple[int, socket.socket]:
        """Return the process number of a machine, and the line on which it waits for its daemons, which ends then."""
        line, own = socket.socketpair()
        if not (middle := os.fork()):
            try:
                call("unshare", NEW_MACHINE)
                pid = os.fork()
                if pid:
                    own.sendall(str(pid).encode())
                    os._exit(0)
                self._become(name, own)
            except BaseException as error:  # A fork must not go on as its parent.
                print(f"{name}: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        own.close()
        os.waitpid(middle, 0)
        return int(line.recv(100)), line

    def _become(self, name: str, line: socket.socket) -> None:
        """Turn this process into the first of a machine, when it is told its daemons.

        The line ends when it executes `sleep`: a command that entered before would find the files of this computer.
        """
        daemons = json.loads(line.makefile().readline())
        new = PLACE / "machines" / name
        for directory in ("upper", "work", "root"):
            (new / directory).mkdir(parents=True, exist_ok=True)
        mount(
            "overlay",
            new / "root",
            "overlay",
            0,
            f"lowerdir={self.lower},upperdir={new}/upper,workdir={new}/work",
        )
        os.chdir(new / "root")
        mount("proc", "proc", "proc")
        mount("sysfs", "sys", "sysfs", MS_RDONLY)
        mount("/dev", "dev", "", MS_BIND | MS_REC)
        mount("tmpfs", "dev/shm", "tmpfs", 0, "mode=1777")
        for own, place in SHARED.items():
            mount(str(PLACE / own), place, "", MS_BIND)
        # pivot_root(2): the old root is below the new one, at the same place, and goes.
        call("syscall", SYS_PIVOT_ROOT, b".", b".")
        call("umount2", b".", MNT_DETACH)
        os.chdir("/")
        call("sethostname", name.encode(), len(name))
        os.environ.clear()
        os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C.UTF-8", HOME="/")
        os.setsid()
        ip(
            [
                "link set lo up",
                f"address add {self.addresses[name]}/32 dev eth0",
                "link set eth0 up",
                f"neighbour replace {GATEWAY} lladdr {OUTER} dev eth0 nud permanent",
                f"route add default via {GATEWAY} dev eth0 onlink src {self.addresses[name]}",
            ]
        )
        for command in daemons:
            log = open(f"/var/log/{pathlib.Path(command[0]).name}", "ab")
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        null = os.open("/dev/null", os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # Ended children need no wait then, and it holds for what is executed next (signal(7)).
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        os.execv("/usr/bin/sleep", ["sleep", "infinity"])

    def kill(self, names: list[str]) -> None:
        """End machines as if their plugs were pulled; what is on their disks stays."""
        for name in names:
            os.kill(self.pids[name], signal.SIGKILL)
        for name in names:
            os.waitpid(self.pids.pop(name), 0)
        cables = {f"c{self._number(name)}" for name in names}
        # With its network the kernel removes a cable, some time after the last process.
        while cables & {cable for _, cable in socket.if_nameindex()}:
            time.sleep(0.01)

    def cut(self, names: list[str]) -> None:
        """Pull the cables of machines."""
        ip(f"link set c{self._number(name)} down" for name in names)

    def join(self, names: list[str]) -> None:
        """Plug the cables of machines in."""
        ip(
            line
            for name in names
            for line in (
                f"link set c{self._number(name)} up",
                f"neighbour replace {self.addresses[name]} lladdr {INNER} dev c{self._number(name)} nud permanent",
                f"route replace {self.addresses[name]}/32 dev c{self._number(name)}",
            )
        )


def main() -> None:
    """Obey until the input ends."""
    # It ends with the tests, not with a key that a person presses.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o22)
    machines = None
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        if command == "cluster":
            machines, answer = Machines(*arguments), None
        else:
            answer = getattr(machines, command)(*arguments)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
