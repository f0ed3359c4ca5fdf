"""The verbs that run the tests of this repository, and measure it."""

from typing import Annotated

import typer

from slurmstead.cli.consoles import out
from slurmstead.errors import UsageError

app = typer.Typer()
bench_app = typer.Typer(help="Measure what Slurmstead costs.", no_args_is_help=True)
app.add_typer(bench_app, name="bench")


@app.command()
def test(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Run only these: checks, native, scenarios, or lines of the table such as 'gate trixie native'.",
            metavar="SCENARIO",
        ),
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Run the checks that need no virtual machine, in about a minute.")
    ] = False,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Run everything; takes hours. After an interruption, run it again to continue."),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Also run the scenarios that have passed with this tree.")
    ] = False,
    table: Annotated[bool, typer.Option("--table", help="Show when each scenario last passed; run nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Run the tests of this repository; without options, those of CI."""
    from slurmstead.testing import record, session, tree
    from slurmstead.testing import table as shown

    if fast + (everything or bool(names)) + table > 1:
        raise UsageError("--fast, --all or names of scenarios, and --table cannot be combined", "Choose one of them.")
    if (as_json and not table) or (again and not (everything or names)):
        raise UsageError("--json needs --table, and --again needs --all or names of scenarios")
    if table and as_json:
        print(shown.to_json(record.load(tree.TABLE), session.now()))
    elif table:
        shown.print_table(out, record.load(tree.TABLE), session.now())
    elif fast:
        session.run_fast(out)
    elif everything or names:
        session.Everything(out, names or [], again=again).run()
    else:
        session.run_ci(out)


@bench_app.command("scale")
def bench_scale(
    sizes: Annotated[
        str,
        typer.Option(help="Numbers of nodes. Daemons run for up to 512; for more, only the controller is measured."),
    ] = "4,64,256,512,2000",
    measures: Annotated[
        str,
        typer.Option(
            help="Only these: validate,render,arguments,judge (on the controlling computer), "
            "start,job,publish,health,jobs500,jobs25000 (on real daemons).",
            show_default="all",
        ),
    ] = "",
    release: Annotated[str, typer.Option(help="Debian release of the daemons: bookworm or trixie.")] = "bookworm",
    minutes: Annotated[float, typer.Option(help="Begin no measure after this many minutes.", min=0)] = 60,
    as_json: Annotated[bool, typer.Option("--json", help="Print the measures as JSON.")] = False,
) -> None:
    """Measure what clusters of several sizes cost, on real daemons without machines, and print a table."""
    from slurmstead.testing import bench

    bench.run(bench.words(sizes, measures, release, minutes, as_json))
