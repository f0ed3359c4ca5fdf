"""Finds the site of a command: `-i`, else STEAD_SITE, else the current directory or the nearest one above it."""

import os
import pathlib
import stat

from slurmstead.errors import InventoryError

MARKER = ".slurmstead"
"""The file that marks a directory as a site. It has a unique name, because any Ansible project can have a hosts.yml."""

HOSTS = "hosts.yml"
VARIABLE = "STEAD_SITE"
WAYS = "Name your site with -i DIR or STEAD_SITE, or work inside it. To make one: scripts/stead init DIR"


def inventory(path: pathlib.Path) -> pathlib.Path:
    """Return the inventory at a path: for a site its hosts.yml, otherwise the path itself.

    Ansible would read every file of a directory as an inventory, but a site may hold notes and scripts too.

    :raises InventoryError: the path is a site without a hosts.yml
    """
    if not (path / MARKER).is_file():
        return path
    if not (path / HOSTS).is_file():
        raise InventoryError(f"the site {path} has no {HOSTS}", f"Bring it back, for example: git checkout {HOSTS}")
    return path / HOSTS


def find() -> pathlib.Path:
    """Return the site of a command without `-i`.

    :raises InventoryError: no site was found, or another user may have created it
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not pathlib.Path(named).exists():
            raise InventoryError(f"{VARIABLE} is {named!r}, which does not exist", f"Correct it, or unset it. {WAYS}.")
        return pathlib.Path(named)
    try:
        here = pathlib.Path.cwd()
    except FileNotFoundError:
        raise InventoryError("the current directory was removed, so no site is in it", f"{WAYS}.") from None
    for directory in (here, *here.parents):
        if (directory / MARKER).is_file():
            return _trusted(directory)
    raise InventoryError(f"no site: neither {here} nor a directory above it is one", f"{WAYS}.")


def _trusted(site: pathlib.Path) -> pathlib.Path:
    """Refuse a site that another user has created above the current directory: an inventory can run any program.

    A link is refused because the owner of its target says nothing about the user who created it.
    """
    for path in (site, site / MARKER, site / HOSTS):
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        problem = None
        if status.st_uid not in (os.geteuid(), 0):
            problem = f"belongs to another user (uid {status.st_uid})"
        elif stat.S_ISLNK(status.st_mode):
            problem = "is a symbolic link"
        if problem:
            raise InventoryError(f"the site {site} is not used: {path} {problem}", f"If you trust it: -i {site}")
    return site
