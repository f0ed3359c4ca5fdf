"""The verbs of scripts/stead that work with jobs: submit, jobs, logs, fetch, cancel, rerun."""

import pathlib
from typing import Annotated, Any

import typer
from rich.console import Console

Project = Annotated[
    pathlib.Path, typer.Argument(help="The folder with the program.", metavar="FOLDER", show_default=False)
]
# An unescaped [user@] would be markup of rich.
HeadNode = Annotated[str | None, typer.Option("--head", help=r"The head node: \[user@]host.", metavar="HOST")]
SshConfig = Annotated[str | None, typer.Option("--ssh-config", help="Use this ssh configuration file.", metavar="FILE")]
Directory = Annotated[
    str | None, typer.Option("--directory", help="Directory for runs on the cluster.", show_default="~/slurmstead")
]
Identifier = Annotated[
    str | None, typer.Option("--id", help="Name of the run; repeating the call with this name submits nothing.")
]
OneJob = Annotated[str, typer.Argument(help="A job number, a run, or the beginning of its name.", metavar="JOB")]
Jobs = Annotated[list[str] | None, typer.Argument(help="Job numbers, tasks (734_17) or runs.", metavar="JOB")]
To = Annotated[pathlib.Path, typer.Option("--to", help="Directory for the results.")]


def register(app: typer.Typer, out: Console, messages: Console) -> None:
    """Add the verbs to the command line.

    :param out: where results are printed
    :param messages: where progress and notes are printed
    """

    @app.command()
    def submit(
        project: Project,
        args: Annotated[
            list[str] | None, typer.Argument(help="Arguments of the program, after --.", metavar="ARGUMENT")
        ] = None,
        entry: Annotated[
            str | None, typer.Option(help="The program in the folder: Python or executable.", show_default="main.py")
        ] = None,
        cpus: Annotated[int | None, typer.Option(help="CPUs per task.")] = None,
        mem: Annotated[str | None, typer.Option(help="Memory per node: 500M, 8G.")] = None,
        time: Annotated[str | None, typer.Option(help="Time limit: minutes, hours:minutes:seconds.")] = None,
        array: Annotated[str | None, typer.Option(help="Task numbers: 0-99, or 0-99%10 for ten at a time.")] = None,
        nodes: Annotated[str | None, typer.Option(help="Number of nodes; the program starts on the first one.")] = None,
        gres: Annotated[str | None, typer.Option(help="Generic resources, as for sbatch: gpu:1.")] = None,
        constraint: Annotated[str | None, typer.Option(help="Required node features, as for sbatch: arm64.")] = None,
        partition: Annotated[str | None, typer.Option(help="Partition, as for sbatch.")] = None,
        nice: Annotated[
            int | None, typer.Option(help="Lower this job's priority; larger values lower it further.")
        ] = None,
        qos: Annotated[str | None, typer.Option(help="QOS, as for sbatch: low gives way to other jobs.")] = None,
        container: Annotated[
            str | None, typer.Option(help="Run in an image, such as /share/images/python.", show_default=False)
        ] = None,
        name: Annotated[str | None, typer.Option(help="Job name.", show_default="the folder")] = None,
        after: Annotated[
            list[str] | None, typer.Option(help="Start after this job has completed successfully.")
        ] = None,
        python: Annotated[str | None, typer.Option(help="Python version on the nodes: 3.11.")] = None,
        requirements: Annotated[str | None, typer.Option(help="Requirements file, if not found automatically.")] = None,
        index: Annotated[str | None, typer.Option(help="URL of the package index for pip.")] = None,
        wheels: Annotated[str | None, typer.Option(help="Directory with wheels, in the folder.")] = None,
        data: Annotated[
            list[str] | None,
            typer.Option(help="Path in the folder that all tasks read without a copy; repeatable.", metavar="PATH"),
        ] = None,
        identifier: Identifier = None,
        wait: Annotated[
            bool, typer.Option("--wait", help="Wait for the end of the run; exit with 4 if it failed.")
        ] = False,
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
            "qos": qos,
            "container": container,
            "name": name,
            "after": tuple(after or ()),
            "python": python,
            "requirements": requirements,
            "index": index,
            "wheels": wheels,
            "data": tuple(data or ()),
            "args": tuple(args or ()),
        }
        where = {"head": head, "ssh_config": ssh_config, "directory": directory}
        actions.submit(out, messages, project, given, where, identifier, wait=wait)

    @app.command()
    def jobs(
        as_json: Annotated[bool, typer.Option("--json", help="Print all details as JSON.")] = False,
        follow: Annotated[bool, typer.Option("--follow", "-f", help="Update until all runs have ended.")] = False,
        latest: Annotated[int, typer.Option("--latest", "-n", min=0, help="Number of runs to show; 0 for all.")] = 20,
        head: HeadNode = None,
        ssh_config: SshConfig = None,
        directory: Directory = None,
    ) -> None:
        """List your runs and their state."""
        from slurmstead.client import actions

        chosen = actions.choose([], head, ssh_config, directory)
        if as_json:
            print(actions.jobs_json(chosen, latest))
        else:
            actions.jobs(out, messages, chosen, latest, follow=follow)

    @app.command()
    def logs(
        job: OneJob,
        follow: Annotated[
            bool, typer.Option("--follow", "-f", help="Print new output until the task has ended.")
        ] = False,
        stderr: Annotated[bool, typer.Option("--stderr", help="Show standard error.")] = False,
        task: Annotated[int | None, typer.Option(help="Task of an array; same as JOB_TASK.")] = None,
        head: HeadNode = None,
        ssh_config: SshConfig = None,
        directory: Directory = None,
    ) -> None:
        """Print the output of a program, even while it runs."""
        from slurmstead.client import actions

        chosen = actions.choose([job], head, ssh_config, directory)
        actions.logs(messages, chosen, job, task, follow=follow, stderr=stderr)

    @app.command()
    def fetch(
        job: Jobs = None,
        everything: Annotated[bool, typer.Option("--all", help="Fetch the results of all runs.")] = False,
        to: To = pathlib.Path("stead-results"),
        head: HeadNode = None,
        ssh_config: SshConfig = None,
        directory: Directory = None,
    ) -> None:
        """Copy the results of ended jobs to this computer: each file once, verified."""
        from slurmstead.client import actions

        chosen = actions.choose(job or [], head, ssh_config, directory)
        actions.fetch(out, messages, chosen, job or [], to, everything=everything)

    @app.command()
    def cancel(
        job: Annotated[list[str], typer.Argument(help="Job numbers, tasks (734_17) or runs.", metavar="JOB")],
        head: HeadNode = None,
        ssh_config: SshConfig = None,
        directory: Directory = None,
    ) -> None:
        """Cancel jobs."""
        from slurmstead.client import actions

        chosen = actions.choose(job, head, ssh_config, directory)
        actions.cancel(out, messages, chosen, job)

    @app.command()
    def rerun(
        job: OneJob,
        identifier: Identifier = None,
        head: HeadNode = None,
        ssh_config: SshConfig = None,
        directory: Directory = None,
    ) -> None:
        """Run a job again with the files it was submitted with."""
        from slurmstead.client import actions

        chosen = actions.choose([job], head, ssh_config, directory)
        actions.rerun(out, messages, chosen, job, identifier)
