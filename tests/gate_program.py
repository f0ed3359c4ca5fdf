"""gate_main.py, with all that it imports, as the text of one program, which needs nothing but Python where it runs."""

from __future__ import annotations

import base64
import io
import pathlib
import re
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
UTILITIES = ROOT / "plugins" / "module_utils" / "slurmstead"
MAIN = (ROOT / "tests" / "gate_main.py", ROOT / "tests" / "mistakes.py")

IMPORT = re.compile(r"^from ansible\.module_utils\.slurmstead(?:\.(\w+))? import ([\w, ]+)$", re.MULTILINE)

START = """
import base64, runpy, sys, tempfile
with tempfile.NamedTemporaryFile(suffix=".zip") as archive:
    archive.write(base64.b64decode({encoded!r}))
    archive.flush()
    sys.path.insert(0, archive.name)
    runpy.run_module("gate_main", run_name="__main__")
"""


def imported(path: pathlib.Path) -> set[pathlib.Path]:
    """Return the files of module_utils that a file imports, and that these import."""
    found: set[pathlib.Path] = set()
    new = {path}
    while new:
        names = {name for file in new for name in _names(file.read_text())}
        new = {UTILITIES / f"{name}.py" for name in names} - found
        found |= new
    return found


def _names(text: str) -> list[str]:
    return [name for module, names in IMPORT.findall(text) for name in ([module] if module else names.split(", "))]


def program() -> str:
    """Return the program. It fits into one argument of a command, which is 128 KiB (execve(2))."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(imported(MAIN[0])):
            archive.write(path, f"ansible/module_utils/slurmstead/{path.name}")
        for package in ("ansible", "ansible/module_utils", "ansible/module_utils/slurmstead"):
            archive.writestr(f"{package}/__init__.py", "")
        for path in MAIN:
            archive.write(path, path.name)
    return START.format(encoded=base64.b64encode(held.getvalue()).decode())
