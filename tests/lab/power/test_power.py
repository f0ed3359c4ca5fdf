"""Machines of a lab sleep when nothing is to be done and wake for jobs, by devices that end and start QEMU itself.

STEAD_LAB=NAME pytest tests/lab/power
"""

from __future__ import annotations

import collections
import contextlib
import csv
import json
import pathlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from slurmstead.lab import machines
from slurmstead.paths import LAB_INVENTORY
from tests.lab.power import supplies
from tests.lab.run import STEAD, as_person

METHODS = (supplies.ipmi, supplies.redfish, supplies.turing_pi)
"""How the workers are switched, in their order."""

IDLE = 60
WATTS = 100
MEMORY = "/var/lib/slurmstead/power/memory.json"
UNSEEN = 60
"""Seconds of a sleep that may count otherwise: control looks every 15 s, and an emulated machine takes a while to."""

BOOT, SLEEP = 600, 900
"""Seconds that the machines may take; those of a lab of machines are emulated."""


BOOT_CONF = "/etc/systemd/system/slurmd.service.d/boot.conf"
REBOOTED = f"""
printf '[Service]\\nExecStart=\\nExecStart=/usr/sbin/slurmd -b -D -s $SLURMD_OPTIONS\\n' > {BOOT_CONF}
"""
"""A container has booted when this computer did, so slurmctld would wait for another boot (slurmd(8), -b)."""


class Rack:
    """The workers' supplies, and an inventory that knows them."""

    def __init__(self, lab: Any, site: pathlib.Path) -> None:
        self.lab, self.site = lab, site
        self.supplies = {name: supplies.Supply(lab, name) for name in lab.workers}
        self.off: collections.Counter[str] = collections.Counter()
        self.ended = threading.Event()

    def count(self) -> None:
        """Count the seconds for which each worker has no supply, until the test ends."""
        before = time.monotonic()
        while not self.ended.wait(1):
            now = time.monotonic()
            self.off.update({name: now - before for name, supply in self.supplies.items() if not supply.on})
            before = now

    def stead(self, *words: str, seconds: float = 1500, code: int = 0) -> str:
        """Run a verb of stead, as a person would; returns what it says. `code` is the exit code that it must have."""
        done = as_person([STEAD, *words, "-i", self.site], seconds)
        assert done.returncode == code, done.stdout[-5000:]
        return done.stdout

    @property
    def on(self) -> set[str]:
        """The workers that have a process."""
        return {name for name, pid in machines.pids(self.lab.directory).items() if pid and name in self.lab.workers}

    def scontrol(self, command: str) -> str:
        """Ask slurmctld."""
        return str(self.lab.root(self.lab.control, command))

    def states(self) -> dict[str, str]:
        """Return the state of each node, with the mark of its power."""
        return dict(line.split() for line in self.scontrol("sinfo --noheader --Node --format='%N %t'").splitlines())

    def until(self, what: Callable[[], Any], seconds: float, said: str) -> float:
        """Wait until something is true; returns the seconds that it took."""
        started = time.monotonic()
        while not what():
            log = f"{self.states()}, on: {sorted(self.on)}"
            assert time.monotonic() - started < seconds, f"not within {seconds:.0f} s: {said}\n{log}"
            time.sleep(2)
        took = time.monotonic() - started
        print(f"{said}: {took:.0f} s")
        return took

    def until_asleep(self, said: str) -> None:
        """Wait until no worker has a process, and slurmctld and the watch know."""

        def asleep() -> bool:
            known = set(self.states().values()) == {"idle~"} and self.seen_asleep() == set(self.lab.workers)
            return not self.on and known

        self.until(asleep, SLEEP + IDLE, f"all asleep {said}")

    def seen_asleep(self) -> set[str]:
        """Return the machines whose sleep counts for `stead power savings`; a sleep that ends before is not seen."""
        machines = json.loads(self.lab.root(self.lab.control, f"cat {MEMORY}"))["machines"]
        return {name for name, machine in machines.items() if machine["asleep"]}

    def submit(self, *words: str) -> str:
        """Submit a job of alice; returns its number."""
        return str(self.lab.user(f"sbatch --parsable --output=/dev/null {' '.join(words)}"))

    def has_ended(self, job: str) -> bool:
        """Whether a job has completed."""
        shown = self.scontrol(f"scontrol show job {job}")
        assert "JobState=FAILED" not in shown, shown
        return "JobState=COMPLETED" in shown


