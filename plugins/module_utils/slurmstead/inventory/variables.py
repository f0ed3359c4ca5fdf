# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Names and types of an inventory's variables, checked against the roles' argument specs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible.module_utils.slurmstead.inventory.model import (
    Inventory,
    Problem,
    Specs,
    Variable,
    did_you_mean,
    has_no_log,
    nearest,
    shown,
)

CONNECTION_VARIABLES = frozenset(
    f"ansible_{name}"
    for name in (
        "become become_exe become_flags become_method become_pass become_password become_user connection host password "
        "pipelining port private_key_file python_interpreter remote_tmp ssh_args ssh_common_args ssh_executable "
        "ssh_extra_args ssh_host ssh_host_key_checking ssh_pass ssh_password ssh_pipelining ssh_port "
        "ssh_private_key_file ssh_retries ssh_timeout ssh_user sudo_pass timeout user"
    ).split()
)
"""Ansible's own variables in inventories (plugins ssh, sudo and sh of ansible.builtin), to find typos in them too."""

COMPARED_CONNECTION_VARIABLES = ("ansible_host", "ansible_port", "ansible_user")
"""Ansible's variables whose values the relations need."""

SIMILAR = 0.88
"""From this similarity on (difflib's ratio), a name without a role's prefix counts as a typo."""

Fault = tuple[str, str]
"""The mistake and what to do: two parts of a Problem."""

TYPE_WORDS = {
    "bool": "true or false",
    "dict": "a mapping",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "path": "a path",
    "raw": "any value",
    "str": "a string",
}


class Checked:
    """The checked variables of an inventory: their problems, and the values with the right type, for relations."""

    def __init__(self, inventory: Inventory, specs: Specs) -> None:
        self.inventory = inventory
        self.specs = specs
        self._found: dict[tuple[str, str], tuple[list[Fault], Any]] = {}

    @cached_property
    def problems(self) -> list[Problem]:
        """All problems of names and types."""
        return [
            problem
            for host, variables in self.inventory.hosts.items()
            for check in (self._names, self._required, self._values)
            for problem in check(host, variables)
        ]

    def values(self, host: str) -> dict[str, Any]:
        """The host's values, or else the specs' defaults, of all variables with a value of the right type."""
        values = {
            name: option["default"]
            for name, option in self.specs.options.items()
            if "default" in option and "{{" not in str(option["default"])
        }
        for name, variable in self.inventory.hosts[host].items():
            if name in COMPARED_CONNECTION_VARIABLES and not variable.error:
                values[name] = variable.value
            elif name in self.specs.options:
                values.pop(name, None)
                if not variable.error:
                    found, value = self._checked(name, variable.value)
                    if not found:
                        values[name] = value
        return values

    def problem(self, name: str, wrong: str, advice: str, hosts: tuple[str, ...]) -> Problem:
        """A problem of a variable, with the places that define it for these hosts."""
        given = [self.inventory.hosts[host][name] for host in hosts if name in self.inventory.hosts[host]]
        return Problem(name, wrong, advice, hosts, tuple({variable.origin for variable in given if variable.origin}))

    def _names(self, host: str, variables: Mapping[str, Variable]) -> Iterator[Problem]:
        """Every variable with a role's prefix exists in that role; no other name is similar to a variable."""
        for name in variables:
            fault = self._name_faults[name]
            if fault:
                yield self.problem(name, *fault, (host,))

    @cached_property
    def _name_faults(self) -> dict[str, Fault | None]:
        """The mistake in each wrong name on any host; cached by name, because similarity is slow to compute."""
        names = {name for variables in self.inventory.hosts.values() for name in variables}
        return {name: self._name_fault(name) for name in names}

    def _name_fault(self, name: str) -> Fault | None:
        specs = self.specs
        if name in specs.computed:
            return "is computed by the playbooks", "Do not set it"
        if name in specs.options or name in CONNECTION_VARIABLES:
            return None
        role = specs.role_of(name.removeprefix("__"))
        if name.startswith("__"):
            return (f"is internal to the role {role}", "Remove it from the inventory") if role else None
        if role is not None:
            advice = did_you_mean(name, specs.options, f"The variables of {role} are in roles/{role}/README.md")
            return f"is not a variable of the role {role}", advice
        match = nearest(name, [*specs.options, *CONNECTION_VARIABLES], cutoff=SIMILAR)
        return ("is unknown, but similar to a known variable", f"Did you mean {match}?") if match else None

    def _required(self, host: str, variables: Mapping[str, Variable]) -> Iterator[Problem]:
        """Every variable that a role requires is set, by the inventory or by the playbooks."""
        for role, name, option in self._required_options:
            applies = role not in self.specs.optional or any(self.specs.role_of(own) == role for own in variables)
            if name not in variables and applies:
                yield Problem(name, "is not set", f"Set it: {_first_sentence(option)}", (host,))

    @cached_property
    def _required_options(self) -> list[tuple[str, str, Mapping[str, Any]]]:
        """Each option that an inventory must set, with its role and name."""
        return [
            (role, name, option)
            for role, options in self.specs.roles.items()
            for name, option in options.items()
            if option.get("required") and name not in self.specs.computed and self.specs.role_of(name) == role
        ]

    def _values(self, host: str, variables: Mapping[str, Variable]) -> Iterator[Problem]:
        """Every value can be computed and has the type that its spec states."""
        for name, variable in variables.items():
            if name not in self.specs.options:
                continue
            if variable.error:
                error = "its value cannot be computed" if self.specs.is_secret(name) else variable.error
                yield self.problem(name, error, "Correct the expression, or set what it uses", (host,))
                continue
            for fault in self._checked(name, variable.value)[0]:
                yield self.problem(name, *fault, (host,))

    def _checked(self, name: str, value: Any) -> tuple[list[Fault], Any]:
        """The faults of a value, or the value with its spec's type; cached, because most hosts share most values."""
        key = (name, repr(value))
        if key not in self._found:
            option = self.specs.options[name]
            found = list(faults("", option, value))
            self._found[key] = (found, None if found else converted(option, value))
        return self._found[key]


