"""A computer and a head node in directories, and a Slurm that is a list of jobs."""

import dataclasses
import pathlib
import time

import pytest

from slurmstead.client.remote import commands, slurm
from slurmstead.client.remote.errors import NoAnswer, WrongRequest
from slurmstead.client.remote.store import Store


@pytest.fixture(autouse=True)
def own_home(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Return a home that is not that of the person who runs the tests."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    stead = ("STEAD_HEAD", "STEAD_SSH_CONFIG", "STEAD_DIRECTORY", "STEAD_RUN")
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", *stead):
        monkeypatch.delenv(name, raising=False)
    return home


@dataclasses.dataclass
class FakeSlurm:
    """Takes jobs as sbatch does; what goes wrong next is said in `fails`, what gets no answer in `silent`."""

    jobs: list[list[str]] = dataclasses.field(default_factory=list)
    fails: list[str] = dataclasses.field(default_factory=list)
    silent: list[str] = dataclasses.field(default_factory=list)
    cancelled: list[str] = dataclasses.field(default_factory=list)
    state: str = "PENDING"
    max_array_size: int = 1001

    def run(self, command: list[str], stdin: str = "", seconds: float = 0, directory: str = "/") -> str:
        """Do what commands.run does."""
        if command[0] in self.silent:
            raise NoAnswer(f"slurmctld did not answer {command[0]}")
        match command[0]:
            case "sbatch":
                fault = self.fails.pop(0) if self.fails else ""
                if fault == "refused":
                    raise WrongRequest("Slurm refused: Memory specification can not be satisfied")
                if fault == "down":
                    raise NoAnswer("slurmctld does not answer")
                self.jobs.append(command)
                if fault == "answer lost":
                    raise NoAnswer("slurmctld does not answer: Zero Bytes were transmitted or received")
                if fault == "killed":
                    raise KeyboardInterrupt
                return f"{len(self.jobs)}\n"
            case "scontrol":
                return f"MaxArraySize            = {self.max_array_size}\n"
            case "scancel":
                self.cancelled += command[1:]
        return ""

    def queue(self) -> list[slurm.Row]:
        """Do what commands.queue does."""
        lines = []
        for number, command in enumerate(self.jobs, start=1):
            (said,) = [word.removeprefix("--comment=") for word in command if word.startswith("--comment=")]
            lines.append(f"N/A|{number}|N/A|{self.state}|None||{said}")
        return slurm.parse_queue("\n".join(lines))


@pytest.fixture
def fake_slurm(monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """Return a Slurm that takes the place of the real commands."""
    fake = FakeSlurm()
    monkeypatch.setattr(commands, "run", fake.run)
    monkeypatch.setattr(commands, "queue", lambda: fake.queue())
    monkeypatch.setattr(commands, "ping", lambda: None)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return fake


@pytest.fixture
def store(tmp_path: pathlib.Path) -> Store:
    """Return a directory for runs; it does not exist yet."""
    return Store(tmp_path / "share" / "slurmstead")
