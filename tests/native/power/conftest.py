"""A cluster whose machines have supplies: Slurm's power saving, the program that looks, and what it switches."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ansible.module_utils.slurmstead.slurm.answers import read_nodes
from tests.native import program
from tests.native.cluster import SLURMD, Cluster

PLACE = "/share/power"
CONF = {
    "MinJobAge": "3600",
    "ResumeFailProgram": "/bin/true",
    "ResumeProgram": "/bin/true",
    "ResumeRate": "0",
    "ResumeTimeout": "20",
    "SuspendProgram": "/bin/true",
    "SuspendRate": "0",
    # A node is pinged each third of this, and asked for its jobs each twentieth time. So after 200 s slurmctld misses a
    # job that ended, or was cut, within 15 s of its start or while slurmctld was not running.
    "SlurmdTimeout": "30",
    "SuspendTime": "2147483647",
    "SuspendTimeout": "4",
}
TIMES = ("QUIET=1", "SHUTDOWN=15", "RETRY=6", "SURE=3", "PAUSE=3", "AGAIN=10")
LOOK, PROVE, MISS = (
    program.program(pathlib.Path(__file__).with_name(f"{name}.py")) for name in ("look", "prove", "miss")
)

DEVICE = f"""
cd {PLACE}
case $1 in
on) [ -e $POWER_NODE.dead ] || touch $POWER_NODE.supply ;;
off) rm -f $POWER_NODE.supply ;;
status) [ -e $POWER_NODE.supply ] ;;
shut_down) touch $POWER_NODE.halt ;;
esac
"""


@dataclasses.dataclass
class Rack:
    """The cluster; which of its workers run, and which shut down and still have a supply.

    A worker boots when it gets a supply.
    """

    cluster: Cluster
    on: set[str]
    looking: subprocess.Popen[str]
    dark: set[str] = dataclasses.field(default_factory=set)

    def configure(self, idle: float = 4, keep: int = 0) -> None:
        """Write what the role writes."""
        commands = {verb: ["/bin/sh", f"{PLACE}/device", verb] for verb in ("on", "off", "status", "shut_down")}
        sleepers = [
            {
                "machine": {
                    "name": name,
                    "method": "command",
                    "host": self.cluster.addresses[name],
                    "commands": commands,
                },
                "idle": idle,
            }
            for name in self.cluster.nodes
        ]
        text = json.dumps({"sleepers": sleepers, "keep": keep, "resume_timeout": 20})
        self.cluster.run("tee", f"{PLACE}/power.json", text=text)

    def press(self, name: str) -> None:
        """Press the button of a machine that is off."""
        self.cluster.run("touch", f"{PLACE}/{name}.supply")
        self._obey()

    def pull(self, name: str) -> None:
        """Pull the plug of a machine."""
        self.cluster.run("rm", f"{PLACE}/{name}.supply")
        self._obey()

    def look(self) -> None:
        """Let the program look once, and let the machines do what it switched."""
        assert self.looking.stdin and self.looking.stdout
        print(file=self.looking.stdin, flush=True)
        assert self.looking.stdout.readline(), self.looking.communicate()[1]
        self._obey()

    def prove(self, name: str) -> dict[str, float]:
        """Prove a machine's method while the machines do what is switched; returns what was measured."""
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(program.run, self.cluster, PROVE, name)
            while not done.done():
                self._obey()
                time.sleep(0.3)
        found: dict[str, float] = json.loads(done.result())
        return found

    def miss(self, state: str, operation: str, names: Sequence[str] | None = None) -> dict[str, Any]:
        """Begin (`begin`, `wake`) or end (`done`) a command on machines, by default all, while the program looks."""
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(
                program.run, self.cluster, MISS, state, operation, *(self.cluster.nodes if names is None else names)
            )
            while not done.done():
                self.look()
                time.sleep(0.3)
        found: dict[str, Any] = json.loads(done.result())
        return found

    def _obey(self) -> None:
        found = set(self.cluster.run("ls", PLACE).split())
        for name in self.cluster.nodes:
            supply, halt = f"{name}.supply" in found, f"{name}.halt" in found
            # A system that has shut down needs an edge of its supply.
            self.dark = (self.dark | ({name} if halt else set())) - (set() if supply else {name})
            if name in self.on and (halt or not supply):
                self.cluster.kill(name)
                self.on.discard(name)
            elif supply and name not in self.on | self.dark:
                # slurmd -b: the time of this boot is now, and not that of this computer.
                self.cluster.boot(name, slurmd=[*SLURMD, "-b"])
                self.on.add(name)
        if halts := [f"{PLACE}/{one}" for one in found if one.endswith(".halt")]:
            self.cluster.run("rm", *halts)

    def until(self, what: Callable[[], Any], seconds: float, said: str) -> None:
        """Look again and again until something is true."""
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, f"not within {seconds:.0f} s: {said}\n{self.log()}\n{self.cluster.report()}"
            self.look()
            time.sleep(1)

    def shown(self) -> dict[str, dict[str, str]]:
        """Return the fields of each node as scontrol prints them."""
        return read_nodes(self.cluster.run("scontrol", "--oneliner", "show", "node"))

    def state(self, name: str) -> str:
        """Return the state of a node as scontrol prints it."""
        return self.shown()[name]["State"]

    def until_asleep(self, names: Sequence[str], seconds: float = 60) -> None:
        """Look until machines have no supply and slurmctld knows."""
        self.until(
            lambda: not self.on & set(names) and all("POWERED_DOWN" in self.state(name) for name in names),
            seconds,
            f"{names} asleep",
        )

    def log(self) -> str:
        """Return what was done."""
        return self.cluster.tried("cat", f"{PLACE}/power.log").stdout

    def submit(self, *words: str) -> str:
        """Submit a short job of alice; returns its number."""
        return self.cluster.run("sbatch", "--parsable", "--output=/dev/null", *words, user="alice")

    def runs(self, job: str) -> bool:
        """Whether a job has begun, and not only its machine's boot."""
        return "JobState=RUNNING" in self.cluster.run("scontrol", "show", "job", job)

    def has_ended(self, job: str) -> bool:
        """Whether a job has completed."""
        shown = self.cluster.run("scontrol", "show", "job", job)
        assert "JobState=FAILED" not in shown, shown
        return "JobState=COMPLETED" in shown


@pytest.fixture
def rack(release: str) -> Iterator[Rack]:
    """Three workers that are on."""
    with Cluster(release, 3, CONF) as cluster, furnished(cluster) as found:
        yield found


@pytest.fixture
def recorded_rack(release: str) -> Iterator[Rack]:
    """The same, with a database that records their jobs."""
    with Cluster(release, 3, CONF, database=True) as cluster, furnished(cluster) as found:
        yield found


@contextlib.contextmanager
def furnished(cluster: Cluster) -> Iterator[Rack]:
    """Give a cluster's machines their supplies, and begin the program that looks at them."""
    cluster.run("install", "-d", "-m", "700", PLACE)
    cluster.run("tee", f"{PLACE}/device", text=DEVICE)
    cluster.run("touch", *(f"{PLACE}/{name}.supply" for name in cluster.nodes))
    with program.begun(cluster, LOOK, *TIMES) as looking:
        found = Rack(cluster, set(cluster.nodes), looking)
        found.configure()
        yield found
