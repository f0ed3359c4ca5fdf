"""Files of a site that verbs change: replaced as a whole, unless another program has changed them meanwhile."""

import os
import pathlib
import tempfile

from slurmstead.errors import InventoryError, UsageError
from slurmstead.paths import ROOT


def beside(inventory: pathlib.Path, name: str) -> pathlib.Path:
    """Return the path of a file in `files/` of a site.

    :raises InventoryError: there is no such site
    :raises UsageError: Ansible would use the project's `files/`, and not any more once the site has one
    """
    if not inventory.exists():
        raise InventoryError(f"{inventory} does not exist", "Name your site, or its hosts.yml, with -i.")
    own, shared = (inventory if inventory.is_dir() else inventory.parent) / "files", ROOT / "files"
    if not own.is_dir() and shared.is_dir() and any(path.name != "README.md" for path in shared.iterdir()):
        raise UsageError(
            f"there is no {own}, so `scripts/stead up` uses {shared}; a new directory would replace all of it",
            f"Run `cp -a {shared} {own.parent}/`, then this command again. Nothing was changed.",
        )
    return own / name


def read(path: pathlib.Path) -> str:
    """Return the text of a file; empty if it does not exist."""
    return path.read_bytes().decode("utf-8-sig") if path.exists() else ""


def replace(path: pathlib.Path, before: str, after: str) -> None:
    """Replace a file. A link stays one.

    :raises UsageError: it cannot be written, or is not `before` any more
    """
    path = path.resolve()
    try:
        path.parent.mkdir(exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        handle, staging = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(after.encode())
                file.flush()
                os.fchmod(handle, mode)
                os.fsync(handle)
            if read(path) != before:
                raise UsageError(f"{path} was changed meanwhile", "Nothing was written. Run the command again.")
            os.replace(staging, path)
        finally:
            pathlib.Path(staging).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", "Nothing was changed.") from None
