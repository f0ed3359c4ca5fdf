"""The verbs of scripts/stead that work with jobs: submit, jobs, logs, fetch, cancel, rerun."""

import pathlib
from typing import Annotated, Any

import typer
from rich.console import Console

Project = Annotated[
    pathlib.Path, typer.Argument(help="The folder that holds the program.", metavar="FOLDER", show_default=False)
]
# An unescaped [user@] would be markup of rich.
HeadNode = Annotated[str | None, typer.Option("--head", help=r"The head node: \[user@]host.", metavar="HOST")]
SshConfig = Annotated[str | None, typer.Option("--ssh-config", help="Another configuration for ssh.", metavar="FILE")]
Directory = Annotated[
    str | None, typer.Option("--directory", help="Where runs stand on the cluster.", show_default="~/slurmstead")
]
Identifier = Annotated[
    str | None, typer.Option("--id", help="Name of the run; a repeated call with it submits nothing.")
]
OneJob = Annotated[str, typer.Argument(help="The number of a job, a run, or the beginning of its name.", metavar="JOB")]
Jobs = Annotated[list[str] | None, typer.Argument(help="Numbers of jobs, or runs.", metavar="JOB")]
To = Annotated[pathlib.Path, typer.Option("--to", help="Where results go.")]


def register(app: typer.Typer, out: Console, messages: Console) -> None:
    """Add the verbs to the command line.

    :param out: where what was asked for is printed
    :param messages: where progress and notes are
    """

    @app.command()
    def submit(
        project: Project,
        args: Annotated[
            list[str] | None, typer.Argument(help="Arguments of the program, behind --.", metavar="ARGUMENT")
        ] = None,
        entry: Annotated[
            str | None, typer.Option(help="The program, in the folder: Python or executable.", show_default="main.py")
        ] = None,
        cpus: Annotated[int | None, typer.Option(help="CPUs of each task.")] = None,
        mem: Annotated[str | None, typer.Option(help="Memory on each node: 500M, 8G.")] = None,
        time: Annotated[str | None, typer.Option(help="Time limit: minutes, hours:minutes:seconds.")] = None,
        array: Annotated[str | None, typer.Option(help="Numbered tasks: 0-99, 0-99%10 for ten at a time.")] = None,
        nodes: Annotated[str | None, typer.Option(help="Nodes of the job; the program starts on the first.")] = None,
        gres: Annotated[str | None, typer.Option(help="As for sbatch: gpu:1.")] = None,
        constraint: Annotated[str | None, typer.Option(help="As for sbatch: arm64.")] = None,
        partition: Annotated[str | None, typer.Option(help="As for sbatch.")] = None,
        nice: Annotated[int | None, typer.Option(help="Let other jobs begin before; more does so more.")] = None,
        name: Annotated[str | None, typer.Option(help="What the job is called.", show_default="the folder")] = None,
        after: Annotated[list[str] | None, typer.Option(help="Begin when this job has ended well.")] = None,
        python: Annotated[str | None, typer.Option(help="Version of Python on the nodes: 3.11.")] = None,
        requirements: Annotated[str | None, typer.Option(help="What to install, unless it is found.")] = None,
        index: Annotated[str | None, typer.Option(help="Where pip finds packages: a URL.")] = None,
        wheels: Annotated[str | None, typer.Option(help="A directory of wheels in the folder.")] = None,
        identifier: Identifier = None,
        wait: Annotated[bool, typer.Option("--wait", help="Return when it has ended; 4 if not well.")] = False,
        head: HeadNode = None,
        ssh_config: SshConfig = None,
        directory: Directory = None,
    ) -> None:
        """Copy a folder to the cluster and run a program in it."""
        from slurmstead.client import actions

        given: dict[str, Any] = {
            "entry": entry,
            "cpus": cpus,
            "mem": mem,
            "time": time,
            "array": array,
            "nodes": nodes,
            "gres": gres,
            "constraint": constraint,
            "partition": partition,
            "nice": nice,
            "name": name,
            "after": tuple(after or ()),
            "python": python,
            "requirements": requirements,
            "index": index,
            "wheels": wheels,
            "args": tuple(args or ()),
        }
        where = {"head": head, "ssh_config": ssh_config, "directory": directory}
        actions.submit(out, messages, project, given, where, identifier, wait=wait)

    @app.command()
    def jobs(
        as_json: Annotated[bool, typer.Option("--json", help="Print all that is known, as JSON.")] = False,
        follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until all have ended.")] = False,
        latest: Annotated[int, typer.Option("--latest", "-n", help="How many; 0 for all.")] = 20,
        head: HeadNode = None,
        ssh_config: SshConfig = None,
        directory: Directory = None,
    ) -> None:
        """Show how your runs stand."""
        from slurmstead.client import actions

        chosen = actions.choose({"head": head, "ssh_config": ssh_config, "directory": directory})
        if as_json:
            print(actions.jobs_json(chosen, latest))
        else:
            actions.jobs(out, messages, chosen, latest, follow=follow)

    @app.command()
    def logs(
        job: OneJob,
        follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the task has ended.")] = False,
        stderr: Annotated[bool, typer.Option("--stderr", help="What it complained of, not what it printed.")] = False,
        task: Annotated[int | None, typer.Option(help="Which task of an array; JOB_TASK says it too.")] = None,
        head: HeadNode = None,
        ssh_config: SshConfig = None,
        directory: Directory = None,
    ) -> None:
        """Print what a program printed, also while it runs."""
        from slurmstead.client import actions

        chosen = actions.choose({"head": head, "ssh_config": ssh_config, "directory": directory})
        actions.logs(messages, chosen, job, task, follow=follow, stderr=stderr)

    @app.command()
    def fetch(
        job: Jobs = None,
        everything: Annotated[bool, typer.Option("--all", help="All runs that left something.")] = False,
        to: To = pathlib.Path("stead-results"),
        head: HeadNode = None,
        ssh_config: SshConfig = None,
        directory: Directory = None,
    ) -> None:
        """Copy what ended jobs left to this computer: each file once, and verified."""
        from slurmstead.client import actions

        chosen = actions.choose({"head": head, "ssh_config": ssh_config, "directory": directory})
        actions.fetch(out, messages, chosen, job or [], to, everything=everything)

    @app.command()
    def cancel(
        job: Annotated[list[str], typer.Argument(help="Numbers of jobs, tasks (734_17), runs.", metavar="JOB")],
        head: HeadNode = None,
        ssh_config: SshConfig = None,
        directory: Directory = None,
    ) -> None:
        """End jobs."""
        from slurmstead.client import actions

        chosen = actions.choose({"head": head, "ssh_config": ssh_config, "directory": directory})
        actions.cancel(out, messages, chosen, job)

    @app.command()
    def rerun(
        job: OneJob,
        identifier: Identifier = None,
        head: HeadNode = None,
        ssh_config: SshConfig = None,
        directory: Directory = None,
    ) -> None:
        """Run once more what a job was made of, whatever the folder holds now."""
        from slurmstead.client import actions

        chosen = actions.choose({"head": head, "ssh_config": ssh_config, "directory": directory})
        actions.rerun(out, messages, chosen, job, identifier)
