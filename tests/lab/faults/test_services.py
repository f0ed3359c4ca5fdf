"""slurmctld and the NFS server go away under jobs and submissions, and come back.

STEAD_LAB=NAME pytest tests/lab/faults/test_services.py
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest

from tests.lab.backup.survivors import shown, wait
from tests.lab.faults.canaries import WAITING, Canaries, canaries
from tests.lab.faults.fault import NOTHING_FAILED, Fault, recover, survive
from tests.lab.faults.trials import trials

REBOOTED = "control rebooted with 5 running and 50 pending jobs"
KILLED = "slurmctld killed under submissions"
CUT = "control loses power under submissions"
DOWN_AT_BOOT = "NFS server down while a worker boots"
DOWN_AT_WORK = "NFS server down during a job"

ANSWERS = "scontrol ping | grep -q 'is UP'"
BOOT = "/proc/sys/kernel/random/boot_id"

UNSAVED = 6.0
"""Seconds; slurmctld writes a change down within 5 (SAVE_MAX_WAIT in src/slurmctld/state_save.c)."""


def _fill(lab: Any, running: int, pending: int) -> list[str]:
    """Return the numbers of jobs that run, and of jobs that wait for a whole worker."""
    submit = "sbatch --parsable --no-requeue --output=/dev/null"
    start = f"for i in $(seq {running}); do {submit} --ntasks=1 --mem=16 --wrap='sleep 7200'; done"
    started = lab.user(start, seconds=120).split()
    wait(lab, started, "RUNNING", 120)
    queue = f"for i in $(seq {pending}); do {submit} --nodes=1 --exclusive --wrap=true; done"
    queued = lab.user(queue, seconds=600).split()
    return [*started, *queued]


def _fates(lab: Any, numbers: list[str]) -> dict[str, list[str | None]]:
    """Return by number what must not change of a job."""
    jobs = shown(lab)
    keys = {"RUNNING": ("JobState", "SubmitTime", "Restarts", "StartTime", "BatchHost")}
    waiting = ("JobState", "SubmitTime", "Restarts")
    found = {number: jobs.get(number, {}) for number in numbers}
    return {n: [job.get(key) for key in keys.get(job.get("JobState", ""), waiting)] for n, job in found.items()}


def test_a_reboot_of_control_disturbs_no_job(lab: Any) -> None:
    with canaries(lab) as alive, trials(lab, REBOOTED) as noted:
        numbers = _fill(lab, 5 - len(lab.workers), 50 - WAITING)
        before = _fates(lab, [*alive.jobs, *numbers])
        states = collections.Counter(fate[0] for fate in before.values())
        assert states == {"RUNNING": 5, "PENDING": 50}, states
        boot = lab.root(lab.control, f"cat {BOOT}")
        lab.root(lab.control, "systemd-run --quiet --on-active=2 --timer-property=AccuracySec=1s systemctl reboot")
        lab.insist(lab.control, f"test $(cat {BOOT}) != {boot} && {ANSWERS}", 600)
        noted.over()
        recover(lab, noted, alive)
        assert _fates(lab, [*alive.jobs, *numbers]) == before


SECONDS_OF_SUBMISSIONS = 60
PROGRAM, SUBMITTED = "/var/tmp/slurmstead-submit", "/var/tmp/slurmstead-submitted"
MARKS = "/share/home/alice/slurmstead-marks"

SUBMIT = f"""
cat > {PROGRAM} << 'END'
until=$(($(date +%s) + {SECONDS_OF_SUBMISSIONS}))
while [ $(date +%s) -lt $until ]; do
  number=$(sbatch --parsable --no-requeue --output=/dev/null --mem=16 --wrap='mktemp {MARKS}/$SLURM_JOB_ID.XXXXXX') &&
    echo "$(date +%s.%N) $number"
done
END
sudo -u alice mkdir {MARKS}
systemd-run --quiet --collect --unit=slurmstead-submit --uid=alice --working-directory=/tmp \\
  --property=StandardOutput=truncate:{SUBMITTED} sh {PROGRAM}
