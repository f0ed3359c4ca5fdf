# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A call of one of our functions as the text of a program, which needs only Python on the machine.

Python compiles an Ansible module each time, with a hundred files of Ansible: on an emulated CPU that takes longer than
collecting the facts.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

PACKAGE = "ansible.module_utils.slurmstead"
PACKAGES = ("ansible", "ansible.module_utils", PACKAGE)

COMMAND = "/usr/bin/python3 -IS -"
"""The interpreter of ansible.cfg; without its site-packages it starts in half the time."""

PROGRAM = """
import _frozen_importlib, importlib, json, sys

SOURCES = {sources!a}


class Sources:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in SOURCES:
            return _frozen_importlib.ModuleSpec(name, Sources, is_package=SOURCES[name][1])

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        name = module.__name__
        exec(compile(SOURCES[name][0], name, "exec", dont_inherit=True), module.__dict__)


sys.meta_path.insert(0, Sources)
called = getattr(importlib.import_module({module!r}), {function!r})
print(json.dumps(called(**json.loads({arguments!a}))))
"""


def program(module: str, function: str, arguments: Mapping[str, Any]) -> str:
    """Return the program that calls a function of a module below PACKAGE, and prints its result as JSON."""
    name = f"{PACKAGE}.{module}"
    return PROGRAM.format(sources=sources({name}), module=name, function=function, arguments=json.dumps(arguments))


def ask(
    execute: Callable[..., Mapping[str, Any]], module: str, function: str, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a function's result from a machine as `returned`, or a failed result for Ansible.

    :param execute: ActionBase._low_level_execute_command
    """
    done = execute(COMMAND, in_data=program(module, function, arguments).encode())
    if done["rc"]:
        return {"failed": True, "msg": done["stderr"] or done["stdout"]}
    return {"changed": False, "returned": json.loads(done["stdout"].splitlines()[-1])}


def sources(names: Iterable[str]) -> dict[str, tuple[str, bool]]:
    """Return the text of modules, and of all our modules that they import, by name, and whether each is a package."""
    found = {package: ("", True) for package in PACKAGES}
    new = set(names)
    while new:
        # In this order, so that a program that is installed is the same each time.
        found |= {one: (text, is_package) for one in sorted(new) for text, is_package in _read(one)}
        new = {other for one in new & found.keys() for other in imports(one, found[one][0])} - found.keys()
    return found


def _read(name: str) -> Iterator[tuple[str, bool]]:
    """Yield the text of a module, if the name is a module and not a name in one."""
    base = Path(__file__).parents[1].joinpath(*name.removeprefix(f"{PACKAGE}.").split("."))
    for path, is_package in ((base.with_suffix(".py"), False), (base / "__init__.py", True)):
        if path.is_file():
            yield path.read_text(), is_package


def imports(name: str, text: str) -> Iterator[str]:
    """Yield the names in a text's imports that may be our modules, and their packages."""
    wanted = [name.rpartition(".")[0]]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGE):
            wanted += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    yield from (one for one in wanted if one.startswith(f"{PACKAGE}."))
