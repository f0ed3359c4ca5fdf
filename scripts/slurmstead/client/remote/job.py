"""Runs one task on a node: prepares its directory and environment, runs the program, writes the result."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any

from slurmstead.client.remote import commands, manifest, slurm, states, store, venv
from slurmstead.client.remote.errors import Refusal
from slurmstead.client.remote.usage import Meter, job_group

LOOK_SECONDS = 1.0
NOTE_SECONDS = 3600


class Signalled(Exception):
    """A signal ended the task before its program started."""


class Task:
    """A task of a run on this node."""

    def __init__(self, root: pathlib.Path, run: str, chunk: int, offset: int | None) -> None:
        self.store = store.Store(root)
        self.run = self.store.run(run)
        self.chunk = chunk
        self.request: Mapping[str, Any] = store.read_json(self.run / "request.json")
        self.number = None if offset is None else offset + int(os.environ["SLURM_ARRAY_TASK_ID"])
        self.job = os.environ["SLURM_JOB_ID"]
        self.array_job = os.environ.get("SLURM_ARRAY_JOB_ID") or self.job
        self.place = self.run if self.number is None else self.run / "tasks" / str(self.number)
        self.log = self.place / "environment.log"
        self.done = self.run / "done" / str(self.number or 0)
        self.last_start = self.place / "restarts.json"
        self.signal: int | None = None
        self.program: subprocess.Popen[bytes] | None = None
        self.has_begun = False
        self.environment: pathlib.Path | None = None
        self.started = time.time()
        self.restarts = int(os.environ.get("SLURM_RESTART_COUNT") or 0)
        self.meter = Meter(job_group(self.job))

    def execute(self) -> int:
        """Run the task and return its exit code; a result is written in every case, if the share is writable."""
        if not self._claim():
            return 0
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._pass_on)
        self.place.mkdir(parents=True, exist_ok=True)
        if states.may_not_start(self.run, self.number):
            return self._finish({"state": "cancelled", "exit_code": 1, "reason": "cancelled before it started"})
        try:
            self._clear()
            self._copy_input()
            ended = self._start()
        except Signalled:
            ended = {"exit_code": 128 + (self.signal or 0), "signal": self.signal, **self._why_ended()}
        except Exception as error:
            # Any exception: without a result the user would not learn that the task ended, or why.
            text = str(error) or repr(error)
            with contextlib.suppress(OSError), open(self.place / "stderr", "a", errors="surrogateescape") as file:
                file.write(f"stead: {text}\n")
            ended = {"state": "failed", "exit_code": 1, "reason": text.splitlines()[0]}
        return self._finish(ended)

    def _clear(self) -> None:
        """Remove the files of a requeued job's earlier start, which can still run on a node without network."""
        if self.restarts or self.last_start.exists():
            store.write_json(self.last_start, self.restarts)
        self.done.unlink(missing_ok=True)
        for name in ("work", "stdout", "stderr", "environment.log", "result.json", "manifest.json"):
            path = self.place / name
            manifest.remove(path) if path.is_dir() else path.unlink(missing_ok=True)

    def _claim(self) -> bool:
        """Claim the run for this job; return False if another job has it, so that no task runs twice."""
        mark = self.run / "started" / str(self.chunk)
        try:
            os.symlink(self.array_job, mark)
        except FileExistsError:
            if os.readlink(mark) != self.array_job:
                print(f"stead: job {os.readlink(mark)} already runs {self.run.name}; job {self.array_job} exits")
                return False
        return True

    def _copy_input(self, below: str = "") -> None:
        """Copy a directory of the input to work/; the paths of `data` become links to the input."""
        source, target = self.run / "input" / below, self.place / "work" / below
        data = self.request.get("data") or []
        target.mkdir()
        copied = []
        for name in os.listdir(source):
            path = os.path.join(below, name)
            if path in data:
                (target / name).symlink_to(source / name)
            elif any(other.startswith(f"{path}/") for other in data):
                self._copy_input(path)
            else:
                copied.append(os.fsencode(source / name))
        # cp uses server-side copy (NFS 4.2) and shared blocks where the file system has them.
        done = subprocess.run(
            ["xargs", "-0r", "cp", "-RP", "--preserve=mode,timestamps", f"--target-directory={target}", "--"],
            input=b"\0".join(copied),
            capture_output=True,
            check=False,
        )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise Refusal(f"cannot copy the input to {target} on {os.uname().nodename}: {said}")
        shutil.copymode(source, target)

    def _start(self) -> dict[str, Any]:
        variables = {**os.environ, **(self.request.get("env") or {})}
        wanted = self.request.get("environment")
        python = "python3"
        if wanted or str(self.request["entry"]).endswith(".py"):
            python = venv.find_python(self.request.get("python")).path
        if wanted:
            self.environment = self._ensure_environment(wanted, variables)
            python = str(self.environment / "bin" / "python")
            variables["VIRTUAL_ENV"] = str(self.environment)
            variables["PATH"] = f"{self.environment / 'bin'}:{variables['PATH']}"
        variables.update(self._own_variables())
        command = self.command(python)
        with open(self.place / "stdout", "wb") as stdout, open(self.place / "stderr", "wb") as stderr:
            self.program = subprocess.Popen(
                command,
                cwd=self.place / "work",
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=variables,
                start_new_session=True,
            )
            self.has_begun = True
            return self._wait(self.program)

    def command(self, python: str) -> list[str]:
        """Return the command line of the program; `python` runs an entry that ends in .py."""
        entry = os.path.join(".", self.request["entry"])
        items = self.request.get("items")
        own = items[self.number] if items and self.number is not None else []
        program = [python, entry] if entry.endswith(".py") else [entry]
        return [*program, *self.request.get("args", []), *own]

    def _own_variables(self) -> dict[str, str]:
        own = {"STEAD_RUN": self.run.name, "STEAD_DIRECTORY": str(self.place), "PYTHONUNBUFFERED": "1"}
        if self.number is not None:
            # If the array is split into several jobs, Slurm's index is not the task number.
            own.update({"STEAD_TASK": str(self.number), "SLURM_ARRAY_TASK_ID": str(self.number)})
        return own

    def _ensure_environment(self, wanted: Mapping[str, Any], variables: Mapping[str, str]) -> pathlib.Path:
        python = venv.find_python(self.request.get("python"))
        wanted = {**wanted, "container": self.request.get("container")}
        if wanted.get("wheels"):
            wanted = {**wanted, "wheels": str(self.run / "input" / wanted["wheels"])}
        try:
            return venv.ensure(self.store.environments, wanted, python, self.log, variables, self.run)
        except venv.BuildError as error:
            raise venv.BuildError(f"the environment could not be built: {error}") from None

    def _wait(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        noted = time.monotonic()
        pause = 0.01
        while True:
            # Popen.wait does not report resource usage.
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                self.program = None
                code = process.returncode = os.waitstatus_to_exitcode(status)
                # What it left in the background would change files whose checksums are computed now.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                break
            time.sleep(pause)
            pause = min(2 * pause, LOOK_SECONDS)
            self.meter.look()
            if self.environment and time.monotonic() - noted > NOTE_SECONDS:
                noted = time.monotonic()
                venv.note_use(self.environment)
        if code >= 0:
            ended: dict[str, Any] = {"state": "completed" if code == 0 else "failed", "exit_code": code}
        else:
            name = next((known.name for known in signal.Signals if known == -code), f"signal {-code}")
            ended = {"state": "failed", "exit_code": 128 - code, "signal": -code, "reason": f"killed by {name}"}
        if self.meter.out_of_memory() and code:
            ended.update(state="out of memory", reason=self._out_of_memory())
        elif self.signal and code:
            ended.update(self._why_ended())
        return {**ended, **self.meter.result(usage)}

    def _out_of_memory(self) -> str:
        if limit := self.request.get("mem"):
            return f"the limit was {limit}; retry with a larger --mem"
        return "the limit was the default; retry with --mem 4G"

    def _why_ended(self) -> dict[str, Any]:
        """Ask Slurm why it signalled the task, and return state and reason."""
        with contextlib.suppress(Refusal):
            job = slurm.parse_job(commands.run(["scontrol", "show", "job", "-o", self.job], seconds=4), self.job)
            state = slurm.end_of_signalled(job)
            return {"state": state, "reason": f"the limit was {job['TimeLimit']}" if state == "timeout" else ""}
        return {"state": "cancelled", "reason": "ended by Slurm"}

    def _finish(self, ended: Mapping[str, Any]) -> int:
        self.has_begun = True
        if (store.read_json(self.last_start) or 0) > self.restarts:
            print(f"stead: Slurm started {self.run.name} again; start {self.restarts} leaves no result")
            return int(ended["exit_code"])
        result = {
            "run": self.run.name,
            "task": self.number,
            "job": self.job if self.number is None else f"{self.array_job}_{os.environ['SLURM_ARRAY_TASK_ID']}",
            **ended,
            # Slurm may requeue the job: only Slurm knows whether this end is final.
            "signalled": self.signal is not None,
            "node": os.environ.get("SLURMD_NODENAME") or os.uname().nodename,
            "nodes": os.environ.get("SLURM_JOB_NODELIST", ""),
            "start": self.started,
            "end": time.time(),
            "environment": self.environment.name if self.environment else None,
            "command": self.command("python3"),
            "again": f"stead rerun {self.run.name}",
            "restarts": self.restarts,
        }
        store.write_json(self.place / "result.json", result)
        store.write_json(self.place / "manifest.json", manifest.make(self.place, self.run / "input"))
        # Written last: a reader who sees it finds all other files complete.
        store.write_json(self.done, result)
        return int(ended["exit_code"])

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        """Pass a signal on to the program and its children: Slurm signals only the process that it started."""
        is_first, self.signal = self.signal is None, self.signal or number
        if self.program:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.program.pid, number)
        elif is_first and not self.has_begun:
            # This ends the preparation of the program, and removes an incomplete environment.
            raise Signalled


def main(arguments: list[str]) -> int:
    """Run a task and return its exit code; the arguments are ROOT RUN CHUNK OFFSET, with OFFSET - without an array."""
    root, run, chunk, offset = arguments
    return Task(pathlib.Path(root), run, int(chunk), None if offset == "-" else int(offset)).execute()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
