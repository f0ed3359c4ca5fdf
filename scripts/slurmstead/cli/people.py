"""The verbs for the people of a site: people import, add, list, expire, remove."""

import dataclasses
import datetime
import json
import pathlib
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from slurmstead.cli.consoles import check_privacy, messages, out
from slurmstead.cli.options import Inventory, Plain
from slurmstead.errors import UsageError

if TYPE_CHECKING:
    from slurmstead.site.people import Book

app = typer.Typer()
people = typer.Typer(help="Manage the people who have an account.", no_args_is_help=True)
app.add_typer(people, name="people")

Yes = Annotated[bool, typer.Option("--yes", help="Write without asking.")]
Names = Annotated[list[str], typer.Argument(metavar="NAME…", help="Login names.")]


def _today() -> str:
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()


def _settle(book: "Book", new: Any, yes: bool) -> None:
    """Show the difference, ask, and write."""
    from slurmstead.site import people as work

    lines = work.difference(book, new)
    if not lines:
        out.print(Text(f"{book.path}: nothing to change"), soft_wrap=True)
        return
    for line in lines:
        out.print(Text(line), soft_wrap=True)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("nothing was written, because no one can be asked here", "Add --yes.")
        if not typer.confirm(f"Write this to {book.path}?"):
            out.print("Nothing was written.")
            return
    work.write(book, new)
    out.print(Text(f"{book.path}: written. `stead up` applies it."), soft_wrap=True)


def _name_expired(book: "Book", new: Any, names: set[str]) -> None:
    """Name those of these people who stay locked although they are wanted: without a new day, the old one stays."""
    expired = [one for one in new.people if one.name in names and one.state == "active" and not one.is_active(_today())]
    for one in expired:
        advice = f"Give a later day, or run `stead people expire {one.name} --on never`."
        messages.print(Text(f"{one.name} stays locked, since {one.expires}. {advice}"), soft_wrap=True)


@people.command("import")
def import_(
    table: Annotated[pathlib.Path, typer.Argument(metavar="FILE", help="A CSV file with the column `name`.")],
    inventory: Inventory,
    yes: Yes = False,
) -> None:
    """Add the people of a CSV file, and change those whose rows differ. No person is removed."""
    from slurmstead.site import people as work

    book = work.read(inventory)
    new, names = work.imported(book, table)
    _settle(book, new, yes)
    _name_expired(book, new, names)
    removed = [one.name for one in new.people if one.state == "removed"]
    if removed:
        messages.print(Text(f"Removed people stay removed: {', '.join(removed)}"), soft_wrap=True)


@people.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The login name.")],
    inventory: Inventory,
    full_name: Annotated[str, typer.Option(help="The full name.")] = "",
    email: Annotated[str, typer.Option(help="The address for mail.")] = "",
    group: Annotated[str, typer.Option(help="The group of people, such as a course.")] = "",
    key: Annotated[list[pathlib.Path] | None, typer.Option(help="A file with public keys.", metavar="FILE")] = None,
    expires: Annotated[str, typer.Option(help="First day without access.", metavar="YYYY-MM-DD")] = "",
    yes: Yes = False,
) -> None:
    """Add a person, change one, or let a removed one back in. The number stays the same."""
    from slurmstead.site import people as work

    try:
        keys = tuple(line.strip() for path in key or [] for line in path.read_text().splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--key: the file cannot be read ({error})", "Name a file with public ssh keys.") from None
    fields = {"name": name, "full_name": full_name, "email": email, "group": group, "keys": keys, "expires": expires}
    book = work.read(inventory)
    new = work.added(book, fields)
    _settle(book, new, yes)
    _name_expired(book, new, {name})


@people.command("list")
def list_(
    inventory: Inventory,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the people. Changes nothing."""
    from slurmstead.site import people as work

    book, today = work.read(inventory), _today()
    if as_json:
        found = [{**dataclasses.asdict(one), "active": one.is_active(today)} for one in book.people.people]
        print(json.dumps({"groups": dict(book.people.groups), "people": found}))
        return
    for one in book.people.people:
        state = one.state if one.state == "removed" else "" if one.is_active(today) else "expired"
        words = (f"{one.name} {one.uid}", one.full_name, one.group, one.expires and f"expires {one.expires}", state)
        out.print(Text("  ".join(filter(None, words))), soft_wrap=True)
    active = sum(one.is_active(today) for one in book.people.people)
    out.print(Text(f"{len(book.people.people)} in {book.path}, {active} active"), soft_wrap=True)


@people.command()
def expire(
    names: Names,
    inventory: Inventory,
    on: Annotated[
        str | None, typer.Option(help="First day without access, or never.", show_default="today", metavar="YYYY-MM-DD")
    ] = None,
    yes: Yes = False,
) -> None:
    """Lock the accounts of people from a day on, in UTC; `--on never` removes the day."""
    from slurmstead.site import people as work

    if on == "":
        raise UsageError("--on is empty", "Write a day as in 2027-02-28, or never.")
    book = work.read(inventory)
    _settle(book, work.changed(book, names, expires="" if on == "never" else on or _today()), yes)


@people.command()
def remove(names: Names, inventory: Inventory, yes: Yes = False) -> None:
    """Remove people: the next `up` locks their accounts. Homes stay, and numbers stay reserved."""
    from slurmstead.site import people as work

    book = work.read(inventory)
    _settle(book, work.changed(book, names, state="removed"), yes)


@people.command()
def invite(
    inventory: Inventory,
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME…]", help="Login names.")] = None,
    group: Annotated[str, typer.Option(help="Also all active people of this group.", show_default=False)] = "",
    plain: Plain = False,
) -> None:
    """Print a link for each person, with which to choose a password for notebooks, once, within a week."""
    from slurmstead.cluster import invite as work
    from slurmstead.site import people as site

    check_privacy("each link lets its reader choose a password")
    wanted = [*(names or []), *(site.members(site.read(inventory), group, _today()) if group else [])]
    if not wanted:
        raise UsageError("no person was named", "Give login names, or --group.")
    for name, link in work.invited(messages, inventory, dict.fromkeys(wanted), plain=plain).items():
        out.print(Text(f"{name}  {link}"), soft_wrap=True)