@pytest.fixture(scope="module")
def rack(lab: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """A rack that may sleep; afterwards all run, and nothing of it is left."""
    directory = tmp_path_factory.mktemp("rack")
    shutil.copytree(LAB_INVENTORY, directory / "site")
    found = Rack(lab, directory / "site/hosts.yml")
    (directory / "site/host_vars").mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        for name, method in zip(lab.workers, METHODS, strict=True):
            (directory / name).mkdir()
            variables = stack.enter_context(method(found.supplies[name], directory / name))
            text = yaml.safe_dump({**variables, "power_idle": f"{IDLE}s", "power_watts": WATTS})
            (directory / f"site/host_vars/{name}.yml").write_text(text)
        found.stead("up")
        if lab.of_containers:
            lab.everywhere(lambda name: lab.root(name, REBOOTED), lab.workers)
        counting = threading.Thread(target=found.count)
        counting.start()
        yield found
        found.ended.set()
        counting.join()
        for supply in found.supplies.values():
            if supply.booting:
                supply.booting.join(BOOT)
        awake = ("--extra-vars", json.dumps({"power_idle": ""}))
        # Control would let what boots slowly sleep again.
        lab.ansible("--limit", lab.control, *awake)
        for name in set(lab.workers) - found.on:
            lab.boot(name)
        if lab.of_containers:
            lab.everywhere(lambda name: lab.root(name, f"rm {BOOT_CONF}; systemctl daemon-reload"), lab.workers)
        off = lab.ansible(*awake)
    assert off.code == 0, off.output[-5000:]


def test_an_idle_rack_sleeps_and_a_job_wakes_it(lab: Any, rack: Rack) -> None:
    rack.until_asleep("after up")
    job = rack.submit(f"--nodes={len(lab.workers)}", "--wrap='srun hostname'")
    rack.until(lambda: len(rack.on) == len(lab.workers), BOOT, "all have a process")
    rack.until(lambda: rack.has_ended(job), BOOT, "the job has ended")
    rack.until_asleep("again")

    log = rack.stead("power", "log", "--days", "1")
    assert log.count("shut down") >= 2 * len(lab.workers), log
    assert "failed" not in log
    assert rack.supplies[lab.workers[1]].switched.count("GracefulShutdown") == 2


def test_what_sleep_saved_is_what_the_machines_did_not_draw(lab: Any, rack: Rack) -> None:
    rack.until_asleep("before the savings are shown")
    said = rack.stead("power", "savings", "--csv")
    rows = list(csv.DictReader(line for line in said.splitlines() if line.count(",") == 4))

    assert {row["node"] for row in rows} == set(lab.workers)
    for row in rows:
        off, sleeps = rack.off[row["node"]], int(row["sleeps"])
        assert float(row["hours"]) * 3600 == pytest.approx(off, abs=UNSEEN * sleeps), row
        assert float(row["kwh"]) == pytest.approx(float(row["hours"]) * WATTS / 1000, abs=0.001)


def test_one_machine_wakes_for_a_small_job(lab: Any, rack: Rack) -> None:
    rack.until_asleep("before a small job")
    job = rack.submit("--wrap=true")
    rack.until(lambda: rack.has_ended(job), BOOT, "a small job has ended")

    assert len(rack.on) == 1


def test_what_sleeping_machines_miss_is_done_before_their_next_job(lab: Any, rack: Rack) -> None:
    awake, first, second = lab.workers
    rack.until_asleep("before a command")
    keeps_awake = rack.submit(f"--nodelist={awake}", "--wrap='sleep 100000'")
    rack.until(lambda: rack.states()[awake] in ("mix", "alloc"), BOOT, "one machine is awake")
    # Who sleeps is known only after `up` has started it.
    rack.scontrol("systemctl stop slurmctld")
    said = rack.stead("up", code=3)
    rotated = rack.stead("rotate-key", code=3)
    jobs = [rack.submit(f"--nodelist={name}", "--wrap=true") for name in (first, second)]
    reasons = rack.scontrol("sinfo --noheader --Node --format='%N %E'")
    rack.stead("power", "on", first)
    rack.until(lambda: rack.has_ended(jobs[0]), BOOT, "the job on the machine that was switched on has ended")
    asleep = set(lab.workers) - rack.on
    rack.stead("rotate-key", "--wake")
    left = rack.scontrol(f"sinfo --noheader --nodes={second} --format=%E").strip()
    rack.stead("up")
    rack.until(lambda: rack.has_ended(jobs[1]), BOOT, "the job on the woken machine has ended")
    rack.scontrol(f"scancel {keeps_awake}")

    assert f"{first}, {second} sleep, so this remains to be done there; the other hosts were completed" in said
    assert f"{first}, {second} sleep" in rotated
    assert f"{first} missed while asleep: up, rotate-key" in reasons
    assert asleep == {second}
    assert left == "missed while asleep: up"


def test_a_magic_packet_wakes_a_machine(lab: Any, rack: Rack, tmp_path: pathlib.Path) -> None:
    name = lab.workers[-1]
    host_vars = rack.site.parent / f"host_vars/{name}.yml"
    supply = rack.supplies[name]
    supply.board = False
    with supplies.wake_on_lan(supply, tmp_path) as variables:
        host_vars.write_text(yaml.safe_dump({**variables, "power_idle": f"{IDLE}s", "power_watts": WATTS}))
        rack.stead("up", "--limit", lab.control)
        rack.until_asleep("before the packet")
        job = rack.submit(f"--nodelist={name}", "--wrap=true")
        rack.until(lambda: rack.has_ended(job), BOOT, "the job of the machine with a network card has ended")
        rack.until_asleep("without a device")

        assert "magic packet" in supply.switched
