"""The table of faults that tests/lab/faults and tests/lab/interrupted injected into a lab, and how it recovered."""

import dataclasses
import json
import os
import pathlib
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from slurmstead.errors import CheckFailed
from slurmstead.wording import duration

FAULTS = (
    "a worker loses power at a random task of site.yml",
    "control loses power at a random task of site.yml",
    "kill -9 of ansible at a random task of site.yml",
    "ssh cut at a random task of site.yml",
    "a worker frozen at a random task of site.yml",
    "control rebooted with 5 running and 50 pending jobs",
    "slurmctld killed under submissions",
    "control loses power under submissions",
    "NFS server down while a worker boots",
    "NFS server down during a job",
    "full disk on control",
    "full disk on a worker",
    "mirror unreachable",
    "apt lock held",
    "package removed",
    "slurm.conf edited by hand",
    "wrong MUNGE key on a worker",
    "munged without its socket",
    "clock of a worker off by 10 minutes",
    "duplicate host name",
    "worker drained by an administrator",
    "share full during submit",
    "no inode left on a worker's scratch",
    "DNS gone",
    "router advertisements for IPv6 from a worker",
    "clock of a worker an hour back",
    "clock of control an hour back",
    "clock of control an hour ahead",
    "slurmctld's saved queue damaged",
    "scratch read-only after an I/O error",
    "MUNGE key replaced while a laptop sleeps",
    "OOM killer ends slurmd",
    "two operators at once",
    "power cut at a random task of an upgrade",
)
"""All lines of the table, in order."""

WIDTH = 160
"""Characters; wide enough that no line of the table wraps."""

HINT = "To inject faults: STEAD_LAB=NAME .venv/bin/pytest tests/lab/faults tests/lab/interrupted; see docs/faults.md."


@dataclasses.dataclass(frozen=True)
class Trial:
    """One injection of a fault; `seconds` from its end to a healthy cluster, `why` the cluster did not recover."""

    survived: bool
    seconds: float
    why: str = ""


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of the table: the trials of one commit by seed; `at` is the time of the last one (ISO 8601)."""

    fault: str
    commit: str = ""
    at: str = ""
    trials: Mapping[str, Trial] = dataclasses.field(default_factory=dict)

    @property
    def survived(self) -> bool:
        """Whether the fault was injected, and survived each time."""
        return bool(self.trials) and all(trial.survived for trial in self.trials.values())

    @property
    def outcome(self) -> str:
        """The outcome in words."""
        good = sum(trial.survived for trial in self.trials.values())
        if not self.trials:
            return "not injected"
        return "survived" if self.survived else f"{good} of {len(self.trials)} survived"

    @property
    def seconds(self) -> float | None:
        """The longest recovery time in seconds, None without any."""
        return max((trial.seconds for trial in self.trials.values() if trial.survived), default=None)


def result_file(directory: pathlib.Path) -> pathlib.Path:
    """Return the file of a lab's table, in the lab's state directory."""
    return directory / "faults.json"


def load(path: pathlib.Path) -> list[Line]:
    """Return all lines of a table; lines of faults that were not injected yet have no trials.

    :raises CheckFailed: the file is not such a table
    """
    try:
        kept = json.loads(path.read_text()) if path.exists() else {}
        lines = {
            name: Line(
                name, line["commit"], line["at"], {seed: Trial(**trial) for seed, trial in line["trials"].items()}
            )
            for name, line in kept.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckFailed(
            f"the table {path} cannot be read: {error}", "Delete it, and inject the faults again."
        ) from None
    return [lines.get(name, Line(name)) for name in FAULTS]


def record(path: pathlib.Path, fault: str, seed: int, trial: Trial, *, commit: str, at: str) -> None:
    """Add a trial to its line and write the table; a trial of another commit replaces the line.

    :raises ValueError: the table has no such line
    """
    if fault not in FAULTS:
        raise ValueError(f"{fault!r} is not a line of the table")
    lines = {line.fault: line for line in load(path) if line.trials}
    before = lines[fault].trials if fault in lines and lines[fault].commit == commit else {}
    lines[fault] = Line(fault, commit, at, {**before, str(seed): trial})
    new = path.with_suffix(".new")
    kept = {name: dataclasses.asdict(line) for name, line in lines.items()}
    with new.open("w") as file:
        json.dump(kept, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def to_json(lines: list[Line]) -> str:
    """Return the table as JSON."""
    shown = [{**dataclasses.asdict(line), "survived": line.survived, "seconds": line.seconds} for line in lines]
    return json.dumps({"ok": all(line.survived for line in lines), "faults": shown}, indent=2)


def print_table(console: Console, lines: list[Line]) -> None:
    """Print the table, then the reason for each fault that was not survived."""
    table = Table("fault", "seeds", "outcome", "time to recover", "last", "commit", box=None, pad_edge=False)
    for line in lines:
        style = "green" if line.survived else "bold red" if line.trials else "dim"
        table.add_row(
            line.fault,
            str(len(line.trials)),
            Text(line.outcome, style=style),
            "" if line.seconds is None else duration(line.seconds),
            line.at[:16].replace("T", " "),
            line.commit,
        )
    # A file or a pipe has no limited width.
    wide = console if console.is_terminal else Console(file=console.file, width=WIDTH, highlight=False)
    wide.print(table)
    for line in lines:
        for seed, trial in line.trials.items():
            if not trial.survived:
                console.print(Text(f"{line.fault}, seed {seed}: {trial.why}"), soft_wrap=True)


def check(lines: list[Line]) -> None:
    """Check that every fault was injected and survived.

    :raises CheckFailed: a fault was not
    """
    missing = sum(not line.trials for line in lines)
    lost = sum(bool(line.trials) and not line.survived for line in lines)
    parts = [f"{lost} not survived" if lost else "", f"{missing} not injected" if missing else ""]
    if missing or lost:
        raise CheckFailed(f"of {len(lines)} faults, {', '.join(part for part in parts if part)}", HINT)
