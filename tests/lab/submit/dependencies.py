"""A project that needs packages, and the environments that the cluster makes for it."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

MAIN = """
import pathlib, random, sys
import alpha

print(alpha.double(21))
print(sys.prefix, file=sys.stderr)
pathlib.Path("out").mkdir()
pathlib.Path("out", "noise").write_bytes(random.Random(alpha.double(21)).randbytes(100_000))
"""


def wheel(directory: Path, name: str, source: str, requires: str = "") -> None:
    """Write a wheel of one module (binary distribution format, PEP 427)."""
    directory.mkdir(exist_ok=True)
    info = f"{name}-1.0.dist-info"
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    files = {
        f"{name}.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(directory / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(zipfile.ZipInfo(path), text)


def two_dependencies(cluster: Any, requirements: str = "alpha==1.0\n") -> Path:
    """Return a project that needs alpha, which needs beta, with both as wheels: no node needs an index."""
    toml = 'wheels = "wheels"\nmem = "250M"\n'
    folder = cluster.project("deps", {"main.py": MAIN, "requirements.txt": requirements, "stead.toml": toml})
    wheel(folder / "wheels", "alpha", "import beta\n\ndef double(x):\n    return beta.times(2, x)\n", "beta==1.0")
    wheel(folder / "wheels", "beta", "def times(a, b):\n    return a * b\n")
    assert isinstance(folder, Path)
    return folder


def environments(cluster: Any) -> set[str]:
    """Return what stands where environments do, but for their locks."""
    below = f"{cluster.variables['STEAD_DIRECTORY']}/environments"
    return {name for name in cluster.user(f"ls {below} 2>/dev/null || true").split() if not name.endswith(".lock")}
