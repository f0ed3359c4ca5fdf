"""Operations on the machines of a cluster: each is a playbook with its variables."""

import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from slurmstead.errors import UnreachableError, UsageError
from slurmstead.paths import PLAYBOOKS
from slurmstead.runner import playbook
from slurmstead.runner.events import Event, HostEnded
from slurmstead.runner.outcome import Result
from slurmstead.runner.progress import Progress, print_warnings
from slurmstead.wording import duration

Groups = Mapping[str, list[str]]
"""The hosts of the groups control, nfs_server and workers."""


class _Progress(Progress):
    """Progress that also prints the modules' messages about each node at once.

    :param note: a file in which a long task writes how far it is
    """

    def __init__(self, console: Console, title: str, note: pathlib.Path | None = None) -> None:
        super().__init__(console, title)
        self._note = note

    def note(self) -> str:
        return self._note.read_text() if self._note else ""

    def event(self, event: Event) -> None:
        super().event(event)
        if isinstance(event, HostEnded):
            for line in str(event.result.get("said") or "").splitlines():
                self._console.print(Text(f"    {line}"), soft_wrap=True)


def groups(inventory: pathlib.Path) -> Groups:
    """Return the hosts of the cluster's groups.

    :raises InventoryError: the inventory does not exist or cannot be read
    """
    return grouped(playbook.listed(inventory))


def grouped(listed: Mapping[str, Mapping[str, Any]]) -> Groups:
    """Return the hosts of the cluster's groups; `listed` is what `ansible-inventory --list` prints."""
    return {name: _members(listed, name) for name in ("control", "nfs_server", "workers")}


def _members(listed: Mapping[str, Mapping[str, list[str]]], group: str) -> list[str]:
    """Return the hosts of a group and of the groups in it, each once."""
    inner = (host for child in listed.get(group, {}).get("children", []) for host in _members(listed, child))
    return list(dict.fromkeys([*listed.get(group, {}).get("hosts", []), *inner]))


def workers_alone(found: Groups) -> list[str]:
    """Return the workers that have no other role: those that can be rebooted, added and removed."""
    return [name for name in found["workers"] if name not in (*found["control"], *found["nfs_server"])]


def check_names(names: Iterable[str], found: Groups, inventory: pathlib.Path) -> None:
    """Check that all names are workers without another role.

    :raises UsageError: a name is not
    """
    known = workers_alone(found)
    strangers = [name for name in names if name not in known]
    if strangers:
        kinds = {"control": "is the control node", "nfs_server": "is the NFS server"}
        roles = [words for group, words in kinds.items() if strangers[0] in found[group]]
        why = roles[0] if roles else f"is not a worker in {inventory}"
        raise UsageError(f"{strangers[0]} {why}", f"The workers are {', '.join(known) or 'none'}.")


def around(name: str, found: Groups) -> str:
    """Return the --limit for an operation on one node: the node, the control node and the NFS server."""
    return ",".join(dict.fromkeys([*found["control"], *found["nfs_server"], name]))


def reload_firewalls(
    out: Console,
    messages: Console,
    inventory: pathlib.Path,
    name: str,
    *,
    removed: bool = False,
    check: bool = False,
    plain: bool = False,
) -> None:
    """Let the firewalls of all other machines accept a node, or no longer accept it if it is removed.

    A machine that is off is reported and left out: the next `up` reaches it.

    :raises SteadError: the run failed
    """
    variables = {"removed_node": name if removed else None}
    try:
        run(
            *(out, messages, "reload-firewall.yml", inventory),
            limit=f"all:!{name}",
            extra_vars=variables,
            check=check,
            plain=plain,
        )
    except UnreachableError as error:
        messages.print(Text(f"{error}; their firewalls change with the next `scripts/stead up`"), soft_wrap=True)


def run(
    out: Console,
    messages: Console,
    name: str,
    inventory: pathlib.Path,
    *,
    limit: str | None = None,
    extra_vars: Mapping[str, str | None] | None = None,
    check: bool = False,
    plain: bool = False,
    report: Callable[[Result], None] | None = None,
    note: pathlib.Path | None = None,
) -> Result:
    """Run an operation's playbook and print warnings, duration and changes; None values in `extra_vars` are left out.

    :param report: prints more about the run, even if the run failed
    :param note: a file in which a task writes how far it is
    :raises SteadError: the run failed
    """
    given = {key: value for key, value in (extra_vars or {}).items() if value is not None}
    path = PLAYBOOKS / name
    with _Progress(messages, path.name, note) as progress:
        result = playbook.run(
            path,
            inventory.absolute(),
            limit=limit,
            extra_vars=given,
            check=check,
            plain=plain,
            observer=progress,
        )
    print_warnings(messages, result)
    if report:
        report(result)
    if result.error:
        raise result.error
    changed = [host for host, summary in sorted(result.hosts.items()) if summary.changed]
    out.print(f"{path.name}: done in {duration(result.seconds)}, changed: {', '.join(changed) or 'nothing'}")
    return result
