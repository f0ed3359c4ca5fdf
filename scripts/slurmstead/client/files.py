"""Which files of a folder are submitted: all but those that .gitignore and .steadignore leave out, read as git does."""

import dataclasses
import hashlib
import os
import pathlib
import stat
from collections.abc import Iterator

import pathspec

from slurmstead.errors import UsageError

IGNORE_FILES = (".steadignore", ".gitignore")
"""In each directory; the first says more than the second."""

RESULTS = "stead-results"

ALWAYS = pathspec.GitIgnoreSpec.from_lines([".git", "__pycache__/", f"/{RESULTS}/"])
"""Left out unless an ignore file says `!` to it."""

ENVIRONMENT_MARK = "pyvenv.cfg"
"""A directory that holds this is a virtual environment: of no use on another computer."""


@dataclasses.dataclass(frozen=True)
class File:
    """A file, a link, or a directory without any, whose path ends in /.

    `size` is in bytes, None of what is no file. `changed` is its time of change in nanoseconds.
    """

    path: str
    size: int | None
    changed: int
    mode: int


@dataclasses.dataclass(frozen=True)
class Folder:
    """What of a folder is submitted, by path; and what a person should know of it."""

    path: pathlib.Path
    files: tuple[File, ...]
    warnings: tuple[str, ...]

    @property
    def size(self) -> int:
        """The sum of the sizes, in bytes."""
        return sum(file.size or 0 for file in self.files)

    @property
    def fingerprint(self) -> str:
        """A text that changes when a file does."""
        digest = hashlib.sha256()
        for file in self.files:
            digest.update(repr(dataclasses.astuple(file)).encode(errors="surrogateescape"))
        return digest.hexdigest()


class _Rules:
    """The ignore files from the folder down to a directory."""

    def __init__(self, specs: tuple[tuple[str, pathspec.GitIgnoreSpec], ...] = (("", ALWAYS),)) -> None:
        self._specs = specs

    def below(self, directory: pathlib.Path, prefix: str) -> "_Rules":
        """Return the rules with those that stand in a directory."""
        own = []
        for name in IGNORE_FILES:
            path = directory / name
            if path.is_file():
                lines = path.read_text(errors="surrogateescape").splitlines()
                own.append((prefix, pathspec.GitIgnoreSpec.from_lines(filter(_is_pattern, lines))))
        return _Rules((*own, *self._specs)) if own else self

    def leave_out(self, path: str) -> bool:
        """Whether a path, with / behind a directory, is left out: the nearest rule that knows it decides."""
        for prefix, spec in self._specs:
            include = spec.check_file(path[len(prefix) :]).include
            if include is not None:
                return include
        return False


def _is_pattern(line: str) -> bool:
    """Whether a line means something; one that does not, such as a lone `!`, is nothing to git."""
    try:
        pathspec.GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def collect(folder: pathlib.Path) -> Folder:
    """Return what of a folder is submitted.

    :raises UsageError: it is no folder, or part of it cannot be read
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", "Name the folder that holds your program.")
    root = folder.resolve()
    warnings: list[str] = []
    files = []
    for path in _walk(root, "", _Rules(), warnings):
        if path.endswith("/"):
            files.append(File(path, None, 0, 0))
            continue
        try:
            seen = os.lstat(os.path.join(root, path))
        except FileNotFoundError:
            # It went since its directory was read, as temporary files do.
            continue
        if stat.S_ISLNK(seen.st_mode):
            target = os.readlink(os.path.join(root, path))
            if _leaves(path, target):
                warnings.append(f"{path!r} is a link out of the folder, and stays one: to {target!r} on the cluster")
            files.append(File(path, None, seen.st_mtime_ns, 0))
        elif stat.S_ISREG(seen.st_mode):
            files.append(File(path, seen.st_size, seen.st_mtime_ns, stat.S_IMODE(seen.st_mode)))
        else:
            warnings.append(f"{path!r} is no file, and is left out")
    return Folder(root, tuple(sorted(files, key=lambda file: file.path)), tuple(warnings))


def _walk(root: pathlib.Path, below: str, rules: _Rules, warnings: list[str]) -> Iterator[str]:
    directory = root / below
    try:
        rules = rules.below(directory, below)
        entries = list(os.scandir(directory))
    except (FileNotFoundError, NotADirectoryError):
        # It went, as in collect.
        return
    except PermissionError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}", "Leave it out: .steadignore") from None
    empty = True
    for entry in entries:
        path = below + entry.name
        is_directory = entry.is_dir(follow_symlinks=False)
        if rules.leave_out(f"{path}/" if is_directory else path):
            continue
        if is_directory and os.path.exists(os.path.join(entry.path, ENVIRONMENT_MARK)):
            warnings.append(f"{path!r} is a virtual environment, and is left out: the cluster makes its own")
            continue
        empty = False
        if is_directory:
            yield from _walk(root, f"{path}/", rules, warnings)
        else:
            yield path
    if empty and below:
        # Programs write into a directory that is there, whatever of it is left out.
        yield below


def _leaves(path: str, target: str) -> bool:
    """Whether a link's target is outside of the folder."""
    reached = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return os.path.isabs(target) or reached.split(os.sep)[0] == os.pardir
