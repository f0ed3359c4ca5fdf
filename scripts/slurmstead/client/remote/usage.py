"""What a job uses, from its control group (cgroup v2, as Slurm makes it) and from the kernel's count of children."""

import contextlib
import pathlib
import re
import resource

RECLAIMABLE = ("anon", "shmem", "kernel_stack", "slab_unreclaimable")
"""Lines of memory.stat whose sum a job cannot do without; the cache of files is not among them."""


CONTROL_GROUPS = pathlib.Path("/sys/fs/cgroup")


def job_group(job: str, mounted: pathlib.Path = CONTROL_GROUPS, own: str | None = None) -> pathlib.Path | None:
    """Return the control group of a job on this node, or None without one.

    :param own: the content of /proc/self/cgroup
    """
    with contextlib.suppress(OSError):
        text = pathlib.Path("/proc/self/cgroup").read_text() if own is None else own
        match = re.search(rf"^0::/(.*/job_{re.escape(job)})(/|$)", text, re.MULTILINE)
        if match and (mounted / match[1] / "memory.stat").exists():
            return mounted / match[1]
    return None


class Meter:
    """Measures a job from its first look to its last."""

    def __init__(self, group: pathlib.Path | None) -> None:
        self._group = group
        self._memory = 0
        self._cpu = self._cpu_of_group() or 0.0

    def look(self) -> None:
        """Take note of the memory in use now."""
        if self._group is None:
            return
        with contextlib.suppress(OSError, ValueError):
            lines = (line.split() for line in (self._group / "memory.stat").read_text().splitlines())
            self._memory = max(self._memory, sum(int(value) for name, value in lines if name in RECLAIMABLE))

    def result(self, program: resource.struct_rusage) -> dict[str, int | float | None]:
        """Return the CPU time in seconds, and in bytes the memory at its highest and what the group counts with files.

        Without a control group the memory is that of the largest process.

        :param program: what the kernel counted of the program and those of its children that it waited for
        """
        self.look()
        cpu = self._cpu_of_group()
        peak = None
        if self._group is not None:
            with contextlib.suppress(OSError, ValueError):
                peak = int((self._group / "memory.peak").read_text())
        return {
            "cpu_seconds": round(program.ru_utime + program.ru_stime if cpu is None else cpu - self._cpu, 3),
            "memory_bytes": max(self._memory, program.ru_maxrss * 1024),
            "memory_with_files_bytes": peak,
        }

    def out_of_memory(self) -> bool:
        """Whether the kernel ended a process of the job because its memory was used up."""
        if self._group is not None:
            with contextlib.suppress(OSError, ValueError, KeyError):
                lines = (self._group / "memory.events").read_text().splitlines()
                return int(dict(line.split() for line in lines)["oom_kill"]) > 0
        return False

    def _cpu_of_group(self) -> float | None:
        if self._group is not None:
            with contextlib.suppress(OSError, ValueError, KeyError):
                lines = (self._group / "cpu.stat").read_text().splitlines()
                return int(dict(line.split() for line in lines)["usage_usec"]) / 1e6
        return None
