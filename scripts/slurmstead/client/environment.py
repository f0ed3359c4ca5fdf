"""Finds a program's requirements in its folder and writes them as one text for pip on the nodes."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tomllib
from typing import Any

from slurmstead.client.remote.manifest import checksum
from slurmstead.client.settings import Settings
from slurmstead.errors import UsageError

CANDIDATES = ("pylock.toml", "uv.lock", "requirements.txt", "pyproject.toml")
"""The first one that exists is used: a lock is more exact than a list of requirements."""

INCLUDE = re.compile(r"^(-r|--requirement|-c|--constraint)(\s*=\s*|\s+|(?<=^-[rc]))(?P<path>\S+)\s*(#.*)?$")
CONTINUED = re.compile(r"^(?:(?!.*(?:^|\s)#).*\\\n)+.*", re.MULTILINE)
"""Lines joined by a \\ at the end; a line with a comment is never continued (pip, "Requirements File Format")."""
COMMENT = re.compile(r"(^|\s+)#.*$")
LOCAL = re.compile(r"^(-e\b|--editable\b|\.|/|file:)|@\s*(file:|\.|/)")


def find(folder: pathlib.Path, settings: Settings) -> dict[str, Any] | None:
    """Return the packages to install, or None without any.

    :returns: `requirements` as text; `wheels`, a directory in the folder, with `wheels_digest`; `index`
    :raises UsageError: a named file is missing, or lists packages that cannot be installed on nodes
    """
    name = settings.requirements or next((name for name in CANDIDATES if (folder / name).is_file()), None)
    if name is None:
        return None
    if not (folder / name).is_file():
        raise UsageError(f"{folder} has no {name}", "Set `requirements` to a file in the folder.")
    text = read(folder, name)
    if not any(line and not line.startswith(("#", "-")) for line in map(str.strip, text.splitlines())):
        return None
    given = _wheels(folder, settings.wheels) if settings.wheels else {}
    return {"requirements": text, "file": name, "index": settings.index, **given}


def read(folder: pathlib.Path, name: str) -> str:
    """Return requirements as one text in pip's format.

    :raises UsageError: they cannot be converted, or are outside of the folder
    """
    path = folder / name
    _check_inside(folder, path)
    if path.name == "uv.lock":
        return _export(path)
    if path.suffix != ".toml":
        return "\n".join(_lines(folder, path.resolve(), ())) + "\n"
    try:
        data = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    if path.name == "pyproject.toml":
        return from_project(data, name)
    return from_lock(data, name)


def _check_inside(folder: pathlib.Path, path: pathlib.Path) -> None:
    """Refuse a file outside of the folder: the folder may be another user's, and its requirements are sent away."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise UsageError(
            f"the requirements of {folder} are in {path.resolve()}, which is outside of it", "Copy them into it."
        )


def _lines(folder: pathlib.Path, path: pathlib.Path, above: tuple[pathlib.Path, ...]) -> list[str]:
    """Return the lines of a requirements file, with those of the files that it includes in their place."""
    if path in above:
        return []
    _check_inside(folder, path)
    if not path.is_file():
        raise UsageError(f"{above[-1] if above else path} includes {path.name}, which does not exist")
    lines = []
    for line in CONTINUED.sub(_joined, _text(path)).splitlines():
        include = INCLUDE.match(line.strip())
        if include and not re.match(r"\w+://", include["path"]) and line.strip().startswith(("-r", "--requirement")):
            lines += _lines(folder, (path.parent / include["path"]).resolve(), (*above, path))
        elif include:
            raise UsageError(f"{path}: {line.strip()!r} cannot be used on nodes", "Create a lock: uv pip compile.")
        else:
            lines.append(_not_local(line.rstrip(), str(path)))
    return lines


def _joined(lines: re.Match[str]) -> str:
    return re.sub(r"[ \t]*\\\n[ \t]*", " ", lines[0])


def _not_local(line: str, where: str) -> str:
    if LOCAL.search(COMMENT.sub("", line).strip()):
        raise UsageError(
            f"{where}: {line.strip()!r} is a package on this computer",
            "Code in the folder needs no entry; build a wheel of any other code and set `wheels`.",
        )
    return line


