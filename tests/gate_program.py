"""gate_main.py, with all that it imports, as the text of one program, which needs nothing but Python where it runs."""

from __future__ import annotations

import base64
import io
import pathlib
import zipfile

from ansible.module_utils.slurmstead.reach import remote_call

HERE = pathlib.Path(__file__).resolve().parent
MAIN = (HERE / "gate_main.py", HERE / "mistakes.py")

START = """
import base64, runpy, sys, tempfile
with tempfile.NamedTemporaryFile(suffix=".zip") as archive:
    archive.write(base64.b64decode({encoded!r}))
    archive.flush()
    sys.path.insert(0, archive.name)
    runpy.run_module("gate_main", run_name="__main__")
"""


def program() -> str:
    """Return the program. It fits into one argument of a command, which is 128 KiB (execve(2))."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (text, is_package) in remote_call.sources(remote_call.imports("", MAIN[0].read_text())).items():
            archive.writestr(name.replace(".", "/") + ("/__init__.py" if is_package else ".py"), text)
        for path in MAIN:
            archive.write(path, path.name)
    return START.format(encoded=base64.b64encode(held.getvalue()).decode())
