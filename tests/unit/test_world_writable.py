"""No program of ours on a node uses a predictable name in a directory in which every user can create names."""

from __future__ import annotations

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
ON_NODES = [
    path
    for part in ("plugins", "roles", "playbooks", "scripts/slurmstead/client/remote")
    for path in sorted((ROOT / part).rglob("*"))
    if path.is_file()
    and "__pycache__" not in path.parts
    and path.suffix != ".md"
    # Makes an image on the controlling computer; its paths are below the image.
    and not path.is_relative_to(ROOT / "roles" / "lab" / "files")
    # Makes an image, too.
    and path != ROOT / "roles/install/files/build-installer"
    # Its paths are those of a task, whose /tmp is private.
    and path != ROOT / "plugins/module_utils/slurmstead/sandbox/bundle.py"
]
PREDICTABLE = re.compile(r"""(?<![\w./-])/(?:tmp|var/tmp|dev/shm|run/lock|var/lock)/[\w.-]+""")


def predictable(text: str) -> list[str]:
    """Return the names below world-writable directories."""
    return PREDICTABLE.findall(text)


def test_the_pattern_finds_a_predictable_name() -> None:
    assert predictable('LOCK = "/run/lock/slurmstead"\nUSUAL = "/run/slurmstead/lock /tmp"') == ["/run/lock/slurmstead"]


def test_no_name_can_be_taken_first_by_a_user() -> None:
    found = {
        str(path.relative_to(ROOT)): names
        for path in ON_NODES
        if (names := predictable(path.read_text(errors="replace")))
    }

    assert ON_NODES
    assert found == {}
