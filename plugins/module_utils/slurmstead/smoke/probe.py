"""The two programs that the smoke test runs on every worker, and the parser for their output.

They are passed as an argument of srun, because neither the share nor the workers can be trusted to store them. A job
prints lines of JSON, each below the 1024 bytes that srun keeps together (MAX_MSG_LEN in slurmstepd's io.c); other
output (a login banner, TaskProlog's) may be between them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

ASKED_MIB = 64
"""Memory that every job of the smoke test requests: more than slurmd's default MinRAMSpace (30), enough for python3."""

USED_MIB = 256
"""Memory that the job of the memory check uses: far above its limit, and harmless on a node without a limit."""

PARTS = ("host", "cpu", "share", "scratch", "munge", "memory")

Answers = dict[str, dict[str, dict[str, Any]]]
"""Node name → part → what the probe saw there."""

PROBE = r"""
import json, os, subprocess, sys, threading, time

NONCE, SHARE, SCRATCH, SECONDS = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
NODE = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
cleanup = []


def say(part, **seen):
    line = json.dumps({"smoke": NONCE, "node": NODE, "part": part, **seen})
    os.write(1, (line + "\n").encode())


def mounted(path):
    '''Type and source of the file system that holds path; of several mounts on one another the last one counts.'''
    path, best, found = os.path.realpath(path), -1, ("?", "?")
    with open("/proc/self/mountinfo") as file:
        for line in file:
            left, right = line.split(" - ", 1)
            point = left.split()[4].replace("\\040", " ")
            inside = path == point or path.startswith(point.rstrip("/") + "/")
            if inside and len(point) >= best:
                best, found = len(point), tuple(right.split()[:2])
    return {"type": found[0], "source": found[1][:80]}


def count(cpus):
    '''Number of CPUs in a kernel list such as 0-1,4.'''
    spans = [span.split("-") for span in cpus.strip().split(",")]
    return sum(int(span[-1]) - int(span[0]) + 1 for span in spans)


def cpu():
    bound = os.sched_getaffinity(0)
    # The kernel cuts the wish to the job's cpuset. What remains is what a job can take, whatever it was bound to.
    os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))
    usable = os.sched_getaffinity(0)
    try:
        with open("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list" % min(bound)) as file:
            core = count(file.read())
    except OSError:
        core = 1
    return {"bound": len(bound), "usable": len(usable), "core": core, "online": os.cpu_count()}


def write(path, text):
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(file, text.encode())
        os.fsync(file)
    finally:
        os.close(file)


def share():
    seen = {}
    try:
        with open(os.path.join(SHARE, "control")) as file:
            seen["read"] = file.read(80)
    except OSError as error:
        seen["error"] = error.strerror
    seen.update(mounted(SHARE if "read" in seen else os.path.dirname(SHARE)))
    if "error" not in seen:
        seen["wrote"] = os.urandom(8).hex()
        write(os.path.join(SHARE, "from-" + NODE), seen["wrote"])
    return seen


def scratch():
    given = os.environ.get("SCRATCH", "")
    directory = given or SCRATCH
    seen = {"given": given[:120], "inside": os.path.realpath(directory).startswith(os.path.realpath(SCRATCH) + "/")}
    path = os.path.join(directory, ".slurmstead-" + NONCE)
    try:
        # An automount becomes the real one by being looked at.
        os.stat(directory)
        write(path, NODE)
        # It stays until all parts are done, so that another node that has the same directory meets it.
        cleanup.append(path)
    except FileExistsError:
        seen["shared"] = True
    except OSError as error:
        seen["error"] = error.strerror
    seen.update(mounted(directory))
    return seen


def status(text):
    lines = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("STATUS:")]
    return lines[0] if lines else text.strip()[-160:]


def munge():
    uid = str(os.getuid())
    made = subprocess.run(["munge", "-n", "-u", uid], capture_output=True, text=True, timeout=SECONDS)
    read = subprocess.run(["unmunge"], input=os.environ["SLURMSTEAD_SMOKE_CREDENTIAL"], capture_output=True, text=True,
                          timeout=SECONDS)
    return {"read": status(read.stdout or read.stderr), "made": made.stdout.strip() if made.returncode == 0 else "",
            "failed": made.stderr.strip()[-160:]}


def part(name, function):
    try:
        seen = function()
    except Exception as error:
        seen = {"error": (getattr(error, "strerror", None) or str(error) or type(error).__name__)[:160]}
    say(name, **seen)


say("host", host=os.uname().nodename)
# A dead NFS server stops a thread for ever; each part therefore answers for itself and the process ends without it.
parts = [("cpu", cpu), ("scratch", scratch), ("munge", munge)] + ([("share", share)] if SHARE else [])
threads = [threading.Thread(target=part, args=each, daemon=True) for each in parts]
for thread in threads:
    thread.start()
end = time.monotonic() + SECONDS
for thread in threads:
    thread.join(max(0, end - time.monotonic()))
for path in cleanup:
    os.unlink(path)
os._exit(0)
"""

MEMORY = r"""
import json, os, sys

NONCE, MIB = sys.argv[1], int(sys.argv[2])
NODE = os.environ.get("SLURMD_NODENAME") or os.uname().nodename


def say(**seen):
    os.write(1, (json.dumps({"smoke": NONCE, "node": NODE, "part": "memory", **seen}) + "\n").encode())


say(ended="")
child = os.fork()
if child == 0:
    try:
        held = [bytearray(b"\1") * (8 << 20) for _ in range(MIB // 8)]
    except MemoryError:
        os._exit(1)
    os._exit(0)
status = os.waitpid(child, 0)[1]
say(ended="killed" if os.WIFSIGNALED(status) else "refused" if os.WEXITSTATUS(status) else "survived")
"""


def read_answers(text: str, nonce: str) -> Answers:
    """The output of this run's jobs; other and broken lines are left out.

    >>> read_answers('welcome!\\n{"smoke": "a1", "node": "n1", "part": "host", "host": "n1"}\\n', "a1")
    {'n1': {'host': {'host': 'n1'}}}
    """
    answers: Answers = {}
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        try:
            seen = json.loads(line)
        except ValueError:
            continue
        if isinstance(seen, dict) and seen.pop("smoke", None) == nonce and {"node", "part"} <= seen.keys():
            node, part = str(seen.pop("node")), str(seen.pop("part"))
            answers.setdefault(node, {})[part] = seen
    return answers


def merge(answers: Answers, more: Mapping[str, Mapping[str, dict[str, Any]]]) -> None:
    """Add answers of a later job in place."""
    for node, parts in more.items():
        answers.setdefault(node, {}).update(parts)


def silent(answers: Answers, part: str, nodes: Iterable[str]) -> list[str]:
    """The nodes that have not answered a part, in their order."""
    return [node for node in nodes if part not in answers.get(node, {})]
