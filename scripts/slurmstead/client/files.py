"""Selects the files of a folder to submit: all except those excluded by .gitignore and .steadignore, read as by git."""

import dataclasses
import hashlib
import os
import pathlib
import stat
from collections.abc import Iterator

import pathspec

from slurmstead.errors import UsageError

IGNORE_FILES = (".steadignore", ".gitignore")
"""In each directory; the first overrides the second."""

RESULTS = "stead-results"

ALWAYS = pathspec.GitIgnoreSpec.from_lines([".git", "__pycache__/", f"/{RESULTS}/"])
"""Excluded unless an ignore file includes them with `!`."""

ENVIRONMENT_MARK = "pyvenv.cfg"
"""A directory with this file is a virtual environment, which does not work on another computer."""


@dataclasses.dataclass(frozen=True)
class File:
    """A file, a link, or an empty directory, whose path ends in /.

    `size` is in bytes, None if it is not a file. `changed` is its modification time in nanoseconds.
    """

    path: str
    size: int | None
    changed: int
    mode: int


@dataclasses.dataclass(frozen=True)
class Folder:
    """The files of a folder to submit, by path, and warnings for the user."""

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
        """Return these rules plus those of a directory."""
        own = []
        for name in IGNORE_FILES:
            path = directory / name
            if path.is_file():
                lines = path.read_text(errors="surrogateescape").splitlines()
                own.append((prefix, pathspec.GitIgnoreSpec.from_lines(filter(_is_pattern, lines))))
        return _Rules((*own, *self._specs)) if own else self

    def excludes(self, path: str) -> bool:
        """Return whether a path (a directory ends in /) is excluded; the nearest matching rule decides."""
        for prefix, spec in self._specs:
            include = spec.check_file(path[len(prefix) :]).include
            if include is not None:
                return include
        return False


def _is_pattern(line: str) -> bool:
    """Return whether a line is a pattern; git ignores invalid lines, such as a lone `!`."""
    try:
        pathspec.GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def collect(folder: pathlib.Path) -> Folder:
    """Return the files of a folder to submit.

    :raises UsageError: it is not a folder, or part of it cannot be read
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", "Name the folder with your program.")
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
            # It was removed after its directory was read, as temporary files are.
            continue
        if stat.S_ISLNK(seen.st_mode):
            target = os.readlink(os.path.join(root, path))
            if _leaves(path, target):
                warnings.append(
                    f"{path!r} links to {target!r}, outside the folder; on the cluster it links to that path there"
                )
            files.append(File(path, None, seen.st_mtime_ns, 0))
        elif stat.S_ISREG(seen.st_mode):
            files.append(File(path, seen.st_size, seen.st_mtime_ns, stat.S_IMODE(seen.st_mode)))
        else:
            warnings.append(f"{path!r} is not a regular file and is skipped")
    return Folder(root, tuple(sorted(files, key=lambda file: file.path)), tuple(warnings))


def _walk(root: pathlib.Path, below: str, rules: _Rules, warnings: list[str]) -> Iterator[str]:
    directory = root / below
    try:
        rules = rules.below(directory, below)
        entries = list(os.scandir(directory))
    except (FileNotFoundError, NotADirectoryError):
        # It was removed, as in collect.
        return
    except PermissionError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}", "Exclude it in .steadignore.") from None
    empty = True
    for entry in entries:
        path = below + entry.name
        is_directory = entry.is_dir(follow_symlinks=False)
        if rules.excludes(f"{path}/" if is_directory else path):
            continue
        if is_directory and os.path.exists(os.path.join(entry.path, ENVIRONMENT_MARK)):
            warnings.append(f"{path!r} is a virtual environment and is skipped: the cluster creates its own")
            continue
        empty = False
        if is_directory:
            yield from _walk(root, f"{path}/", rules, warnings)
        else:
            yield path
    if empty and below:
        # Programs may write into a directory that exists, even if all its files are excluded.
        yield below


def _leaves(path: str, target: str) -> bool:
    """Whether a link's target is outside of the folder."""
    reached = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return os.path.isabs(target) or reached.split(os.sep)[0] == os.pardir
