"""A person with keys and a git that knows them, and the command that makes sites."""

import pathlib
from collections.abc import Callable

import pytest

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUS1U0Gem7W8bORJv7qYZ3aa49ZquCEoOWoAJGi4CqP ann@home"
MACHINES = ("--control", "node3=192.0.2.3", "--worker", "node1=192.0.2.1", "--worker", "node2=192.0.2.2")


@pytest.fixture
def ann(project, monkeypatch) -> pathlib.Path:
    """Return the directory in which ann works; she has a key, a certificate of it and a name in git."""
    monkeypatch.setenv("LOGNAME", "ann")
    for name in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL", "EMAIL", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)
    project.write("home/.ssh/id_ed25519.pub", f"{KEY}\n")
    project.write("home/.ssh/id_ed25519-cert.pub", "ssh-ed25519-cert-v01@openssh.com AAAAIHNzaC1 ann\n")
    project.write("home/.gitconfig", "[user]\nname = Ann\nemail = ann@example.org\n")
    (project.path / "work").mkdir()
    monkeypatch.chdir(project.path / "work")
    return project.path / "work"


@pytest.fixture
def site(ann, stead: Callable[..., int]) -> pathlib.Path:
    """Return a site of three machines."""
    assert stead("init", "cluster", *MACHINES) == 0
    return ann / "cluster"
