"""Makes a wheel of this package, with which a notebook or a laptop submits jobs without Ansible.

python3 -P scripts/slurmstead/client/wheel.py DIRECTORY
"""

import base64
import hashlib
import io
import pathlib
import sys
import zipfile
from collections.abc import Mapping

NAME = "slurmstead-client"
FILES = ("__init__.py", "errors.py", "wording.py")
"""What the client uses of the package slurmstead."""

NEEDS = ("pathspec>=0.12",)
PYTHON = ">=3.11"
WHEEL = "Wheel-Version: 1.0\nGenerator: slurmstead\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


PACKAGE = pathlib.Path(__file__).resolve().parents[1]


def sources(package: pathlib.Path = PACKAGE) -> dict[str, bytes]:
    """Return the files of the package slurmstead that the client consists of, by their path in the wheel."""
    paths = [package / name for name in FILES] + sorted((package / "client").rglob("*.py"))
    return {path.relative_to(package.parent).as_posix(): path.read_bytes() for path in paths}


def version(files: Mapping[str, bytes], release: str) -> str:
    """Return the version: another text, another version, so that pip replaces it (version specifiers, "Local")."""
    digest = hashlib.sha256()
    for path, content in sorted(files.items()):
        digest.update(f"{path} {len(content)}\n".encode() + content)
    return f"{release}+{digest.hexdigest()[:12]}"


def build(release: str = "0.1.0") -> tuple[str, bytes]:
    """Return the name and the content of the wheel; the same sources give the same bytes."""
    files = sources()
    number = version(files, release)
    stem = f"{NAME.replace('-', '_')}-{number}"
    info = f"{stem}.dist-info"
    needs = "".join(f"Requires-Dist: {one}\n" for one in NEEDS)
    summary = "Summary: Submits work to a Slurm cluster of Slurmstead and fetches its results\n"
    metadata = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {number}\n{summary}Requires-Python: {PYTHON}\n{needs}"
    files |= {f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": WHEEL.encode()}
    record = "".join(f"{path},sha256={_digest(content)},{len(content)}\n" for path, content in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path), content, zipfile.ZIP_DEFLATED)
    return f"{stem}-py3-none-any.whl", buffer.getvalue()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def main() -> None:
    """Write the wheel into a directory, where it replaces older ones, and print its path."""
    if len(sys.argv) != 2:
        sys.exit("Usage: wheel.py DIRECTORY")
    name, content = build()
    path = pathlib.Path(sys.argv[1]) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    for older in path.parent.glob(f"{NAME.replace('-', '_')}-*.whl"):
        older.unlink()
    path.write_bytes(content)
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
