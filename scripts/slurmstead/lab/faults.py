"""The table of faults: what tests/lab/faults did to a lab, and how the cluster came out of it."""

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
)
"""All lines of the table, in its order."""

WIDTH = 160
"""Characters, in which no line of the table is broken."""

HINT = "STEAD_LAB=NAME .venv/bin/pytest tests/lab/faults injects them; see docs/faults.md."


@dataclasses.dataclass(frozen=True)
class Trial:
    """A fault that was injected once; `seconds` from its end to a healthy cluster, `why` it was not survived."""

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
        """Whether it was injected, and survived each time."""
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
        """The longest time in which the cluster recovered."""
        return max((trial.seconds for trial in self.trials.values() if trial.survived), default=None)


def result_file(directory: pathlib.Path) -> pathlib.Path:
    """Return where the table of a lab is kept, in the lab's state directory."""
    return directory / "faults.json"


def load(path: pathlib.Path) -> list[Line]:
    """Return all lines of a table; those of faults that were not injected yet have no trials.

    :raises CheckFailed: the file is none of ours
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
        raise CheckFailed(f"{path} cannot be read: {error}", "Remove it, and inject the faults again.") from None
    return [lines.get(name, Line(name)) for name in FAULTS]


def record(path: pathlib.Path, fault: str, seed: int, trial: Trial, *, commit: str, at: str) -> None:
    """Add a trial to its line, on the disk at once; one of another commit begins the line anew.

    :raises ValueError: the table has no such line
    """
    if fault not in FAULTS:
        raise ValueError(f"{fault!r} is no line of the table")
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
    """Return the table as programs read it."""
    shown = [{**dataclasses.asdict(line), "survived": line.survived, "seconds": line.seconds} for line in lines]
    return json.dumps({"ok": all(line.survived for line in lines), "faults": shown}, indent=2)


def print_table(console: Console, lines: list[Line]) -> None:
    """Print the table, and below it why a fault was not survived."""
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
    # A file or a pipe has no width to keep to.
    wide = console if console.is_terminal else Console(file=console.file, width=WIDTH, highlight=False)
    wide.print(table)
    for line in lines:
        for seed, trial in line.trials.items():
            if not trial.survived:
                console.print(Text(f"{line.fault}, seed {seed}: {trial.why}"), soft_wrap=True)


def check(lines: list[Line]) -> None:
    """See that the table is complete and every line survived.

    :raises CheckFailed: it is not so
    """
    missing = sum(not line.trials for line in lines)
    lost = sum(bool(line.trials) and not line.survived for line in lines)
    parts = [f"{lost} not survived" if lost else "", f"{missing} not injected" if missing else ""]
    if missing or lost:
        raise CheckFailed(f"of {len(lines)} faults, {', '.join(part for part in parts if part)}", HINT)
