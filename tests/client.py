"""A client of the lab's cluster: scripts/stead as alice has it on her laptop, which is this computer."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pathspec

from slurmstead.client import wheel

ROOT = pathlib.Path(__file__).resolve().parents[1]


def library() -> bytes:
    """Return the client's wheel, unpacked, and pathspec, which it needs, as an archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in wheel.sources().items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        archive.add(pathlib.Path(pathspec.__file__).parent, "pathspec")
    return buffer.getvalue()


@dataclasses.dataclass
class Cluster:
    """The cluster from outside, and hands inside for the tests' faults.

    `root` and `user` run sh on the head node; `cut_power` and `boot` are its plug.
    """

    directory: pathlib.Path
    variables: Mapping[str, str]
    user: Callable[[str], str]
    root: Callable[[str], str]
    stop_controller: str
    start_controller: str
    cut_power: Callable[[], None]
    boot: Callable[[], None]
    end_connections: str = "pkill -KILL -u alice -x sshd || pkill -KILL -u alice sshd-session || true"

    def start(self, *arguments: object, **variables: str) -> subprocess.Popen[str]:
        """Start a command line, in the directory."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "slurmstead", *(str(argument) for argument in arguments)],
            cwd=self.directory,
            env={**os.environ, **self.variables, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="surrogateescape",
        )

    def stead(self, *arguments: object, code: int | None = 0, seconds: float = 300, **variables: str) -> str:
        """Return what a command line prints; it must end with `code`, unless that is None."""
        with self.start(*arguments, **variables) as process:
            try:
                out, words = process.communicate(timeout=seconds)
            except BaseException:
                process.kill()
                raise
        assert code is None or process.returncode == code, f"ended with {process.returncode}:\n{out}\n{words}"
        return out + words

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Return all runs by id, as `stead jobs --json` shows them."""
        return {run["id"]: run for run in json.loads(self.stead("jobs", "--json", "--latest", 0))}

    def wait(self, run: str, seconds: float = 300) -> dict[str, Any]:
        """Return a run when it has ended."""
        deadline = time.monotonic() + seconds
        while (found := self.jobs()[run])["state"] in ("pending", "running"):
            assert time.monotonic() < deadline, found
            time.sleep(1)
        return found

    def settled(self, seconds: float = 300) -> dict[str, str]:
        """Return the states of all runs when all have ended."""
        deadline = time.monotonic() + seconds
        while True:
            states = {run: found["state"] for run, found in self.jobs().items()}
            if not {"pending", "running"} & set(states.values()):
                return states
            assert time.monotonic() < deadline, states
            time.sleep(1)

    def results(self, run: str) -> pathlib.Path:
        """Return where a run is fetched to."""
        return self.directory / "stead-results" / run

    def submissions(self) -> list[str]:
        """Return the run of each job, or array, that Slurm remembers; a run that stands there twice was doubled.

        It forgets them MinJobAge (300 s) after their end: there can be fewer a moment later.
        """
        rows = self.user("squeue --me --states=all --noheader --format='%F %k'").splitlines()
        pairs = {tuple(row.split()) for row in rows if " stead:" in row}
        return sorted(comment.split(":")[1] for _, comment in pairs)

    def check_single(self, *runs: str) -> None:
        """Assert that each run, of which none ended long ago, is one job of Slurm."""
        counted = collections.Counter(self.submissions())
        assert {run: counted[run] for run in runs} == dict.fromkeys(runs, 1)

    @staticmethod
    def run_of(printed: str) -> str:
        """Return the run in what `stead submit` prints: `job 12  20261121-110000-name-1a2b3c`."""
        line = next(line for line in printed.splitlines() if line.startswith("job "))
        return line.split("  ")[1].split(" ")[0]

    def project(self, name: str, files: Mapping[str, str]) -> pathlib.Path:
        """Return a folder with files."""
        folder = self.directory / name
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return folder

    def cut(self, when: str) -> None:
        """End every connection of the user, as a broken network does, when a command on the head node succeeds."""
        wait = f"i=0; until {when} >/dev/null 2>&1; do i=$((i+1)); [ $i -lt 2000 ] || exit 1; sleep 0.02; done"
        self.root(f"{wait}; {self.end_connections}")


@contextlib.contextmanager
def connected(lab: Any, directory: pathlib.Path) -> Iterator[Cluster]:
    """The lab's cluster, with `directory` as the home on the laptop; runs have a directory, which goes."""
    below = f"/share/home/alice/test-{time.time_ns()}"
    yield Cluster(
        directory=directory,
        variables={
            "PYTHONPATH": str(ROOT / "scripts"),
            "HOME": str(directory),
            "XDG_STATE_HOME": str(directory / "state"),
            "XDG_CONFIG_HOME": str(directory / "config"),
            "STEAD_HEAD": f"alice@{lab.control}",
            "STEAD_SSH_CONFIG": str(lab.directory / "ssh_config"),
            "STEAD_DIRECTORY": below,
        },
        user=lab.user,
        root=functools.partial(lab.root, lab.control),
        stop_controller="systemctl stop slurmctld",
        start_controller="systemctl start slurmctld",
        cut_power=functools.partial(lab.cut_power, lab.control),
        boot=functools.partial(lab.boot, lab.control),
    )
    lab.user("scancel --me")
    lab.wait_until_idle(120)
    lab.user(f"rm -rf {below}")
