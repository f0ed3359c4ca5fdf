"""The part of `stead upgrade`'s report that other operations do not have."""

from rich.console import Console
from rich.text import Text

from slurmstead.cluster import backup
from slurmstead.runner.outcome import Result


def print_report(out: Console, messages: Console, result: Result, *, check: bool) -> None:
    """Print the machines that were not upgraded and, unless `check`, the backup that was made."""
    waiting = not_upgraded(result)
    if waiting:
        messages.print(
            Text(f"Not upgraded: {', '.join(waiting)}. Run the same command again to continue."), soft_wrap=True
        )
    archive = backup.parse(result.results_of("debug"))
    if archive and not check:
        # After a failure the operator may need the backup.
        backup.print_report(out, archive)


def not_upgraded(result: Result) -> list[str]:
    """Return the hosts that package_upgrade planned to upgrade and did not, if the run failed."""
    ended = [end for end in result.ended if end.task.action.rpartition(".")[2] == "package_upgrade" and result.error]
    planned = {end.host for end in ended if end.result.get("packages") and "restarted" not in end.result}
    return sorted(planned - {end.host for end in ended if "restarted" in end.result})
