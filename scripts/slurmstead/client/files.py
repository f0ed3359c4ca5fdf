"""Selects the files of a folder to submit: all except those excluded by .gitignore and .steadignore, read as by git."""

import contextlib
import dataclasses
import errno
import hashlib
import os
import pathlib
import stat
from collections.abc import Iterable, Iterator

import pathspec

from slurmstead.client.remote.store import MARK
from slurmstead.errors import UsageError

IGNORE_FILES = (".steadignore", ".gitignore")
"""In each directory; the first overrides the second."""

RESULTS = "stead-results"

ALWAYS = pathspec.GitIgnoreSpec.from_lines([".git", "__pycache__/", f"/{RESULTS}/"])
"""Excluded unless an ignore file includes them with `!`."""


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
    """The ignore files from the repository's top, or else from the folder, down to a directory, the nearest first.

    `base` is the path of the folder in the repository; it is empty or ends in /, and so is the place of each file.
    """

    def __init__(self, base: str, specs: Iterable[tuple[str, pathspec.GitIgnoreSpec]]) -> None:
        self._base = base
        self._specs = tuple(specs)

    def below(self, directory: pathlib.Path, prefix: str) -> "_Rules":
        """Return these rules plus those of a directory of the folder."""
        own = [(self._base + prefix, _spec(path)) for name in IGNORE_FILES if (path := directory / name).is_file()]
        return _Rules(self._base, (*own, *self._specs)) if own else self

    def excludes(self, path: str) -> bool:
        """Return whether a path (a directory ends in /) is excluded; the nearest matching rule decides."""
        for place, spec in self._specs:
            include = spec.check_file((self._base + path)[len(place) :]).include
            if include is not None:
                return include
        return False


def _rules_above(root: pathlib.Path) -> _Rules:
    """Return the rules for a folder that are not in it: those of its repository, and ALWAYS.

    If git ignores the folder itself, the rules that match it do not count, because the user named it.
    """
    top = next((place for place in (root, *root.parents) if os.path.exists(place / ".git")), root)
    names = [f"{name}/" for name in root.relative_to(top).parts]
    *above, base = ("".join(names[:end]) for end in range(len(names) + 1))
    specs = []
    for place, name in [*((place, ".gitignore") for place in reversed(above)), ("", ".git/info/exclude")]:
        # git ignores a file that it cannot read.
        with contextlib.suppress(OSError):
            specs.append((place, _spec(top / place / name)))
    if any(_ignores(specs, place) for place in (*above[1:], base)):
        specs = [(place, _without(spec, base[len(place) :])) for place, spec in specs]
    return _Rules(base, (*specs, (base, ALWAYS)))


def _spec(path: pathlib.Path) -> pathspec.GitIgnoreSpec:
    lines = path.read_text(encoding="utf-8-sig", errors="surrogateescape").split("\n")
    return pathspec.GitIgnoreSpec.from_lines(filter(_is_pattern, lines))


def _ignores(specs: list[tuple[str, pathspec.GitIgnoreSpec]], directory: str) -> bool:
    """Return whether git ignores a directory none of whose parents it ignores: the last matching rule decides."""
    for place, spec in specs:
        for pattern in reversed(spec.patterns):
            # check_file is for files: after `*` it would exclude a directory that `!*/` includes.
            if directory.startswith(place) and pattern.match_file(directory[len(place) :]):
                return bool(pattern.include)
    return False


def _without(spec: pathspec.GitIgnoreSpec, path: str) -> pathspec.GitIgnoreSpec:
    """Return the rules that do not match a path."""
    return pathspec.GitIgnoreSpec(pattern for pattern in spec.patterns if pattern.match_file(path) is None)


def _is_pattern(line: str) -> bool:
    """Return whether a line is a pattern; git ignores invalid lines, such as a lone `!`."""
    try:
        pathspec.GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def collect(folder: pathlib.Path, always: Iterable[str] = ()) -> Folder:
    """Return the files of a folder to submit.

    :param always: files to submit even if an ignore file excludes them
    :raises UsageError: it is not a folder, or part of it cannot be read
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", "Name the folder with your program.")
    root = folder.resolve()
    warnings: list[str] = []
    files = []
    for path in {*_walk(root, "", _rules_above(root), warnings), *always}:
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
            if not os.access(os.path.join(root, path), os.R_OK):
                raise _unreadable(os.path.join(root, path))
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
        raise _unreadable(error.filename) from None
    empty = True
    for entry in entries:
        path = below + entry.name
        is_directory = entry.is_dir(follow_symlinks=False)
        if rules.excludes(f"{path}/" if is_directory else path):
            continue
        # A notebook may submit its user's home, which contains all runs.
        if is_directory and os.path.exists(os.path.join(entry.path, MARK)):
            continue
        if is_directory and (warning := _environment(entry)):
            warnings.append(f"{path!r} is {warning}")
            continue
        empty = False
        if is_directory:
            yield from _walk(root, f"{path}/", rules, warnings)
        else:
            yield path
    if empty and below:
        # Programs may write into a directory that exists, even if all its files are excluded.
        yield below


def _unreadable(path: str) -> UsageError:
    return UsageError(f"{path} cannot be read: {os.strerror(errno.EACCES)}", "Exclude it in .steadignore.")


def _environment(directory: "os.DirEntry[str]") -> str:
    """Return what to tell the user if a directory is an environment, which does not work on another computer."""
    if os.path.exists(os.path.join(directory.path, "pyvenv.cfg")):
        return "a virtual environment and is skipped: the cluster creates its own"
    if directory.name == ".pixi" or os.path.isdir(os.path.join(directory.path, "conda-meta")):
        return "a conda environment and is skipped: the cluster installs what requirements.txt lists"
    return ""


def _leaves(path: str, target: str) -> bool:
    """Whether a link's target is outside of the folder."""
    reached = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return os.path.isabs(target) or reached.split(os.sep)[0] == os.pardir
