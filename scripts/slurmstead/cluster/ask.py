"""Questions that a playbook answers with the result of one of its modules."""

import pathlib
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from slurmstead.errors import SteadError
from slurmstead.paths import PLAYBOOKS
from slurmstead.runner import playbook
from slurmstead.runner.progress import Progress


def ask(
    console: Console,
    name: str,
    inventory: pathlib.Path,
    module: str,
    key: str,
    *,
    unasked: SteadError,
    plain: bool,
    extra_vars: Mapping[str, str] | None = None,
    progress: type[Progress] = Progress,
) -> Mapping[str, Any]:
    """Run a playbook, with progress on `console`, and return what a module of it returned.

    :param key: what the module returns when it has answered
    :param unasked: what is wrong if the run succeeded without an answer
    :param progress: how the run is shown
    :raises SteadError: there is no answer
    """
    with progress(console, name) as shown:
        result = playbook.run(
            PLAYBOOKS / name, inventory.absolute(), extra_vars=extra_vars or {}, plain=plain, observer=shown
        )
    if found := result.answer(module, key):
        return found
    raise result.error or unasked