def _first_sentence(option: Mapping[str, Any]) -> str:
    description = option.get("description", "see the role's README")
    text = description if isinstance(description, str) else str(description[0])
    return text.split(". ")[0].rstrip(".")


def faults(place: str, option: Mapping[str, Any], value: Any) -> Iterator[Fault]:
    """All faults of a value according to its spec. `place` is its position in the variable, "" for the whole.

    Containers are checked here, because Ansible's own validation is lenient ("a,b" passes as a list, a list as a
    string, true as the number 1) and then passes the *unconverted* value to the role, which would loop over the
    letters. Ansible checks the rest: types and choices of single values.
    """
    kind = option.get("type", "str")
    here = f"{place} " if place else ""
    seen = "has a value" if has_no_log(option) else f"is {shown(value)}"
    if value is None:
        if option.get("required"):
            yield f"{here}is empty", f"Set it: {_first_sentence(option)}"
        elif option.get("default") is not None:
            yield f"{here}is empty", f"Write {TYPE_WORDS[kind]}, or remove it"
    elif not _has_shape(kind, value):
        yield f"{here}{seen}, which is {_kind(value)}", f"Write {TYPE_WORDS[kind]}"
    elif kind == "path" and not place and not value.startswith("/"):
        # One within a variable may be of the operator's computer, or has a rule of its own.
        yield f"{seen}, which is not absolute", "Begin it with /"
    elif kind == "list":
        item = _element(option)
        for number, part in enumerate(value):
            if part is None:
                yield f"{place}[{number}] is empty", f"Write {TYPE_WORDS[item['type']]}, or remove it"
            yield from faults(f"{place}[{number}]", item, part)
    elif kind == "dict":
        yield from _mapping_faults(place, option, value)
    else:
        wrong, read = _validated(option, value)
        if kind == "bool" and isinstance(value, str) and not wrong and not read:
            # Roles and playbooks get the text itself, and a text that is not empty is true in a condition.
            advice = "Write false without quotes; in an INI file, False; with --extra-vars, JSON"
            yield f"{here}{seen}, a text, which counts as true in conditions", advice
        elif wrong and "choices" in option:
            yield f"{here}{seen}", f"Write one of: {', '.join(str(one) or '(nothing)' for one in option['choices'])}"
        elif wrong:
            yield f"{here}{seen}", f"Write {TYPE_WORDS[kind]}"


def converted(option: Mapping[str, Any], value: Any) -> Any:
    """A value without faults, with its numbers as numbers and its texts as texts.

    >>> converted({"type": "list", "elements": "int"}, ["22", 443]), converted({"type": "str"}, 20)
    ([22, 443], '20')
    """
    kind = option.get("type", "str")
    if value is None or kind in ("path", "raw"):
        return value
    if kind == "list":
        item = _element(option)
        return [converted(item, part) for part in value]
    if kind == "dict":
        known = option.get("options") or {}
        return {key: converted(known.get(key, {"type": "raw"}), part) for key, part in value.items()}
    return _validated(option, value)[1]


def _element(option: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of each element of a list."""
    shared = {key: option[key] for key in ("options", "no_log", "choices") if key in option}
    return {"type": option.get("elements", "raw"), **shared}


def _validated(option: Mapping[str, Any], value: Any) -> tuple[bool, Any]:
    """Whether Ansible refuses a single value, and what it makes of it."""
    checked = ArgumentSpecValidator({"value": {**option, "required": False}}).validate({"value": value})
    return bool(checked.error_messages), checked.validated_parameters.get("value")


def _mapping_faults(place: str, option: Mapping[str, Any], value: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults of the keys of a mapping and of their values. Without `options` in the spec, any key is valid."""
    known = option.get("options")
    if not known:
        return
    for key, part in value.items():
        if key in known:
            yield from faults(f"{place}.{key}", known[key], part)
        else:
            yield f"{place}.{key} is not known", did_you_mean(str(key), known, f"Write one of: {', '.join(known)}")
    for key, part in known.items():
        if part.get("required") and key not in value:
            yield f"{place or 'it'} has no {key}", f"Set {key}: {_first_sentence(part)}"


_OWN_TYPES: dict[str, type] = {"dict": dict, "list": list, "path": str}
_FOREIGN_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (list, dict, float),
    "float": (bool, list, dict),
    "int": (bool, float, list, dict),
    "str": (bool, list, dict),
}


def _has_shape(kind: str, value: Any) -> bool:
    """Whether a value has a type, without Ansible's conversions between containers and single values."""
    return isinstance(value, _OWN_TYPES.get(kind, object)) and not isinstance(value, _FOREIGN_TYPES.get(kind, ()))


def _kind(value: Any) -> str:
    """What a value is, in words."""
    kinds = ((bool, "bool"), (int, "int"), (float, "float"), (str, "str"), (list, "list"), (dict, "dict"))
    return next((TYPE_WORDS[name] for kind, name in kinds if isinstance(value, kind)), type(value).__name__)
