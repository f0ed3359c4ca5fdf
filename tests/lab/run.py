"""A run of ansible-playbook, as the tests of a lab look at it."""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping

from slurmstead.paths import ROOT

STEAD = ROOT / "scripts" / "stead"

TASK = re.compile(r"^TASK \[(.*)\] \**$")
RECAP = re.compile(r"^(\S+) +: (ok=.*)$", re.MULTILINE)
RESULT = re.compile(r"^(?:(?:TASK|RUNNING HANDLER) \[(?P<task>.*)\] \**|changed: \[(?P<host>[^ \]]+).*)$", re.MULTILINE)

Began = Callable[[str, int], None]
"""Is told the name of a task when it begins, and the process id of ansible-playbook."""


@dataclasses.dataclass(frozen=True)
class Run:
    """An ansible-playbook that ended; `seconds` is its wall time."""

    code: int
    output: str
    seconds: float

    @functools.cached_property
    def recap(self) -> dict[str, dict[str, int]]:
        """The counts of the recap by host."""
        return {
            host: {name: int(number) for name, number in (pair.split("=") for pair in counts.split())}
            for host, counts in RECAP.findall(self.output)
        }

    @functools.cached_property
    def changed(self) -> dict[str, list[str]]:
        """The names of the tasks that changed something, by host."""
        found: dict[str, list[str]] = collections.defaultdict(list)
        task = ""
        for match in RESULT.finditer(self.output):
            if match["host"]:
                found[match["host"]].append(task)
            else:
                task = match["task"]
        return dict(found)


def as_person(
    words: Iterable[object], seconds: float, *, cwd: pathlib.Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command as a person would, but without an answer to a question; its errors are part of its output."""
    said = [str(word) for word in words]
    started = time.monotonic()
    done = subprocess.run(
        said,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    print(f"$ {shlex.join(said)}: {done.returncode} after {time.monotonic() - started:.0f} s\n{done.stdout}")
    return done


def play(arguments: list[str], settings: dict[str, str], seconds: float, began: Began | None = None) -> Run:
    """Run ansible-playbook with nothing of Ansible in its environment but `settings`; it is killed after `seconds`."""
    # Without it a task has its line when its first result is there.
    early = {"ANSIBLE_DISPLAY_SKIPPED_HOSTS": "1"} if began else {}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    own = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8"}
    started = time.monotonic()
    # A file, because children of a run that is killed keep its output open.
    with tempfile.NamedTemporaryFile() as output, open(output.name, encoding="utf-8", errors="replace") as reader:
        process = subprocess.Popen(
            ["ansible-playbook", *arguments],
            cwd=ROOT,
            env={**kept, **settings, **own, **early},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        text = ""
        try:
            running = True
            while running:
                running = process.poll() is None
                more = reader.read()
                new = (text.rpartition("\n")[2] + more).split("\n")[:-1] if began else []
                text += more
                for task in filter(None, map(TASK.match, new)):
                    assert began is not None
                    began(task[1], process.pid)
                assert time.monotonic() - started < seconds, f"it did not end within {seconds:.0f} s:\n{text}"
                time.sleep(0.1)
        finally:
            process.kill()
            process.wait()
    return Run(process.returncode, text, time.monotonic() - started)
