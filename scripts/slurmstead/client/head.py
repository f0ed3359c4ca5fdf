"""Where the head node is: said on the command line, in stead.toml, in the environment or in a file of the user's."""

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
"""What each of the places may say; the environment says it as STEAD_HEAD and so on."""


@dataclasses.dataclass(frozen=True)
class Head:
    """The head node as ssh knows it, `[user@]host`, and the directory for runs there, ~/slurmstead unless given."""

    host: str
    ssh_config: str | None = None
    directory: str | None = None

    @property
    def in_rsync(self) -> str:
        """The host as rsync wants it, which takes what stands behind a colon for a path."""
        user, at, name = self.host.rpartition("@")
        return f"{user}{at}[{name}]" if ":" in name else self.host


def home() -> pathlib.Path:
    """Return the user's home on this computer.

    :raises MachineError: nobody knows it
    """
    try:
        return pathlib.Path.home()
    except RuntimeError:
        raise MachineError("this computer does not know where your home is", "Set HOME.") from None


def user_file() -> pathlib.Path:
    """Return the file in which a user says once what holds for all projects; it need not exist."""
    config = os.environ.get("XDG_CONFIG_HOME") or home() / ".config"
    return pathlib.Path(config) / "slurmstead" / "client.toml"


def read_toml(path: pathlib.Path) -> dict[str, Any]:
    """Return what a TOML file says; nothing if there is none.

    :raises UsageError: it is not TOML, or cannot be read
    """
    try:
        return tomllib.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}", "https://toml.io shows how it is written.") from None


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
    """Return the head node that is meant: `given` wins over `project`, that over the environment and the user's file.

    :raises UsageError: nobody says which, or a file says something else
    """
    path = user_file()
    own = read_toml(path)
    refuse_unknown(own, KEYS, str(path))
    for key, value in own.items():
        if not isinstance(value, str):
            raise UsageError(f"{path}: expected {key} to be a string, seen {value!r}")
    environment = {key: os.environ.get(f"STEAD_{key.upper()}") or None for key in KEYS}
    places: list[Mapping[str, Any]] = [given, project, environment, own]
    found = {key: next((place[key] for place in places if place.get(key)), None) for key in KEYS}
    if not found["head"]:
        raise UsageError(
            "which head node is meant is not said",
            f'Write --head user@host, or once for all: head = "user@host" in {path}',
        )
    if not is_host(found["head"]):
        raise UsageError(
            f"{found['head']!r} is no host", "Write --head user@host; a port is said in ssh's own configuration."
        )
    config = found["ssh_config"]
    return Head(found["head"], config and str(pathlib.Path(config).expanduser().absolute()), found["directory"])
