"""The resources that a job uses, from its control group (cgroup v2, made by Slurm) and the kernel's rusage."""

import contextlib
import pathlib
import re
import resource

RECLAIMABLE = ("anon", "shmem", "kernel_stack", "slab_unreclaimable")
"""Lines of memory.stat that add up to the memory a job needs; the file cache is not included."""


CONTROL_GROUPS = pathlib.Path("/sys/fs/cgroup")


def job_group(job: str, mounted: pathlib.Path = CONTROL_GROUPS, own: str | None = None) -> pathlib.Path | None:
    """Return the control group of a job on this node, or None if it has none.

    :param own: the content of /proc/self/cgroup
    """
    with contextlib.suppress(OSError):
        text = pathlib.Path("/proc/self/cgroup").read_text() if own is None else own
        match = re.search(rf"^0::/(.*/job_{re.escape(job)})(/|$)", text, re.MULTILINE)
        if match and (mounted / match[1] / "memory.stat").exists():
            return mounted / match[1]
    return None


class Meter:
    """Measures a job while it runs."""

    def __init__(self, group: pathlib.Path | None) -> None:
        self._group = group
        self._memory = 0
        self._cpu = self._cpu_of_group() or 0.0

    def look(self) -> None:
        """Record the memory in use now."""
        if self._group is None:
            return
        with contextlib.suppress(OSError, ValueError):
            lines = (line.split() for line in (self._group / "memory.stat").read_text().splitlines())
            self._memory = max(self._memory, sum(int(value) for name, value in lines if name in RECLAIMABLE))

    def result(self, program: resource.struct_rusage) -> dict[str, int | float | None]:
        """Return the CPU time in seconds, the peak memory in bytes, and the same peak with the file cache in bytes.

        Without a control group the peak memory is that of the largest process.

        :param program: the kernel's accounting of the program and the children that it waited for
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
        """Whether the kernel killed a process of the job at its memory limit."""
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
