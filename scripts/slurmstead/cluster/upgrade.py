"""What `stead upgrade` says of a run beyond what all operations say."""

from rich.console import Console
from rich.text import Text

from slurmstead.cluster import backup
from slurmstead.runner.outcome import Result


def print_report(out: Console, messages: Console, result: Result, *, check: bool) -> None:
    """Name the machines that a run did not come to, and the archive that it made, unless it only looked."""
    waiting = not_upgraded(result)
    if waiting:
        messages.print(Text(f"Not upgraded: {', '.join(waiting)}. The same command goes on."), soft_wrap=True)
    archive = backup.parse(result.results_of("debug"))
    if archive and not check:
        # Whoever reads of a failure may want it.
        backup.print_report(out, archive)


def not_upgraded(result: Result) -> list[str]:
    """Return the hosts that package_upgrade has plans for and did not come to, if the run ended early."""
    ended = [end for end in result.ended if end.task.action.rpartition(".")[2] == "package_upgrade" and result.error]
    planned = {end.host for end in ended if end.result.get("packages") and "restarted" not in end.result}
    return sorted(planned - {end.host for end in ended if "restarted" in end.result})
