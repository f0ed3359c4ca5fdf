"""The settings of a run, from options and stead.toml."""

import dataclasses
import pathlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

from slurmstead.client import head, names
from slurmstead.client.remote import arrays
from slurmstead.client.remote.errors import WrongRequest
from slurmstead.errors import UsageError

FILE = "stead.toml"

MEMORY = re.compile(r"\d+[KMGT]?")
TIME = re.compile(r"\d+|\d+:\d\d(:\d\d)?|\d+-\d+(:\d\d){0,2}")
NODES = re.compile(r"\d+(-\d+)?")


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a run; each field except `env` is an option of `stead submit`, and all can be in stead.toml.

    `mem` is a number followed by K, M, G or T (by default M); `time` (minutes, hours:minutes:seconds, days-hours) and
    `array` are as for sbatch. A higher `nice` lowers the priority. `after` names runs or jobs that must succeed first.
    `requirements` and `wheels` are paths in the folder; `index` is the URL of pip's package index. `data` lists paths
    in the folder that are not copied for each task: all tasks read the same files. `container` is the directory of an
    image, as for sbatch.
    """

    entry: str | None = None
    args: tuple[str, ...] = ()
    name: str | None = None
    cpus: int | None = None
    mem: str | None = None
    time: str | None = None
    array: str | None = None
    nodes: str | None = None
    gres: str | None = None
    constraint: str | None = None
    partition: str | None = None
    nice: int | None = None
    qos: str | None = None
    container: str | None = None
    after: tuple[str, ...] = ()
    python: str | None = None
    requirements: str | None = None
    index: str | None = None
    wheels: str | None = None
    data: tuple[str, ...] = ()
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def checked(self) -> Self:
        """Return these settings if all are valid.

        :raises UsageError: one is invalid
        """
        for name, pattern in (("mem", MEMORY), ("time", TIME), ("nodes", NODES)):
            value = getattr(self, name)
            if value is not None and not pattern.fullmatch(value):
                raise UsageError(f"{name} = {value!r} is not valid", EXAMPLES[name])
        if self.cpus is not None and self.cpus < 1:
            raise UsageError(f"cpus = {self.cpus}: expected at least 1")
        if self.nice is not None and self.nice < 0:
            raise UsageError(f"nice = {self.nice}: expected at least 0; only Slurm administrators can use less")
        if self.container is not None and not self.container.startswith("/"):
            raise UsageError(f"container = {self.container!r} is not valid", EXAMPLES["container"])
        if self.python is not None and not re.fullmatch(r"3\.\d+", self.python):
            raise UsageError(f"python = {self.python!r} is not valid", EXAMPLES["python"])
        if self.index is not None and re.match(r"\w+://[^/]*@", self.index):
            raise UsageError(
                "the URL in `index` contains a password, which other users could read",
                "Put it in ~/.netrc on the cluster.",
            )
        for name in self.env:
            if not name or "=" in name:
                raise UsageError(f"env: {name!r} is not a valid variable name")
        refuse_nul([*self.args, *self.data, *self.env, *self.env.values(), self.name or "", self.entry or ""])
        if self.array is not None:
            try:
                arrays.parse(self.array)
            except WrongRequest as error:
                raise UsageError(str(error), error.hint) from None
        return self


def refuse_nul(texts: Iterable[str]) -> None:
    """Refuse texts that cannot be passed to a program.

    :raises UsageError: one contains the character NUL
    """
    for text in texts:
        if "\0" in text:
            raise UsageError(f"{text!r} contains a NUL character, which cannot be passed to a program")


EXAMPLES = {
    "mem": "Write it like 500M or 8G.",
    "time": "Write it like 90 (minutes), 1:30:00 or 2-12 (days-hours).",
    "nodes": "Write it like 2 or 1-3.",
    "python": "Write it like 3.11.",
    "container": "Write the image's directory, like /share/images/python.",
}

FIELDS = {field.name: str(field.type) for field in dataclasses.fields(Settings)}


def read(folder: pathlib.Path) -> tuple[Settings, dict[str, Any]]:
    """Return the settings of runs and of the head node in a folder's stead.toml; empty if it does not exist.

    :raises UsageError: a key or value is invalid
    """
    path = folder / FILE
    found = head.read_toml(path)
    if "ssh_config" in found:
        raise UsageError(
            f"{path}: ssh_config is not accepted here: a configuration of ssh can run commands on this computer",
            f"Set it in {head.user_file()}, or use --ssh-config.",
        )
    names.refuse_unknown(found, [*FIELDS, *head.PROJECT_KEYS], str(path))
    found = _typed(found, str(path))
    where = {key: found.pop(key) for key in head.PROJECT_KEYS if key in found}
    return Settings(**found), where


def _typed(found: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return settings in the types of Settings: numbers become texts where these are expected, and lists tuples.

    :raises UsageError: a value has another type
    """
    typed: dict[str, Any] = {}
    for key, value in found.items():
        if key in ("mem", "time", "nodes", "array") and type(value) is int:
            value = str(value)
        elif isinstance(value, tuple):
            value = list(value)
        expected: Any = _kind(key)
        # A bool is an int in Python, but not in TOML.
        if not isinstance(value, expected) or isinstance(value, bool):
            raise UsageError(f"{where}: expected {key} to be {KINDS[expected]}, seen {value!r}")
        if expected is list:
            value = tuple(str(word) for word in value)
        elif expected is dict:
            value = {str(name): str(text) for name, text in value.items()}
        typed[key] = value
    return typed


KINDS: dict[type, str] = {str: "a string", int: "a number", list: "a list of strings", dict: "a table"}


def _kind(key: str) -> type:
    if key == "env":
        return dict
    if key in ("args", "after", "data"):
        return list
    return int if key in ("cpus", "nice") else str


def merge(file: Settings, given: Mapping[str, Any]) -> Settings:
    """Return the settings of the file, overridden by those of the command line.

    :raises UsageError: a setting is unknown or invalid
    """
    names.refuse_unknown(given, FIELDS, "the call")
    said = {key: value for key, value in given.items() if value is not None and value != ()}
    return dataclasses.replace(file, **_typed(said, "the call")).checked()
