# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Files of the controlling computer that an action plugin hands to the module on a machine."""

from __future__ import annotations

import pathlib
from typing import Any


def handed(action: Any, path: pathlib.Path) -> str:
    """Copy a file to the machine of an action plugin; return the path of the copy, in its temporary directory."""
    shell = action._connection._shell
    if not shell.tmpdir:
        action._make_tmp_path()
    copy: str = action._transfer_file(str(path), shell.join_path(shell.tmpdir, path.name))
    action._fixup_perms2((shell.tmpdir, copy))
    return copy
