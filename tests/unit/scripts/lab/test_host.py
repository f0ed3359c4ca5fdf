"""Which packages are asked for, and how."""

import io
import os
import pathlib
import re
import signal
import subprocess
from collections.abc import Callable

import pytest
from rich.console import Console

from slurmstead.errors import Interrupted, MachineError
from slurmstead.lab import host


@pytest.fixture
def system(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Return a directory that is the PATH: a Debian on which only openssh-client is installed."""

    def tool(name: str, text: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)

    tool("dpkg-query", 'echo "openssh-client installed"; echo "vde2 config-files"; exit 1')
    tool("sudo", f'printf "sudo " >> {tmp_path}/log; exec "$@"')
    tool("env", '[ "$1" = DEBIAN_FRONTEND=noninteractive ] && shift && exec "$@"')
    tool("apt-get", f'echo "apt-get $*" >> {tmp_path}/log; [ ! -e {tmp_path}/stale ] || [ "$4" = update ] || exit 100')
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    return tmp_path


def log(system: pathlib.Path) -> list[str]:
    return (system / "log").read_text().splitlines()


WANTED = [name for name in host.PACKAGES if name != "openssh-client"]
APT = "apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=600"
INSTALL = f"{APT} install --yes --no-install-recommends {' '.join(sorted(WANTED))}"
UPDATE = f"{APT} update"


@pytest.mark.parametrize(("user", "prefix"), [(0, ""), (1000, "sudo ")], ids=["root", "user"])
def test_what_is_missing_is_installed_without_a_question(system, monkeypatch, user, prefix):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    console = Console(file=io.StringIO(), width=100)
    assert host.ensure_packages(console) == sorted(WANTED)
    assert log(system) == [prefix + INSTALL]
    said = console.file.getvalue()
    for package in WANTED:
        assert re.search(rf"{package} +{re.escape(host.PACKAGES[package])}", said)
    assert ("sudo is used" in said) == bool(user)


def test_package_lists_are_fetched_only_when_they_are_needed(system, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (system / "stale").touch()
    with pytest.raises(MachineError) as caught:
        host.ensure_packages(Console(file=io.StringIO()))
    assert log(system) == [INSTALL, UPDATE, INSTALL]
    assert "apt-get could not install" in str(caught.value)
    assert caught.value.hint == f"As root: apt-get install {' '.join(sorted(WANTED))}"


def raising(error: Exception) -> Callable[..., None]:
    """Return a function that raises an error."""

    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_an_installation_can_be_interrupted_although_sudo_cannot_be_killed(system, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(subprocess.Popen, "kill", raising(PermissionError()))
    monkeypatch.setattr(subprocess.Popen, "communicate", raising(Interrupted(signal.SIGINT)))
    monkeypatch.setattr(host, "missing_packages", lambda wanted: ["vde2"])

    with pytest.raises(Interrupted):
        host.ensure_packages(Console(file=io.StringIO()))


def test_nothing_is_said_or_done_when_all_is_there(system):
    (system / "dpkg-query").write_text("#!/bin/sh\n" + "\n".join(f"echo {name} installed" for name in host.PACKAGES))
    console = Console(file=io.StringIO())
    assert host.ensure_packages(console) == []
    assert console.file.getvalue() == ""
    assert not (system / "log").exists()


def test_a_user_without_sudo_is_told_what_root_must_do(system, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", str(system))
    (system / "sudo").unlink()
    with pytest.raises(MachineError, match="no sudo") as caught:
        host.ensure_packages(Console(file=io.StringIO()))
    assert "apt-get install" in caught.value.hint


def test_another_system_than_debian_is_refused_with_what_it_would_need(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="Debian or Ubuntu") as caught:
        host.missing_packages(host.PACKAGES)
    assert "qemu-system-x86" in caught.value.hint


def test_for_arm64_more_is_installed(system, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (system / "arch-test").write_text("#!/bin/sh\n")
    (system / "arch-test").chmod(0o755)
    wanted = sorted([*WANTED, *host.PACKAGES_ARM64])
    assert host.ensure_packages(Console(file=io.StringIO()), arm64=True) == wanted


def test_a_computer_that_cannot_run_arm64_says_what_to_do(system, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (system / "arch-test").write_text("#!/bin/sh\nexit 1\n")
    (system / "arch-test").chmod(0o755)
    with pytest.raises(MachineError, match="no arm64 image can be built") as error:
        host.ensure_packages(Console(file=io.StringIO()), arm64=True)
    assert "systemd-binfmt" in error.value.hint
