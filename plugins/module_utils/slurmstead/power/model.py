# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What every method of switching a machine has in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class PowerError(Exception):
    """A machine could not be switched or asked; the message says why."""


class RefusedError(PowerError):
    """The credentials were refused. A retry could lock the account, so nothing may repeat this."""


@dataclasses.dataclass(frozen=True)
class Machine:
    """How one machine is switched."""

    name: str
    method: str
    host: str = ""
    """address of the machine itself, which tells whether its system runs"""
    address: str = ""
    """address of the BMC or plug, with a port if it is not the usual one: 192.168.2.11:8443"""
    user: str = ""
    password: str = dataclasses.field(default="", repr=False)
    certificate: str = ""
    """SHA-256 of the certificate of the BMC in hexadecimal digits; empty accepts any"""
    cipher: int = 0
    """cipher suite of IPMI: 3 or 17; 0 asks the BMC for its suites, which some answer too slowly or not at all"""
    slot: int = 1
    """number of the node on its board, or of the relay in its plug, from 1"""
    mac: str = ""
    broadcast: str = "255.255.255.255"
    plug: str = ""
    commands: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    """command lines by `on`, `off` and `status`"""
    seconds: float = 10.0
    """time limit of one request"""
    through: Sequence[str] = ()
    """an ssh command to a machine that reaches the BMC instead of this one; only for HTTPS"""

    @property
    def cuts(self) -> bool:
        """Whether its supply can be cut; a magic packet only switches it on."""
        return self.method != "wake_on_lan"

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Machine:
        """Return the machine of a mapping with these names; None leaves the default.

        >>> Machine.read({"name": "node1", "method": "plug", "slot": "2", "password": 1234}).slot
        2
        """
        types: Mapping[str, Any] = {"str": str, "int": int, "float": float}
        kinds = {field.name: types.get(str(field.type)) for field in dataclasses.fields(cls)}
        given = {name: value for name, value in values.items() if value is not None}
        return cls(**{name: kind(value) if (kind := kinds.get(name)) else value for name, value in given.items()})


OPTIONS: dict[str, Any] = {
    field.name: {
        "type": str(field.type) if field.type in ("str", "int", "float") else "dict",
        "required": field.default is field.default_factory is dataclasses.MISSING,
        "no_log": field.name == "password",
    }
    for field in dataclasses.fields(Machine)
    if field.name != "through"
}
"""The options of a module for a Machine. Only the password is a secret: no_log for all would also mask its name."""


class Method(Protocol):
    """Switches one machine."""

    orderly: bool
    """whether `shut_down` works without the machine's ssh"""

    def on(self, stale: bool = False) -> None:
        """Switch the supply on. `stale`: the machine is known to be off, whatever the method remembers."""

    def off(self) -> None:
        """Cut the supply at once."""

    def shut_down(self) -> None:
        """Ask the operating system to shut down; returns before it has."""

    def is_on(self) -> bool | None:
        """Return whether the supply is on; None if this method cannot tell."""