def _text(path: pathlib.Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error}", "Save it as UTF-8.") from None


def _export(path: pathlib.Path) -> str:
    """Return uv's export of its lock: only uv knows which package is for which platform."""
    uv = shutil.which("uv")
    if uv is None:
        raise UsageError(
            f"only uv can read {path}, and this computer does not have it",
            "Install uv, or use a requirements.txt: --requirements requirements.txt",
        )
    command = [uv, "export", "--frozen", "--no-dev", "--no-emit-project", "--no-header", "--quiet"]
    done = subprocess.run(
        command, cwd=path.parent, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise UsageError(f"uv cannot export {path}: {done.stderr.strip()}")
    return done.stdout


def from_project(data: dict[str, Any], name: str) -> str:
    """Return the dependencies of a pyproject.toml; the project itself runs from its folder.

    :raises UsageError: they are elsewhere in the file, or not a list of strings
    """
    project = data.get("project", {})
    listed = project.get("dependencies", []) if isinstance(project, dict) else project
    if not isinstance(listed, list) or not all(isinstance(line, str) for line in listed):
        raise UsageError(f"{name}: expected the project's dependencies to be a list of strings, seen {listed!r}")
    if "dependencies" not in project and _table(data, "tool", "poetry", "dependencies").keys() - {"python"}:
        raise UsageError(
            f"{name} has its dependencies in a table that only Poetry reads",
            "Run: poetry export --output requirements.txt. Or move them to [project].",
        )
    if "dependencies" in project.get("dynamic", []):
        raise UsageError(f"{name} declares its dependencies as dynamic", "List them in requirements.txt.")
    return "".join(f"{_not_local(line, name)}\n" for line in listed)


def _table(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return a table within tables; an empty one if it does not exist."""
    found: Any = data
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def from_lock(data: dict[str, Any], name: str) -> str:
    """Return a pylock.toml (PEP 751) in pip's older format: each package with its version, marker and hashes.

    >>> from_lock({"lock-version": "1.0", "packages": [
    ...     {"name": "rich", "version": "13.0", "marker": "os_name == 'posix'",
    ...      "wheels": [{"hashes": {"sha256": "ab"}}], "sdist": {"hashes": {"sha256": "cd"}}}]}, "pylock.toml")
    "rich==13.0 ; os_name == 'posix' --hash=sha256:ab --hash=sha256:cd\\n"

    :raises UsageError: it has another version, or a package has no version or hash
    """
    if not str(data.get("lock-version", "")).startswith("1."):
        raise UsageError(f"{name}: expected lock-version 1.x, seen {data.get('lock-version')!r}")
    lines = []
    for package in data.get("packages", []):
        archives = [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]
        digests = [archive.get("hashes", {}).get("sha256") for archive in archives]
        hashes = [f"--hash=sha256:{digest}" for digest in digests if digest]
        if "name" not in package:
            raise UsageError(f"{name}: expected a name in each of its packages, seen {package!r}")
        if "version" not in package or not hashes:
            raise UsageError(
                f"{name}: {package.get('name')} has no version and SHA-256 in an index",
                "Build a wheel of it and set `wheels`.",
            )
        marker = f" ; {package['marker']}" if package.get("marker") else ""
        lines.append(" ".join([f"{package['name']}=={package['version']}{marker}", *hashes]))
    return "".join(f"{line}\n" for line in lines)


def wheels(folder: pathlib.Path, name: str) -> list[str]:
    """Return the paths in a folder of the wheels in its directory `name`; none if that is outside."""
    root, place = folder.resolve(), (folder / name).resolve()
    return [str(path.relative_to(root)) for path in sorted(place.glob("*.whl"))] if place.is_relative_to(root) else []


def _wheels(folder: pathlib.Path, name: str) -> dict[str, str]:
    found = wheels(folder, name)
    if not found:
        raise UsageError(f"expected wheels in {folder / name}, found none", "Fill it: pip download --dest DIRECTORY …")
    digest = hashlib.sha256()
    for path in found:
        digest.update(os.path.basename(path).encode() + bytes.fromhex(checksum(folder / path)))
    return {"wheels": os.path.dirname(found[0]) or os.curdir, "wheels_digest": digest.hexdigest()}
