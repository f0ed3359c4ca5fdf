#!/usr/bin/python3
"""Show how much of what a job asked for it used. Usage: seff JOB

Slurm has a program of this name among its contributions, which Debian does not package.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence

FIELDS = (
    "JobID",
    "User",
    "Account",
    "State",
    "ExitCode",
    "AllocCPUS",
    "NNodes",
    "ElapsedRaw",
    "TotalCPU",
    "ReqMem",
    "MaxRSS",
)
ASK = ("sacct", "--noheader", "--parsable2", f"--format={','.join(FIELDS)}")
SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SIZE = re.compile(r"([\d.]+)([KMGT]?)")


def seconds(text: str) -> float:
    """Return a time of sacct in seconds.

    >>> seconds("1-02:00:01"), seconds("03:04.5"), seconds("")
    (93601.0, 184.5, 0.0)
    """
    days, _, rest = text.rpartition("-")
    total = 0.0
    for part in rest.split(":") if rest else ():
        total = total * 60 + float(part)
    return total + 86400 * int(days or 0)


def size(text: str) -> float:
    """Return a size of sacct in bytes.

    >>> size("4G"), size("1500K"), size("")
    (4294967296.0, 1536000.0, 0.0)
    """
    found = SIZE.fullmatch(text)
    return float(found[1]) * SIZES[found[2]] if found else 0.0


def shown(number: float) -> str:
    """Return a size for people.

    >>> shown(1536000.0), shown(5 * 2**30)
    ('1 MiB', '5.0 GiB')
    """
    return f"{number / (1 << 30):.1f} GiB" if number >= 1 << 30 else f"{number / (1 << 20):.0f} MiB"


def time_of(number: float) -> str:
    """Return a time for people.

    >>> time_of(93601)
    '26:00:01'
    """
    minutes, rest = divmod(int(number), 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}"


def report(rows: Sequence[dict[str, str]]) -> list[str]:
    """Return the lines about a job; the first row is the whole job, the others are its steps."""
    job = rows[0]
    cpus, elapsed = int(job["AllocCPUS"] or 0), float(job["ElapsedRaw"] or 0)
    used, given = seconds(job["TotalCPU"]), cpus * elapsed
    most, asked = max(size(row["MaxRSS"]) for row in rows), size(job["ReqMem"])
    lines = [
        f"Job {job['JobID']} of {job['User']} in account {job['Account'] or '-'}: {job['State']}, "
        f"exit code {job['ExitCode']}",
        f"CPU:    {time_of(used)} of {time_of(given)} used ({used / given:.0%}), {cpus} CPUs for {time_of(elapsed)}"
        if given
        else "CPU:    the job ran for less than a second, or not at all",
    ]
    if asked:
        lines.append(f"Memory: {shown(most)} of {shown(asked)} used ({most / asked:.0%}), in the step that used most")
    if job["State"].partition(" ")[0] in ("RUNNING", "PENDING"):
        lines.append("The job has not ended: these numbers are not final.")
    return lines


def main() -> int:
    """Ask sacct about the job."""
    if len(sys.argv) != 2 or not re.fullmatch(r"\d+(_\d+)?", sys.argv[1]):
        sys.stderr.write("Usage: seff JOB, such as seff 17 or seff 17_3\n")
        return 2
    done = subprocess.run([*ASK, f"--jobs={sys.argv[1]}"], capture_output=True, text=True, check=False)
    rows = [dict(zip(FIELDS, line.split("|"), strict=True)) for line in done.stdout.splitlines()]
    if not rows:
        sys.stderr.write(done.stderr or f"No job {sys.argv[1]} of yours is recorded.\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in report(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
