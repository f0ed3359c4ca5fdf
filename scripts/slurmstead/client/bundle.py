"""The program for the cluster, as one file that any python3 there can run."""

import functools
import io
import pathlib
import zipfile

REMOTE = pathlib.Path(__file__).parent / "remote"

PACKAGES = ("slurmstead", "slurmstead/client")
"""Empty on the cluster: here they contain the client."""

ON_NODES = "import sys\nfrom slurmstead.client.remote.job import main\nsys.exit(main(sys.argv[1:]))\n"

ON_HEAD = """
import json, os, sys
stdin = sys.stdin.buffer
request = json.loads(stdin.readline())
program = stdin.read(request.pop("program_bytes"))
file = open(os.memfd_create("stead"), "wb")
file.write(program)
file.flush()
sys.path.insert(0, f"/proc/self/fd/{file.fileno()}")
from slurmstead.client.remote import main
sys.exit(main.serve(request, program, sys.stdout.buffer))
"""
"""The command line for the head node's python3: it reads a request and the program, and answers.

The program stays in memory: when the disk is full, a request must still be able to report that, or cancel the job that
fills it.
"""


@functools.cache
def program() -> bytes:
    """Return remote/ as a zip archive that Python runs; the same sources give the same bytes."""
    sources = {f"{package}/__init__.py": "" for package in PACKAGES}
    sources |= {f"slurmstead/client/remote/{path.name}": path.read_text() for path in sorted(REMOTE.glob("*.py"))}
    sources["__main__.py"] = ON_NODES
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in sources.items():
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
