"""The program for the nodes, with compiled modules because each task of an array starts it."""

import hashlib
import importlib.util
import io
import marshal
import pathlib
import sys
import zipfile

from slurmstead.client.remote import store

UNCHECKED = 1
"""Python uses a .pyc with this flag without checking its source (PEP 552)."""


def keep(directory: pathlib.Path, program: bytes) -> str:
    """Store a program in the library unless it is there, and return its file name."""
    name = f"{hashlib.sha256(program).hexdigest()[:16]}.{sys.implementation.cache_tag}.pyz"
    if not (directory / name).exists():
        store.write(directory / name, compiled(program))
    return name


def compiled(program: bytes) -> bytes:
    """Return a zip archive of modules with their bytecode; another Python version uses the sources."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(program)) as source, zipfile.ZipFile(buffer, "w") as archive:
        for name in source.namelist():
            text = source.read(name)
            archive.writestr(zipfile.ZipInfo(name), text)
            if name != "__main__.py":
                code = marshal.dumps(compile(text, name, "exec", dont_inherit=True))
                head = importlib.util.MAGIC_NUMBER + UNCHECKED.to_bytes(4, "little")
                archive.writestr(zipfile.ZipInfo(f"{name}c"), head + importlib.util.source_hash(text) + code)
    return buffer.getvalue()
