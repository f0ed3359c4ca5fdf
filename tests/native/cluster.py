"""A Slurm cluster of bare daemons on this computer: munged, slurmctld and up to 512 slurmd, in seconds.

    with Cluster(release="trixie", nodes=4) as cluster:
        cluster.run("srun", "-N4", "hostname", user="alice")

The daemons are those of Debian's packages, on machines that are namespaces (see inside.py). Nothing of a cluster is
seen outside, and it ends with the process that made it, even one that is killed.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import pathlib
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from ansible.module_utils.slurmstead.accounting import storage
from ansible.module_utils.slurmstead.gate import process as gate_process
from ansible.module_utils.slurmstead.slurm.hostlist import compress
from tests.native import conf as settings
from tests.native import root

INSIDE = pathlib.Path(__file__).with_name("inside.py")
KINDS = ("--mount", "--pid", "--net", "--uts", "--ipc")
"""The namespaces that a cluster has, and each of its machines."""

NEW = ("setpriv", "--pdeathsig", "KILL", "unshare", *root.AS_ROOT[1:], *KINDS, "--fork", "--kill-child", "--mount-proc")
ENTER = ("nsenter", *KINDS, *(["--user"] if root.AS_ROOT else []))
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}

USERS = {"alice": 2001, "bob": 2002}
NETWORK = ipaddress.ip_network("10.1.0.0/16")
CONTROL, MUNGE = "control", "munge"
"""The controller, and a machine that holds nothing but the munged of all others."""

AS_MUNGE = ("setpriv", "--reuid=munge", "--regid=munge", "--init-groups")
MUNGED = [*AS_MUNGE, "munged", "--foreground"]
MARIADBD = [
    *("setpriv", "--reuid=mysql", "--regid=mysql", "--init-groups", "mariadbd", "--no-defaults", "--skip-networking"),
    *("--datadir=/var/lib/mysql", "--socket=/run/mysqld/mysqld.sock", "--skip-log-bin", "--innodb-flush-method=fsync"),
]
SLURMDBD = ["slurmdbd", "-D"]
SLURMCTLD = ["slurmctld", "-D"]
SLURMD = ["slurmd", "-D", "--conf-server", CONTROL]
NAME = "{}(-wlm)?"
"""A pattern of the name of a daemon's process: from 23.11 a reconfigure replaces it by what Debian's link leads to."""


class Cluster:
    """One cluster; `conf` are keys of slurm.conf that differ from conf.DEFAULTS.

    With `database`, control also has MariaDB and slurmdbd; `accounting=False` leaves them out of slurm.conf.
    `users` are numbers by name, `packages` those of Debian that it has in addition, and `layer` has further files.
    """

    running: list[Cluster] = []
    """Those that a failed test reports."""

    def __init__(
        self,
        release: str = "bookworm",
        nodes: int = 1,
        conf: dict[str, str | None] | None = None,
        *,
        database: bool = False,
        accounting: bool = True,
        users: Mapping[str, int] = USERS,
        partitions: str = settings.PARTITIONS,
        packages: Sequence[str] = (),
        layer: pathlib.Path | None = None,
    ) -> None:
        self.release = release
        self.version = root.RELEASES[release]
        self.nodes = [f"node{number}" for number in range(1, nodes + 1)]
        hosts = NETWORK.hosts()
        self.addresses = {name: str(next(hosts)) for name in (CONTROL, MUNGE, *self.nodes)}
        self.database = database
        self.users = users
        self.partitions = partitions
        self.packages = (*root.PACKAGES, *packages, *(root.DATABASE if database else ()))
        self.layer = layer
        self.keys = {**(settings.ACCOUNTING if database and accounting else {}), **(conf or {})}
        self.pids: dict[str, int] = {}
        # Until its first process is known.
        self._init = 0
        self.seconds = 0.0
        """How long it took to come up."""

    def slurm_conf(self) -> str:
        """Return slurm.conf as it is when the cluster starts."""
        nodes = {name: self.addresses[name] for name in self.nodes}
        return settings.slurm_conf((CONTROL, self.addresses[CONTROL]), nodes, self.keys, self.partitions)

    def __enter__(self) -> Self:
        packages = root.root(self.release, self.packages)
        started = time.monotonic()
        self._process = subprocess.Popen(
            [*NEW, sys.executable, "-I", "-S", str(INSIDE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        try:
            layers = [str(self.layer)] if self.layer else []
            self._tell("cluster", str(packages), self.addresses, list(self.users), self._files(packages), *layers)
            self._init = gate_process.first(self._process, time.monotonic() + 10)
            self.running.append(self)
            self.boot(MUNGE)
            self.boot_control()
            self.boot(*self.nodes)
            self.wait_until_idle()
        except BaseException as error:
            try:
                error.add_note(self.report())
            finally:
                self.__exit__()
            raise
        self.seconds = time.monotonic() - started
        return self

    def __exit__(self, *_: object) -> None:
        if self in self.running:
            self.running.remove(self)
        with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
            assert self._process.stdin
            self._process.stdin.close()
            self._process.wait(10)
        gate_process.end(self._process)
        assert self._process.stdout
        self._process.stdout.close()

    def _files(self, packages: pathlib.Path) -> dict[str, dict[str, tuple[str, int, str]]]:
        passwd, group = (packages.joinpath("etc", name).read_text() for name in ("passwd", "group"))
        for user, number in self.users.items():
            passwd += f"{user}:x:{number}:{number}::/share/home/{user}:/bin/bash\n"
            group += f"{user}:x:{number}:\n"
        hosts = "".join(f"{address} {name}\n" for name, address in self.addresses.items())
        return {
            "": {
                "etc/passwd": (passwd, 0o644, "root"),
                "etc/group": (group, 0o644, "root"),
                "etc/hosts": (f"127.0.0.1 localhost\n{hosts}", 0o644, "root"),
                "etc/munge/munge.key": (secrets.token_hex(64), 0o400, "munge"),
            },
            CONTROL: {
                "etc/slurm/slurm.conf": (self.slurm_conf(), 0o644, "root"),
                "etc/slurm/cgroup.conf": (settings.CGROUP, 0o644, "root"),
                **({"etc/slurm/slurmdbd.conf": (settings.SLURMDBD, 0o600, "slurm")} if self.database else {}),
            },
        }

    def _tell(self, *words: Any) -> Any:
        """Have the first process of the cluster do something; returns its answer."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{json.dumps(words)}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the cluster's first process has ended while it was told {words[0]}"
        return json.loads(answer)

    # Machines.

    def boot_control(self) -> None:
        """Start the controller, with its daemons; returns when slurmctld answers."""
        self.pids |= self._tell("create", [CONTROL])
        self._tell("start", {CONTROL: []})
        if self.database:
            self.start_database()
            self.run("mariadb", text=storage.SETUP)
            self.start_slurmdbd()
        self.start(CONTROL)

    def boot(self, *names: str, slurmd: Sequence[str] = SLURMD) -> None:
        """Start machines that are off, with their daemons; a worker's needs a slurmctld that answers."""
        daemons = {MUNGE: [MUNGED]}
        self.pids |= self._tell("create", names)
        self._tell("start", {name: daemons.get(name, [slurmd]) for name in names})

    def kill(self, *names: str) -> None:
        """End machines as if their plugs were pulled; what is on their disks stays."""
        self._tell("kill", names)
        for name in names:
            del self.pids[name]

    def cut(self, *names: str) -> None:
        """Pull the network cables of machines."""
        self._tell("cut", names)

    def join(self, *names: str) -> None:
        """Plug the network cables of machines in again."""
        self._tell("join", names)

    # Commands.

    def command(self, *words: str, user: str = "root", on: str = CONTROL, seconds: float = 60) -> list[str]:
        """Return the command line that runs a command on a machine, in the home directory of a user."""
        enter = [*ENTER, f"--target={self._init}", "nsenter", *KINDS, f"--target={self.pids[on]}"]
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--reset-env"]
        return [*enter, *become, "timeout", f"{seconds}", "sh", "-c", 'cd && exec "$@"', "sh", *words]

    def tried(self, *words: str, text: str = "", **how: Any) -> subprocess.CompletedProcess[str]:
        """Run a command on a machine; see `command`. `text` is its input."""
        return subprocess.run(
            self.command(*words, **how), input=text, capture_output=True, text=True, env=ENVIRONMENT, check=False
        )

    def run(self, *words: str, **how: Any) -> str:
        """Return the output of a command on a machine; its failure fails the test."""
        done = self.tried(*words, **how)
        assert done.returncode == 0, f"{shlex.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    def _try(self, *words: str) -> bool:
        return self.tried(*words).returncode == 0

    def start(self, name: str) -> None:
        """Start the daemon of Slurm on a machine; returns when it answers its clients there."""
        daemon = SLURMCTLD if name == CONTROL else SLURMD
        self._begin(daemon, daemon[0], name)
        if name == CONTROL:
            self.wait_for(lambda: self._try("scontrol", "ping"), 60, "slurmctld answers")
        else:
            self.wait_for(lambda: "Slurmd PID" in self.tried("scontrol", "show", "slurmd", on=name).stdout, 60, name)

    def start_database(self) -> None:
        """Start MariaDB on control; returns when it answers."""
        self.run("install", "-d", "-o", "mysql", "/run/mysqld")
        self._begin(MARIADBD, "mariadbd")
        self.wait_for(lambda: self._try("mariadb", "-e", "select 1"), 60, "MariaDB answers")

    def start_slurmdbd(self) -> None:
        """Start slurmdbd on control; returns when it answers."""
        self._begin(SLURMDBD, "slurmdbd")
        # Also if slurm.conf does not have it yet.
        self.run("tee", "/tmp/accounting.conf", text=storage.client_conf(CONTROL))
        asked = ("env", "SLURM_CONF=/tmp/accounting.conf", *storage.ASK)
        self.wait_for(lambda: self._try(*asked), 60, "slurmdbd answers")

    def _begin(self, daemon: Sequence[str], name: str, on: str = CONTROL) -> None:
        self.run("sh", "-c", f"setsid {shlex.join(daemon)} >>/var/log/{name} 2>&1 </dev/null &", on=on)

    def end(self, name: str, signal: str = "TERM") -> None:
        """End mariadbd or slurmdbd on control, and wait until it has ended."""
        self.run("pkill", f"-{signal}", "-x", name)
        self.wait_for(lambda: not self.tried("pgrep", "-x", name).stdout, 60, f"{name} ends")

    def daemon(self, name: str = CONTROL) -> str:
        """Return the process numbers of the daemon of Slurm on a machine."""
        daemon = SLURMCTLD if name == CONTROL else SLURMD
        return self.tried("pgrep", "-x", NAME.format(daemon[0]), on=name).stdout

    def stop(self, name: str, signal: str = "TERM") -> None:
        """End the daemon of Slurm on a machine, and wait until it has ended; its jobs go on."""
        daemon = SLURMCTLD if name == CONTROL else SLURMD
        self.run("pkill", f"-{signal}", "-x", NAME.format(daemon[0]), on=name)
        self.wait_for(lambda: not self.daemon(name), 30, f"{daemon[0]} of {name} ends")

    def restart(self, name: str = CONTROL) -> None:
        """Stop and start the daemon of Slurm on a machine."""
        self.stop(name)
        self.start(name)

    def configure(self, **keys: str | None) -> None:
        """Write slurm.conf with other keys; no daemon is told."""
        self.keys = {**self.keys, **keys}
        self.run("tee", "/etc/slurm/slurm.conf", text=self.slurm_conf())

    # What Slurm says.

    def states(self) -> dict[str, str]:
        """Return the state of each node, as sinfo shows it."""
        done = self.tried("sinfo", "--noheader", "--Node", "--format=%N %T")
        return dict(line.split() for line in done.stdout.splitlines())

    def wait_for(self, what: Callable[[], Any], seconds: float, name: str) -> None:
        """Wait until a function returns what is true; the more nodes, the more a question costs."""
        until = time.monotonic() + seconds
        while not what():
            assert self._process.poll() is None, "the cluster has ended"
            assert time.monotonic() < until, f"not within {seconds:.0f} s: {name}"
            time.sleep(0.05 + len(self.nodes) / 250)

    def wait_until(self, state: str, names: Sequence[str], seconds: float = 60) -> None:
        """Wait until nodes have a state."""
        self.wait_for(
            lambda: {self.states().get(name) for name in names} == {state}, seconds, f"{compress(names)} {state}"
        )

    def wait_until_idle(self) -> None:
        """Wait until all nodes are idle."""
        self.wait_until("idle", self.nodes, 60 + len(self.nodes) / 2)

    def report(self) -> str:
        """Return what a person would look at first after a failure."""
        shown = []
        states = ("sinfo", "--Format=NodeList:40,StateComplete:80")
        for words in (("sinfo", "-R"), ("sinfo",), states, ("squeue",)) if CONTROL in self.pids else ():
            done = self.tried(*words, seconds=10)
            shown.append(f"$ {' '.join(words)}\n{done.stdout}{done.stderr}")
        for name in (MUNGE, CONTROL, *self.nodes[:4]):
            path = f"/mnt/machines/{name}/upper/var/log"
            look = [*ENTER, f"--target={self._init}", "sh", "-c", f"cd {path} && tail -n 20 munged slurm* mariadbd"]
            done = subprocess.run(look, capture_output=True, text=True, check=False)
            shown.append(f"--- {name}\n{done.stdout}")
        return "\n".join(shown)