"""
"""Each job leaves a file each time that it is run."""
ENDED = "! systemctl --quiet is-active slurmstead-submit"
CLEAN = f"systemctl stop slurmstead-submit; rm -rf {PROGRAM} {SUBMITTED} {MARKS}"


def kill(lab: Any) -> None:
    """Kill slurmctld; systemd starts it again."""
    lab.root(lab.control, "systemctl kill --signal=KILL --kill-who=main slurmctld")


def cut(lab: Any) -> None:
    """Pull the plug of control, and put it in again."""
    lab.cut_power(lab.control)
    lab.boot(lab.control)


def _lines(lab: Any) -> collections.Counter[str]:
    """Return how often slurmctld has each number."""
    lines = lab.root(lab.control, "scontrol --oneliner show job").splitlines()
    return collections.Counter(line.split()[0].removeprefix("JobId=") for line in lines if line.startswith("JobId="))


def _marks(lab: Any) -> dict[str, list[float]]:
    """Return by number when a job was run."""
    found: dict[str, list[float]] = collections.defaultdict(list)
    for line in lab.root(lab.control, f"find {MARKS} -type f -printf '%T@ %f\\n'").splitlines():
        at, name = line.split()
        found[name.partition(".")[0]].append(float(at))
    return found


def _queue_is_done(lab: Any, alive: Canaries) -> None:
    """Wait until no job is left but the canaries."""
    known = "|".join(alive.jobs)
    others = f"! echo \"$queue\" | grep -vxE '{known}'"
    lab.insist(lab.control, f"queue=$(squeue --noheader --format=%A) && {others}", 400)


@pytest.mark.parametrize(("name", "strike"), [(KILLED, kill), pytest.param(CUT, cut, marks=pytest.mark.kernel)])
def test_what_is_submitted_before_slurmctld_ends_is_known_once(
    lab: Any, name: str, strike: Callable[[Any], None]
) -> None:
    with canaries(lab) as alive, trials(lab, name) as noted:
        try:
            lab.root(lab.control, SUBMIT)
            lab.insist(lab.control, f"test $(wc -l < {SUBMITTED}) -ge 5", 120)
            # The list is read before: it is not on the disk when the power goes.
            moment, *listed = lab.root(lab.control, f"sleep {UNSAVED + 2}; date +%s.%N; cat {SUBMITTED}").splitlines()
            saved = float(moment) - UNSAVED
            strike(lab)
            lab.insist(lab.control, ANSWERS)
            lab.insist(lab.control, ENDED, SECONDS_OF_SUBMISSIONS + 120)
            noted.over()
            sure = [number for at, number in map(str.split, listed) if float(at) < saved]
            assert len(sure) >= 5
            lines = _lines(lab)
            assert {number: lines[number] for number in sure if lines[number] != 1} == {}, "lost or there twice"
            recover(lab, noted, alive)
            _queue_is_done(lab, alive)
            marks = _marks(lab)
            assert [number for number in sure if number not in marks] == [], "never run"
            again = [n for n in sure if len(marks[n]) > 1 and min(marks[n]) < saved]
            assert again == [], "run twice"
        finally:
            lab.insist(lab.control, CLEAN)


@pytest.mark.kernel  # Containers have no NFS.
def test_a_worker_boots_without_the_share_and_takes_jobs_when_it_is_back(lab: Any) -> None:
    name = lab.workers[0]
    with canaries(lab) as alive, trials(lab, DOWN_AT_BOOT) as noted:
        try:
            lab.root(lab.server, "systemctl stop nfs-server")
            lab.cut_power(name)
            lab.boot(name)
            lab.insist(name, "systemctl is-active ssh munge chrony share.automount")
            assert lab.root(name, "systemctl is-active slurmd || true") != "active", "it takes jobs without the share"
            noted.over()
            recover(lab, noted, alive, name)
        finally:
            lab.insist(lab.server, "systemctl start nfs-server")
            lab.boot(name)


# The kernel chooses the process with the highest score.
OUT_OF_MEMORY = """
unit() { systemctl show --property=$1 --value slurmd; }
pid=$(unit MainPID)
echo 1000 > /proc/$pid/oom_score_adj
echo f > /proc/sysrq-trigger
until test $(unit MainPID) != $pid && test $(unit ActiveState) = active; do sleep 1; done
journalctl --quiet --dmesg --boot --grep="Out of memory: Killed process $pid \\(slurmd\\)"
"""


@pytest.mark.kernel  # Containers have the kernel of this computer.
def test_a_slurmd_that_the_kernel_kills_for_its_memory_is_back_and_its_job_goes_on(lab: Any) -> None:
    fault = Fault("OOM killer ends slurmd", lab.workers[0], OUT_OF_MEMORY, told=NOTHING_FAILED)

    assert survive(lab, [fault]) == {}


LINES = "/share/home/alice/slurmstead-lines"
COUNT = 40
WRITE = f"for i in $(seq {COUNT}); do echo $i >> {LINES} || exit 1; sleep 2; done"


@pytest.mark.kernel  # Containers have no NFS.
def test_a_job_waits_for_the_share_and_goes_on(lab: Any) -> None:
    with canaries(lab) as alive, trials(lab, DOWN_AT_WORK) as noted:
        try:
            lab.user(f"sbatch --parsable --no-requeue --output=/dev/null --mem=16 --wrap='{WRITE}'")
            lab.user(f"until test -s {LINES}; do sleep 1; done")
            lab.root(lab.server, "systemctl stop nfs-server")
            lab.insist(lab.control, r"sinfo -R --noheader --format=%E | grep -q '^slurmstead: .*share'", 300)
            noted.over()
            recover(lab, noted, alive)
            lab.insist(lab.control, f"test $(wc -l < {LINES}) -ge {COUNT}", 400)
            assert lab.root(lab.control, f"cat {LINES}").split() == [str(number + 1) for number in range(COUNT)]
        finally:
            lab.insist(lab.server, f"systemctl start nfs-server; rm -f {LINES}")
