"""The demo: sets up a cluster of virtual machines and runs jobs; each step skips finished work."""

import dataclasses
import os
import subprocess
import time
from collections.abc import Callable, Mapping

from rich.console import Console

from slurmstead.cluster import smoke
from slurmstead.errors import CheckFailed, UsageError
from slurmstead.lab import advice, host
from slurmstead.lab import machines as lab
from slurmstead.paths import LAB_INVENTORY, PLAYBOOKS, SITE, lab_directory
from slurmstead.runner import events, playbook, processes
from slurmstead.runner.progress import Progress
from slurmstead.wording import count, duration

USER, HEAD = "alice", "node3"
"""The ordinary user of inventory/lab, and the machine that users log in to."""

JOBS = ("sinfo", "srun --nodes=3 hostname")
JOB_SECONDS = 120


@dataclasses.dataclass
class Peak:
    """The peak memory of this command and the lab together, in bytes."""

    bytes: int = 0

    def sample(self, lab_name: str) -> None:
        """Measure the memory now."""
        mine = [process.pid for process in processes.descendants(os.getpid())]
        machines = [pid for pid in lab.pids(lab_directory(lab_name)).values() if pid]
        self.bytes = max(self.bytes, processes.memory_bytes({os.getpid(), *mine, *machines}))


class _Watched(Progress):
    """Progress that also measures memory, every few seconds."""

    def __init__(self, console: Console, title: str, peak: Peak, lab_name: str) -> None:
        super().__init__(console, title)
        self._peak, self._lab_name = peak, lab_name
        self._measured = 0.0

    def tick(self) -> None:
        if time.monotonic() - self._measured > 2:
            self._measured = time.monotonic()
            self._peak.sample(self._lab_name)
        super().tick()


@dataclasses.dataclass(frozen=True)
class Demo:
    """The settings of a demo."""

    name: str
    extra_vars: Mapping[str, str]
    plain: bool

    def run(self, console: Console) -> None:
        """Run all steps.

        :raises UsageError: the lab exists with another image, or consists of containers
        :raises SteadError: a step failed
        """
        started = time.monotonic()
        lab.check_image(lab_directory(self.name), self.extra_vars)
        if lab.is_native(lab_directory(self.name)):
            raise UsageError(
                f"the lab {self.name} consists of containers, the demo needs virtual machines",
                f"Remove the lab first ({advice.command('down', self.name)}), or make another with --name.",
            )
        steps: list[tuple[str, Callable[[Console, Peak], str]]] = [
            ("Packages of this computer", self._packages),
            ("Virtual machines (create-lab.yml)", self._machines),
            ("The cluster (site.yml)", self._cluster),
            ("The smoke test (smoke-test.yml)", self._smoke),
            (f"Jobs, as {USER} on {HEAD}", self._jobs),
        ]
        highest = 0
        for number, (title, step) in enumerate(steps, start=1):
            console.print(f"[bold]{number}/{len(steps)} {title}[/bold]", highlight=False)
            began, peak = time.monotonic(), Peak()
            peak.sample(self.name)
            outcome = step(console, peak)
            peak.sample(self.name)
            highest = max(highest, peak.bytes)
            memory = f"peak memory {peak.bytes / 2**30:.2f} GiB"
            took = duration(time.monotonic() - began)
            console.print(f"  [green]done[/green] in {took}: {outcome}; {memory}", highlight=False, soft_wrap=True)
        total = f"{duration(time.monotonic() - started)}, peak memory {highest / 2**30:.2f} GiB"
        console.print(f"\n[bold]The cluster works.[/bold] {total}", highlight=False)
        console.print(self._farewell(), highlight=False, markup=False, soft_wrap=True)

    def _packages(self, console: Console, _peak: Peak) -> str:
        installed = host.ensure_packages(console, arm64=lab.needs_arm64(LAB_INVENTORY))
        return f"installed {', '.join(installed)}" if installed else "nothing to install"

    def _machines(self, console: Console, peak: Peak) -> str:
        return self._play(console, peak, "create-lab.yml", plain=True)

    def _cluster(self, console: Console, peak: Peak) -> str:
        return self._play(console, peak, "site.yml", plain=self.plain)

    def _play(self, console: Console, peak: Peak, name: str, *, plain: bool) -> str:
        path = SITE if name == SITE.name else PLAYBOOKS / name
        with _Watched(console, name, peak, self.name) as progress:
            result = playbook.run(path, LAB_INVENTORY, extra_vars=self.extra_vars, plain=plain, observer=progress)
        if result.error:
            raise result.error
        tasks = max((summary.ran for summary in result.hosts.values()), default=0)
        changes = sum(end.status is events.Status.CHANGED for end in result.ended)
        return f"at most {count(tasks, 'task')} on a host, {count(changes, 'change')} in all"

    def _smoke(self, console: Console, _peak: Peak) -> str:
        report = smoke.run(console, LAB_INVENTORY, plain=self.plain)
        smoke.print_report(console, report)
        if not report.ok:
            raise CheckFailed("the smoke test failed", "Follow the hint of each failed check above.")
        return count(len(report.checks), "good check")

    def _jobs(self, console: Console, _peak: Peak) -> str:
        for job in JOBS:
            command = lab.ssh_command(lab_directory(self.name), HEAD, [job], user=USER)
            try:
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=JOB_SECONDS,
                )
            except subprocess.TimeoutExpired:
                raise CheckFailed(
                    f"expected `{job}` to end within {JOB_SECONDS} s", "Check `squeue` and `sinfo -R`."
                ) from None
            console.print(f"    {USER}@{HEAD}:~$ {job}", highlight=False)
            for line in (done.stdout + done.stderr).splitlines():
                console.print(f"    {line}", highlight=False, markup=False, soft_wrap=True)
            if done.returncode:
                raise CheckFailed(f"expected `{job}` to succeed, seen exit code {done.returncode}", "Check `sinfo -R`.")
        return f"{count(len(JOBS), 'command')} succeeded"

    def _farewell(self) -> str:
        of_lab = "" if self.name == "default" else f"STEAD_LAB={self.name} "
        return f"""
Next:
  log in            {advice.command("ssh", self.name)} --user {USER} {HEAD}
  submit a job      sbatch --nodes=3 --wrap 'srun hostname'    (after login; the output is in slurm-JOBID.out)
  administer it     {advice.command("ssh", self.name)} {HEAD}
  change something  edit inventory/lab, then {of_lab}scripts/stead up -i inventory/lab
  stop              {advice.command("down", self.name)}
"""
