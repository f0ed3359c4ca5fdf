# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The config.json of a task, from the one that slurmstepd wrote: the OCI runtime specification, pure functions.

Of slurmstepd's file only the command and the environment are used. What is mounted, and what the task may do, is
decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

STARTUP = "/tmp/slurm/startup"
"""Where slurmstepd wants the script of a batch job."""

SCRIPT = "slurm_script"
"""Name of that script, in a directory of root's."""

NOT_INSIDE = ("SLURM_CONF", "SLURM_CONF_SERVER", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
"""Variables that name what an image does not have."""

PROTECTED = ("nosuid", "nodev", "noexec")

_MASKED = ("acpi", "asound", "kcore", "keys", "latency_stats", "sched_debug", "scsi", "timer_list", "timer_stats")
HIDDEN = (*(f"/proc/{name}" for name in _MASKED), "/sys/firmware", "/sys/devices/virtual/powercap")
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")

REFUSED = (
    *("acct", "add_key", "bpf", "clock_adjtime", "clock_settime", "delete_module", "finit_module", "fsconfig"),
    *("fsmount", "fsopen", "fspick", "init_module", "io_uring_enter", "io_uring_register", "io_uring_setup"),
    *("kexec_file_load", "kexec_load", "keyctl", "mount", "mount_setattr", "move_mount", "name_to_handle_at"),
    *("open_by_handle_at", "open_tree", "pivot_root", "quotactl", "reboot", "request_key", "setdomainname", "setns"),
    *("settimeofday", "sethostname", "swapoff", "swapon", "syslog", "umount", "umount2", "unshare", "userfaultfd"),
)
"""System calls that no program of a job needs, and that have been used to leave containers."""

EPERM, ENOSYS = 1, 38
AF_ALG, AF_VSOCK = 38, 40
"""Sockets of the kernel's cryptography, and to the host of a virtual machine: no network namespace separates them."""

NEW_NAMESPACES = 0x7E020000
"""CLONE_NEW* of clone(2)."""


class Task(NamedTuple):
    """Who runs a task, and what the user sees of the machine."""

    uid: int
    gid: int
    home: str
    own: str
    """Directory of the task, with its /tmp."""
    scratch: str
    """Directory of the job on scratch; the task sees the directory `files` in it."""
    paths: Sequence[str]
    """Directories of the machine, such as the user's home."""
    network: bool
    resolver: Sequence[str]
    """Files that name other machines; they are shown with the network."""
    processes: int
    host: str
    script: str = ""
    """The script of a batch job; empty without one."""


def configuration(given: Mapping[str, Any], task: Task, directory: str) -> dict[str, Any]:
    """Return config.json for crun. `directory` is the working directory."""
    kinds = ["user", "pid", "ipc", "uts", "mount", *([] if task.network else ["network"])]
    return {
        "ociVersion": "1.0.0",
        "hostname": task.host,
        "root": {"path": "root", "readonly": False},
        "process": {
            "terminal": given["process"].get("terminal", False),
            "user": {"uid": task.uid, "gid": task.gid},
            "args": given["process"]["args"],
            "env": [f"{name}={value}" for name, value in environment(given, task).items()],
            "cwd": directory,
            "noNewPrivileges": True,
            "capabilities": {},
            "rlimits": [{"type": "RLIMIT_NPROC", "hard": task.processes, "soft": task.processes}],
        },
        "mounts": [
            *_system(task),
            _bind(f"{task.own}/tmp", "/tmp"),
            *([_bind(task.script, STARTUP, "ro")] if task.script else []),
            _bind(f"{task.scratch}/files", task.scratch),
            *(_bind(path, path) for path in task.paths),
        ],
        "linux": {
            "namespaces": [{"type": kind} for kind in kinds],
            # In the namespace that crun is started in, the user is root.
            "uidMappings": [{"containerID": task.uid, "hostID": 0, "size": 1}],
            "gidMappings": [{"containerID": task.gid, "hostID": 0, "size": 1}],
            "maskedPaths": list(HIDDEN),
            "readonlyPaths": list(READ_ONLY),
            "seccomp": _filter(),
        },
    }


def environment(given: Mapping[str, Any], task: Task) -> dict[str, str]:
    """Return the task's environment. Slurm 22.05 lists the image's variables first, then the user's."""
    found: dict[str, str] = {}
    for entry in given["process"].get("env", []):
        name, _, value = entry.partition("=")
        if name not in NOT_INSIDE:
            found.setdefault(name, value)
    return {**found, "HOME": task.home, "TMPDIR": "/tmp", "SCRATCH": task.scratch}


def with_lines(text: str, lines: Iterable[str]) -> str:
    r"""Return a file of accounts with more lines, which replace those of the same names.

    >>> with_lines("root:x:0:\nalice:x:7:\n", ["alice:x:2001:"])
    'root:x:0:\nalice:x:2001:\n'
    """
    added = list(lines)
    names = {line.partition(":")[0] for line in added}
    kept = [line for line in text.splitlines() if line.partition(":")[0] not in names]
    return "".join(f"{line}\n" for line in [*kept, *added])


def _bind(source: str, target: str, *options: str) -> dict[str, Any]:
    return {"destination": target, "type": "bind", "source": source, "options": ["rbind", "nosuid", "nodev", *options]}


def _mount(kind: str, target: str, *options: str) -> dict[str, Any]:
    return {"destination": target, "type": kind, "source": kind, "options": list(options)}


def _system(task: Task) -> list[dict[str, Any]]:
    """Return what every task has. sysfs belongs to a network: with the machine's network, it is the machine's."""
    named = [_bind(path, path, "ro") for path in task.resolver] if task.network else []
    return [
        _mount("proc", "/proc", *PROTECTED),
        _mount("tmpfs", "/dev", "nosuid", "mode=755", "size=64k"),
        _mount("devpts", "/dev/pts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"),
        _mount("tmpfs", "/dev/shm", *PROTECTED, "mode=1777"),
        _mount("mqueue", "/dev/mqueue", *PROTECTED),
        _bind("/sys", "/sys", "ro") if task.network else _mount("sysfs", "/sys", "ro", *PROTECTED),
        # The control groups of other jobs are here.
        _mount("tmpfs", "/sys/fs/cgroup", "ro", *PROTECTED, "size=4k"),
        *named,
    ]


def _filter() -> dict[str, Any]:
    """Return the rules of seccomp(2)."""
    refused = {"action": "SCMP_ACT_ERRNO", "errnoRet": EPERM}
    masked, equal = ({"index": 0, "op": f"SCMP_CMP_{name}"} for name in ("MASKED_EQ", "EQ"))
    flags = [1 << bit for bit in range(32) if NEW_NAMESPACES >> bit & 1]
    return {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [
            {"names": list(REFUSED), **refused},
            # A filter cannot see the flags of clone3; without it, the C library calls clone.
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS},
            *({"names": ["socket"], "args": [{**equal, "value": kind}], **refused} for kind in (AF_ALG, AF_VSOCK)),
            *({"names": ["clone"], "args": [{**masked, "value": flag, "valueTwo": flag}], **refused} for flag in flags),
        ],
    }
