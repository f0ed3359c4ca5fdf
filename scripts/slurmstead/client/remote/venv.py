"""Virtual environments on the share: each is built once, on a node of its kind, and visible only when complete.

KEY is a link to the directory of the environment, created when the environment is complete. A killed build leaves a
directory without a link, which the head node removes later: an NFS client that remembers for a while that KEY did not
exist cannot tell the two apart. A file on the share costs as much time as
ten on a disk, so environments contain neither pip nor bytecode: pip runs from the node's own disk, and Python writes
bytecode for the modules that a program imports.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple

from slurmstead.client.remote import bundled_pip, store

BUILD_SECONDS = 2 * 3600
"""How long a job waits while another builds the same environment."""


class BuildError(Exception):
    """An environment could not be built; the text says why."""


class BuildKilledError(BuildError):
    """A signal ended the build; the next build may succeed."""


class Python(NamedTuple):
    """A Python on this node: its path, its version (major.minor) and the platform for which pip chooses wheels."""

    path: str
    version: str
    platform: str


def find_python(wanted: str | None) -> Python:
    """Return the first python3 in PATH, or the first Python of a version such as 3.11.

    :raises BuildError: the node, or the image, does not have it
    """
    name = f"python{wanted}" if wanted else "python3"
    path = shutil.which(name)
    if path is None:
        raise BuildError(f"{os.uname().nodename} has no {name}. Choose a version that all nodes have.")
    if os.path.realpath(path) == os.path.realpath(sys.executable):
        # Starting Python takes 0.2 s on a small board, and an array has many tasks.
        return Python(path, f"{sys.version_info.major}.{sys.version_info.minor}", sysconfig.get_platform())
    version = subprocess.run(
        [path, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    return Python(path, version, sysconfig.get_platform())


def key(wanted: Mapping[str, Any], python: Python) -> str:
    """Return the name of an environment, a digest of everything that determines its content and where it works.

    An environment has a link to its interpreter, which another node or image may not have.

    >>> key({"requirements": "rich==13"}, Python("/opt/none/python3", "3.11", "linux-x86_64"))
    'py3.11-linux-x86_64-934f0ebb5e372fa8'
    """
    content = {name: wanted.get(name) for name in ("requirements", "wheels_digest", "index", "container")}
    content["interpreter"] = os.path.realpath(python.path)
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return f"py{python.version}-{python.platform}-{digest[:16]}"


def install_command(environment: pathlib.Path, wanted: Mapping[str, Any], requirements: pathlib.Path) -> list[str]:
    """Return the command line of pip; pip verifies hashes if the requirements have them."""
    pip = [str(environment / "bin" / "python"), "-m", "pip"]
    command = [*pip, "install", "--disable-pip-version-check", "--no-input", "--no-compile"]
    if wanted.get("wheels"):
        command.append(f"--find-links={wanted['wheels']}")
        if not wanted.get("index"):
            command.append("--no-index")
    if wanted.get("index"):
        command.append(f"--index-url={wanted['index']}")
    return [*command, f"--requirement={requirements}"]


def ensure(
    directory: pathlib.Path,
    wanted: Mapping[str, Any],
    python: Python,
    log: pathlib.Path,
    variables: Mapping[str, str],
    run: pathlib.Path,
) -> pathlib.Path:
    """Return a complete environment; build it if necessary, and record its use.

    :param directory: the directory of all environments
    :param log: the file for the output of venv and pip
    :param run: the directory of the run, which keeps a build failure for the run's other tasks
    :raises BuildError: the environment cannot be built
    """
    link = directory / key(wanted, python)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with store.locked(directory / f"{link.name}.lock", BUILD_SECONDS):
        if not (link / "used").exists():
            failure = run / f"environment-failed-{link.name}"
            if failure.exists():
                raise BuildError(failure.read_text(errors="replace"))
            try:
                _build(link, wanted, python, log, variables)
            except BuildError as error:
                if not isinstance(error, BuildKilledError):
                    store.write(failure, str(error).encode(errors="replace"))
                raise
        note_use(link)
        return directory / os.readlink(link)


def note_use(environment: pathlib.Path) -> None:
    """Record that an environment is in use, so that it is not removed."""
    with contextlib.suppress(OSError):
        os.utime(environment / "used")


def _build(
    link: pathlib.Path, wanted: Mapping[str, Any], python: Python, log: pathlib.Path, variables: Mapping[str, str]
) -> None:
    wheel = bundled_pip.find(python.path)
    if wheel is None:
        raise BuildError(f"{python.path} has no pip for virtual environments.{_advice(python)}")
    # Scripts in a virtual environment contain its path, so it is built in its final place.
    target = link.with_name(f"{link.name}.build-{os.urandom(4).hex()}")
    try:
        _run([python.path, "-m", "venv", "--without-pip", str(target)], log, variables, _advice(python))
        requirements = target / "requirements.txt"
        requirements.write_text(wanted["requirements"])
        with tempfile.TemporaryDirectory(prefix="stead-pip-") as pip:
            bundled_pip.unpack(wheel, pip)
            _run(install_command(target, wanted, requirements), log, bundled_pip.variables(variables, pip), "")
        (target / "used").touch()
        os.sync()
        link.symlink_to(target.name)
    except FileExistsError:
        # The server has one that this client did not see; jobs may be using it.
        shutil.rmtree(target, ignore_errors=True)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def _advice(python: Python) -> str:
    return f" On Debian, install python{python.version}-venv (python3-venv) on the node."


def _run(command: list[str], log: pathlib.Path, variables: Mapping[str, str], advice: str) -> None:
    with open(log, "ab") as file:
        file.write(f"$ {' '.join(command)}\n".encode())
        file.flush()
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=dict(variables), check=False
        )
    if done.returncode < 0:
        raise BuildKilledError(f"`{' '.join(command[1:5])} …` was killed by signal {-done.returncode}")
    if done.returncode:
        lines = log.read_text(errors="replace").strip().splitlines()
        first = f"`{' '.join(command[1:5])} …` exited with {done.returncode}.{advice}"
        raise BuildError("\n".join([first, *lines[-15:]]))
