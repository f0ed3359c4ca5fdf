"""The verbs for computers outside: vpn add, list, remove."""

import dataclasses
import json
import sys
from typing import Annotated

import typer
from rich.text import Text

from slurmstead.cli.consoles import check_privacy, messages, out
from slurmstead.cli.options import Inventory, Plain
from slurmstead.errors import UsageError
from slurmstead.wording import count, duration

app = typer.Typer()
vpn = typer.Typer(help="Manage the computers outside that may use the VPN.", no_args_is_help=True)
app.add_typer(vpn, name="vpn")


@vpn.command()
def add(
    name: Annotated[str, typer.Argument(help="A name for the computer.", metavar="NAME")],
    inventory: Inventory,
    key: Annotated[
        str | None, typer.Option(help="Its public key, if it has made its own keys.", metavar="PUBLIC")
    ] = None,
    qr: Annotated[
        bool | None,
        typer.Option("--qr/--no-qr", help="Print a QR code for telephones.", show_default="on a terminal"),
    ] = None,
    plain: Plain = False,
) -> None:
    """Let a computer outside reach control: make its keys, and print its configuration once."""
    from slurmstead.cluster import vpn as control
    from slurmstead.site import vpn as work

    if key == "":
        raise UsageError("--key is empty", "Write the public key after --key. To have keys made, leave --key out.")
    if key is None:
        check_privacy("the configuration has a private key")
    book = work.read(inventory)
    work.check_new(book, name, key or "")
    found = control.state(messages, inventory, plain=plain)
    place = work.endpoint(found.endpoint, found.port)
    private, public = ("<your private key>", key) if key else work.make_keys()
    peer = work.add(book, name, public, found.network)
    configuration = work.configuration(private, peer.address, found.key, place, found.network)
    print(configuration, end="", flush=True)
    if not key and (sys.stdout.isatty() if qr is None else qr):
        _print_qr(configuration)
    messages.print(Text(f"{book.path}: {name} added, {peer.address}."), soft_wrap=True)
    if not key:
        messages.print("The private key above is not stored: this was the only time that it is printed.")
    control.apply(messages, messages, inventory, f"{name} is not accepted by control yet.", plain=plain)
    messages.print(
        Text(
            f"On {name}: /etc/wireguard/cluster.conf with mode 0600, then `wg-quick up cluster`, "
            f"then `ssh {work.head(found.network)}`."
        ),
        soft_wrap=True,
    )


@vpn.command("list")
def list_(
    inventory: Inventory,
    ask: Annotated[bool, typer.Option("--ask", help="Also ask control when each was last there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    plain: Plain = False,
) -> None:
    """List the computers outside that may use the VPN. Changes nothing."""
    from slurmstead.cluster import vpn as control
    from slurmstead.site import vpn as work

    book = work.read(inventory)
    seen = control.state(messages, inventory, plain=plain).seen if ask else None
    if as_json:
        rows = [
            {**dataclasses.asdict(peer), **({} if seen is None else {"seen": seen.get(peer.key)})}
            for peer in book.peers
        ]
        print(json.dumps(rows, indent=2))
        return
    for peer in book.peers:
        words = [peer.name, peer.address, peer.key, *([] if seen is None else [_last(seen.get(peer.key))])]
        out.print(Text("  ".join(words)), soft_wrap=True)
    known = {peer.key for peer in book.peers}
    for key in sorted(set(seen or ()) - known):
        out.print(
            Text(f"not in the file, but accepted: {key}; `scripts/stead up --tags vpn` removes it"), soft_wrap=True
        )
    out.print(Text(f"{count(len(book.peers), 'peer')} in {book.path}"), soft_wrap=True)


@vpn.command()
def remove(
    names: Annotated[list[str], typer.Argument(help="Names of computers.", metavar="NAME…")],
    inventory: Inventory,
    plain: Plain = False,
) -> None:
    """Remove computers from the VPN: control no longer accepts them when this command has ended."""
    from slurmstead.cluster import vpn as control
    from slurmstead.site import vpn as work

    book = work.read(inventory)
    work.remove(book, names)
    who = ", ".join(names)
    messages.print(Text(f"{book.path}: {who} removed."), soft_wrap=True)
    control.apply(messages, messages, inventory, f"Control still accepts {who}.", plain=plain)
    out.print(Text(f"{who}: no longer accepted by control"), soft_wrap=True)


def _print_qr(text: str) -> None:
    import segno

    segno.make(text, error="l", micro=False).terminal(sys.stdout, compact=True)


def _last(seconds: int | None) -> str:
    """Return when a peer was last there.

    >>> _last(None), _last(-1), _last(75)
    ('control does not accept it yet', 'not there since the last start', 'there 1:15 min ago')
    """
    if seconds is None:
        return "control does not accept it yet"
    return "not there since the last start" if seconds < 0 else f"there {duration(seconds)} ago"
