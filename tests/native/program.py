"""A file of a test, with all that it imports, as the text of one program that needs nothing but Python."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import pathlib
import subprocess
import zipfile
from collections.abc import Iterable, Iterator
from subprocess import PIPE

from ansible.module_utils.slurmstead.reach import remote_call
from tests.native.cluster import ENVIRONMENT, Cluster

START = """
import base64, io, pathlib, runpy, sys, tempfile, zipfile
place = pathlib.Path({place!r})
if not place.exists():
    with tempfile.TemporaryDirectory() as new:
        zipfile.ZipFile(io.BytesIO(base64.b64decode({encoded!r}))).extractall(f"{{new}}/whole")
        pathlib.Path(new, "whole").rename(place)
sys.path.insert(0, str(place))
runpy.run_module({name!r}, run_name="__main__")
"""
"""Unpacked once on a machine, so that Python compiles it once."""


def program(main: pathlib.Path, beside: Iterable[pathlib.Path] = ()) -> str:
    """Return the program; `beside` are files that it imports by their names."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for module, (text, is_package) in remote_call.sources(remote_call.imports("", main.read_text())).items():
            archive.writestr(module.replace(".", "/") + ("/__init__.py" if is_package else ".py"), text)
        for path in (main, *beside):
            archive.write(path, path.name)
    packed = base64.b64encode(held.getvalue()).decode()
    place = f"/tmp/{main.stem}-{hashlib.sha256(held.getvalue()).hexdigest()}"
    return START.format(place=place, encoded=packed, name=main.stem)


def run(cluster: Cluster, text: str, *arguments: str) -> str:
    """Return what a program prints on the control node, run as root with the Python of its release."""
    return cluster.run("python3", "-", *arguments, text=text, seconds=120)


@contextlib.contextmanager
def begun(cluster: Cluster, text: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Begin the same program and leave its input open; it has to end when that ends."""
    path = f"/tmp/begun-{hashlib.sha256(text.encode()).hexdigest()}"
    cluster.run("tee", path, text=text)
    command = cluster.command("python3", path, *arguments, seconds=3600)
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True, env=ENVIRONMENT) as process:
        yield process
