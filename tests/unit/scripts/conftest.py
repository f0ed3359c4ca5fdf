"""Tiny playbooks and inventories that the real ansible-playbook runs against this computer."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from slurmstead.cli import main as cli
from slurmstead.paths import ROOT
from slurmstead.runner.interruption import ending_signals

HOSTS = {
    "here": "ansible_connection: local",
    # Port 9 (discard) of loopback is closed on every machine that runs tests.
    "gone": "ansible_host: 127.0.0.1, ansible_port: 9",
}


@dataclasses.dataclass
class Project:
    """A directory with playbooks, inventories, a home and a place for temporary files."""

    path: pathlib.Path

    def write(self, name: str, text: str) -> pathlib.Path:
        """Write a file and return its path."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def inventory(self, *hosts: str) -> pathlib.Path:
        """Write an inventory of hosts that are `here` or `gone`, or `here` under another name."""
        python = f"ansible_python_interpreter: {sys.executable}"
        lines = [f"    {host}: {{{HOSTS.get(host, HOSTS['here'])}, {python}}}" for host in hosts]
        return self.write("hosts.yml", "\n".join(["all:", "  hosts:", *lines]) + "\n")

    def playbook(self, tasks: str, name: str = "site.yml") -> pathlib.Path:
        """Write a playbook of one play; `tasks` is a YAML list at the margin."""
        indented = "\n".join(f"    {line}" for line in tasks.strip("\n").splitlines())
        return self.write(name, f"- name: Try something\n  hosts: all\n  tasks:\n{indented}\n")


@pytest.fixture
def project(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return an empty project; commands find nothing of the person who runs the tests."""
    for name, variable in (("home", "HOME"), ("tmp", "TMPDIR")):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))
    for variable in ("XDG_STATE_HOME", *(name for name in os.environ if name.startswith("STEAD_"))):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("PATH", f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return Project(tmp_path)


@pytest.fixture
def stead(monkeypatch: pytest.MonkeyPatch, project: Project) -> Iterator[Callable[..., int]]:
    """Return a function that runs a command line in this process, with the project's playbooks for ours."""
    before = {number: signal.getsignal(number) for number in ending_signals()}
    monkeypatch.setattr("slurmstead.cli.cluster.SITE", project.path / "site.yml")
    monkeypatch.setattr("slurmstead.paths.PLAYBOOKS", project.path)
    yield lambda *arguments: cli.main([str(argument) for argument in arguments])
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def stead_process(project: Project) -> Callable[..., subprocess.Popen[str]]:
    """Return a function that starts a command line as a process, with the project's site.yml for ours."""

    def start(*arguments: object) -> subprocess.Popen[str]:
        program = (
            "import pathlib, sys; from slurmstead.cli import cluster, main;"
            f" cluster.SITE = pathlib.Path({str(project.path / 'site.yml')!r}); sys.exit(main.main())"
        )
        return subprocess.Popen(
            [sys.executable, "-P", "-c", program, *(str(argument) for argument in arguments)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start
