"""A file of a test, with all that it imports, as the text of one program that needs nothing but Python."""

from __future__ import annotations

import base64
import io
import pathlib
import zipfile
from collections.abc import Iterable

from ansible.module_utils.slurmstead.reach import remote_call
from tests.native.cluster import Cluster

START = """
import base64, runpy, sys, tempfile
with tempfile.NamedTemporaryFile(suffix=".zip") as archive:
    archive.write(base64.b64decode({encoded!r}))
    archive.flush()
    sys.path.insert(0, archive.name)
    runpy.run_module({name!r}, run_name="__main__")
"""


def program(main: pathlib.Path, beside: Iterable[pathlib.Path] = ()) -> str:
    """Return the program; `beside` are files that it imports by their names."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for module, (text, is_package) in remote_call.sources(remote_call.imports("", main.read_text())).items():
            archive.writestr(module.replace(".", "/") + ("/__init__.py" if is_package else ".py"), text)
        for path in (main, *beside):
            archive.write(path, path.name)
    return START.format(encoded=base64.b64encode(held.getvalue()).decode(), name=main.stem)


def run(cluster: Cluster, text: str, *arguments: str) -> str:
    """Return what a program prints on the control node, run as root with the Python of its release."""
    return cluster.run("python3", "-", *arguments, text=text, seconds=120)
