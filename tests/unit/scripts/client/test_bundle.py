"""The program for the cluster needs nothing that is not there."""

import ast
import io
import json
import pathlib
import subprocess
import sys
import zipfile
from importlib.util import MAGIC_NUMBER
from typing import Any

import pytest

from slurmstead.client import bundle
from slurmstead.client.remote import library
from slurmstead.client.remote.store import Store


@pytest.mark.parametrize("path", sorted(bundle.REMOTE.glob("*.py")), ids=lambda path: path.name)
def test_it_imports_only_what_every_python_has(path: pathlib.Path) -> None:
    imports: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imports.add(str(node.module))
    strangers = {name for name in imports if not name.startswith("slurmstead.client.remote")}

    assert {name.partition(".")[0] for name in strangers} <= set(sys.stdlib_module_names)


def test_the_same_sources_are_the_same_program() -> None:
    first = bundle.program()
    bundle.program.cache_clear()

    assert bundle.program() == first


def ask(store: Store, action: str, before: str = "", **request: Any) -> Any:
    """Return what the head node answers, as through ssh; `before` is what happens to its Python first."""
    line = {"action": action, "directory": str(store.root), **request, "program_bytes": len(bundle.program())}
    done = subprocess.run(
        [sys.executable, "-I", "-c", before + bundle.ON_HEAD],
        input=json.dumps(line).encode() + b"\n" + bundle.program(),
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""
    return json.loads(done.stdout)


def test_the_head_node_answers_through_its_standard_input(store: Store) -> None:
    assert ask(store, "jobs") == {"jobs": []}


def test_a_head_node_without_room_for_temporary_files_answers(store: Store) -> None:
    full = "import tempfile; tempfile.tempdir = '/nowhere'\n"

    assert ask(store, "jobs", full) == {"jobs": []}


def test_a_refusal_is_an_answer(store: Store) -> None:
    error = ask(store, "tail", job="nothing")["error"]

    assert (error["kind"], error["hint"]) == ("usage", "`stead jobs` lists your runs.")
    assert error["text"] == f"there is no run nothing in {store.root}"


@pytest.mark.parametrize(("magic", "used"), [(MAGIC_NUMBER, "pyc"), (b"\0\0\r\n", "py")], ids=["own", "another"])
def test_a_node_takes_the_bytecode_of_its_own_python_only(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, magic: bytes, used: str
) -> None:
    monkeypatch.setattr("importlib.util.MAGIC_NUMBER", magic)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("__main__.py", "import said")
        archive.writestr("said.py", "print(__file__)")
    name = library.keep(tmp_path, buffer.getvalue())

    said = subprocess.check_output([sys.executable, "-I", tmp_path / name], text=True).strip()

    assert said == f"{tmp_path / name}/said.{used}"
