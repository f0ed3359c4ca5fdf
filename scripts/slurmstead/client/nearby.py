"""Copies files on one file system tree, for a client that runs on the cluster; a worker need not have rsync."""

import errno
import os
import pathlib
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Sequence

from slurmstead.errors import IncompleteCopy, SteadError, TaskError, UsageError

FULL = (errno.ENOSPC, errno.EDQUOT)

PASSED_OVER = (errno.ENOENT, errno.EACCES)
"""Errors of one file, after which the others are still copied, as by rsync."""


def copy(
    source: pathlib.Path,
    files: Iterable[str],
    target: pathlib.Path,
    like: Sequence[pathlib.Path],
    report: Callable[[float], None],
) -> None:
    """Copy files, links and directories of a directory to another; files unchanged from one of `like` are hard links.

    A path that ends in / is a directory, of which only itself is copied. Each file appears as a whole.

    :raises SteadError: not everything was copied; the next attempt continues
    """
    wanted = list(files)
    errors: list[OSError] = []
    for number, path in enumerate(wanted, start=1):
        try:
            _remove_links(target, path)
            _one(source / path, target / path, [directory / path for directory in like])
        except OSError as error:
            errors.append(error)
            if error.errno not in PASSED_OVER:
                break
        report(number / len(wanted))
    if errors:
        raise failure(errors[-1])
    report(1.0)


def failure(error: OSError) -> SteadError:
    """Return the exception for an error of the operating system."""
    if error.errno in FULL:
        return TaskError(f"the disk is full: {error}", "Free some space there, then repeat the command.")
    kind = IncompleteCopy if error.errno in PASSED_OVER else UsageError
    return kind(f"not every file could be copied: {error}", "Exclude it in .steadignore, or repeat the command.")


def _remove_links(target: pathlib.Path, path: str) -> None:
    """Remove links of an earlier attempt where directories must be: a copy would follow them and change other files."""
    below = [*reversed(pathlib.PurePath(path).parents), pathlib.PurePath(path)]
    for directory in below[1:] if path.endswith("/") else below[1:-1]:
        if (target / directory).is_symlink():
            (target / directory).unlink()


def _one(source: pathlib.Path, target: pathlib.Path, like: Iterable[pathlib.Path]) -> None:
    status = source.lstat()
    if stat.S_ISDIR(status.st_mode):
        target.mkdir(parents=True, exist_ok=True)
        return
    if os.path.lexists(target):
        if _same(target, status):
            return
        target.unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    for known in like:
        if stat.S_ISREG(status.st_mode) and os.path.lexists(known) and _same(known, status):
            os.link(known, target, follow_symlinks=False)
            return
    with tempfile.TemporaryDirectory(prefix=".stead-", dir=target.parent) as place:
        new = pathlib.Path(place) / "new"
        shutil.copy2(source, new, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            new.chmod(stat.S_IMODE(status.st_mode) | stat.S_IRUSR | stat.S_IWUSR)
        new.replace(target)


def _same(path: pathlib.Path, status: os.stat_result) -> bool:
    """Whether a path is the same regular file by size, time and mode, as for rsync."""
    seen = path.lstat()
    wanted = stat.S_IMODE(status.st_mode) | stat.S_IRUSR | stat.S_IWUSR
    return (
        stat.S_ISREG(seen.st_mode)
        and stat.S_ISREG(status.st_mode)
        and (seen.st_size, seen.st_mtime_ns, stat.S_IMODE(seen.st_mode)) == (status.st_size, status.st_mtime_ns, wanted)
    )
