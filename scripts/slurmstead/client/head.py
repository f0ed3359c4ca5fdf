"""Finds the head node: from the command line, stead.toml, the environment or the user's file."""

import dataclasses
import ipaddress
import os
import pathlib
import tomllib
from collections.abc import Mapping
from typing import Any

from slurmstead.client.names import refuse_unknown
from slurmstead.errors import MachineError, UsageError

KEYS = ("head", "ssh_config", "directory")
"""Keys of each of these places; in the environment they are STEAD_HEAD and so on."""

PROJECT_KEYS = ("head", "directory")
"""Keys of a folder's stead.toml, which others may have written: ssh runs commands that its configuration names."""


LOCAL = "local"
"""The head of a client that runs on the cluster itself, as in a notebook: it needs no ssh."""


class NotConfigured(UsageError):
    """No head node is named anywhere."""


@dataclasses.dataclass(frozen=True)
class Head:
    """The head node as ssh knows it, `[user@]host`, or LOCAL; and the directory for runs, by default ~/slurmstead."""

    host: str
    ssh_config: str | None = None
    directory: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether the client is on the cluster."""
        return self.host == LOCAL

    @property
    def in_rsync(self) -> str:
        """The host in rsync's syntax, in which a colon separates host and path."""
        user, at, name = self.host.rpartition("@")
        return f"{user}{at}[{name}]" if ":" in name else self.host


def home() -> pathlib.Path:
    """Return the user's home on this computer.

    :raises MachineError: it is unknown
    """
    try:
        return pathlib.Path.home()
    except RuntimeError:
        raise MachineError("your home directory is unknown", "Set HOME.") from None


def user_file() -> pathlib.Path:
    """Return the user's file with settings for all projects; it need not exist."""
    config = os.environ.get("XDG_CONFIG_HOME") or home() / ".config"
    return pathlib.Path(config) / "slurmstead" / "client.toml"


def read_toml(path: pathlib.Path) -> dict[str, Any]:
    """Return the content of a TOML file; an empty table if it does not exist.

    :raises UsageError: it is not TOML, or cannot be read
    """
    try:
        return tomllib.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}", "See https://toml.io for the syntax.") from None


def is_host(text: str) -> bool:
    """Say whether `[user@]host` is a name or an address, and neither an option nor an address with a port.

    >>> [is_host(text) for text in ("alice@fd00::7", "node3:22", "ssh://node3", "-v")]
    [True, False, False, False]
    """
    name = text.rpartition("@")[2]
    if ":" in name:
        try:
            ipaddress.IPv6Address(name)
        except ValueError:
            return False
    # rsync gives ssh the name without its user, as a word of its own.
    return bool(name) and not text.startswith("-") and not name.startswith("-")


def choose(given: Mapping[str, str | None], project: Mapping[str, Any]) -> Head:
    """Return the head node: `given` overrides `project`, which overrides the environment and the user's file.

    :raises NotConfigured: none is configured
    :raises UsageError: a file has an invalid key or value
    """
    for key, text in given.items():
        if text == "":
            option = f"--{key.replace('_', '-')}"
            raise UsageError(f"{option} is empty", f"Write a value after {option}, or leave {option} out.")
    path = user_file()
    own = read_toml(path)
    refuse_unknown(own, KEYS, str(path))
    for key, value in own.items():
        if not isinstance(value, str):
            raise UsageError(f"{path}: expected {key} to be a string, seen {value!r}")
    environment = {key: os.environ.get(f"STEAD_{key.upper()}") or None for key in KEYS}
    if "STEAD_RUN" in os.environ:
        # In a job STEAD_DIRECTORY is the directory of its own run (remote/job.py).
        environment["directory"] = None
    places: list[Mapping[str, Any]] = [given, project, environment, own]
    found = {key: next((place[key] for place in places if place.get(key)), None) for key in KEYS}
    if not found["head"]:
        raise NotConfigured(
            "no cluster is configured",
            f'Use --head user@host, or write head = "user@host" into {path}',
        )
    if not is_host(found["head"]):
        raise UsageError(
            f"{found['head']!r} is not a host", "Use --head user@host; set a port in ssh's own configuration."
        )
    return Head(found["head"], absolute(found["ssh_config"]), found["directory"])


def absolute(path: str | None) -> str | None:
    """Return a path of the user, if there is one, so that it is the same in any current directory."""
    return path and str(pathlib.Path(path).expanduser().absolute())
