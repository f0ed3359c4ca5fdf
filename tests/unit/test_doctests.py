"""The examples in docstrings are right."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pathlib
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

PACKAGES = {"scripts": "", "plugins/module_utils": "ansible.module_utils."}
"""Directories of importable code, and what stands before its names. Other plugins are loaded by their path."""

PATHS = sorted(
    path.relative_to(ROOT)
    for directory in ("scripts", "plugins", "roles")
    for path in (ROOT / directory).rglob("*.py")
    if ">>> " in path.read_text()
)


def load(path: pathlib.Path) -> types.ModuleType:
    for directory, prefix in PACKAGES.items():
        if path.is_relative_to(directory):
            parts = path.relative_to(directory).with_suffix("").parts
            return importlib.import_module(prefix + ".".join(part for part in parts if part != "__init__"))
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_examples_are_right(path: pathlib.Path) -> None:
    module = load(path)
    examples = [example for found in doctest.DocTestFinder().find(module) for example in found.examples]

    assert examples, "Move the example into a docstring"
    assert doctest.testmod(module).failed == 0
