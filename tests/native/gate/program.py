"""A file of this directory, with all that it imports, as the text of one program that needs nothing but Python."""

from __future__ import annotations

import base64
import io
import pathlib
import zipfile

from ansible.module_utils.slurmstead.reach import remote_call
from tests.native.cluster import Cluster

HERE = pathlib.Path(__file__).resolve().parent
MISTAKES = HERE.parents[1] / "mistakes.py"

START = """
import base64, runpy, sys, tempfile
with tempfile.NamedTemporaryFile(suffix=".zip") as archive:
    archive.write(base64.b64decode({encoded!r}))
    archive.flush()
    sys.path.insert(0, archive.name)
    runpy.run_module({name!r}, run_name="__main__")
"""


def program(name: str) -> str:
    """Return the program."""
    main, held = HERE / f"{name}.py", io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for module, (text, is_package) in remote_call.sources(remote_call.imports("", main.read_text())).items():
            archive.writestr(module.replace(".", "/") + ("/__init__.py" if is_package else ".py"), text)
        for path in (main, MISTAKES):
            archive.write(path, path.name)
    return START.format(encoded=base64.b64encode(held.getvalue()).decode(), name=name)


def run(cluster: Cluster, name: str, *arguments: str) -> str:
    """Return what the program prints on the control node, run as root with the Python of its release."""
    return cluster.run("python3", "-", *arguments, text=program(name), seconds=120)
