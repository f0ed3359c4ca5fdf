"""The verbs for images: image build, list, remove for those in which jobs run, image board for modules."""

import json
import pathlib
from typing import Annotated

import typer
from rich.text import Text

from slurmstead.cli.consoles import messages, out
from slurmstead.cli.options import Inventory, Plain

app = typer.Typer()
image = typer.Typer(
    help="Manage the images in which jobs can run (--container of Slurm), and prepare images for boards.",
    no_args_is_help=True,
)
app.add_typer(image, name="image")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the image.", show_default=False)]


@image.command()
def build(
    name: Name,
    inventory: Inventory,
    packages: Annotated[str, typer.Option(help="Packages of Debian, with commas.", metavar="NAME,…")] = "",
    release: Annotated[
        str, typer.Option(help="Release of Debian.", metavar="NAME", show_default="that of the machine with the share")
    ] = "",
    requirements: Annotated[
        pathlib.Path | None, typer.Option(help="requirements.txt of Python packages.", metavar="FILE")
    ] = None,
    wheels: Annotated[
        pathlib.Path | None, typer.Option(help="Their wheels, to install without a network.", metavar="DIR")
    ] = None,
    archive: Annotated[
        pathlib.Path | None, typer.Option(help="Import this OCI or Docker archive instead.", metavar="FILE")
    ] = None,
    plain: Plain = False,
) -> None:
    """Make an image of a Debian release with packages, or of an archive. It takes minutes."""
    from slurmstead.cluster import images

    parts = images.Parts([one for one in packages.split(",") if one], release, requirements, wheels, archive)
    images.check(name, parts)
    variables = {
        "image_name": name,
        "image_packages": ",".join(parts.packages),
        "image_release": release,
        "image_archive": archive.name if archive else "",
    }
    with images.given(parts) as path:
        found = images.run(messages, inventory.absolute(), "present", plain=plain, image_given=path, **variables)
    images.print_found(out, found._replace(images=[one for one in found.images if one["name"] == name]))


@image.command("list")
def list_(
    inventory: Inventory,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    plain: Plain = False,
) -> None:
    """Show the images: size, date, the jobs that use each, and what it was made of. Changes nothing."""
    from slurmstead.cluster import images

    found = images.run(messages, inventory.absolute(), "listed", plain=plain)
    if as_json:
        print(json.dumps([{**one, "jobs": found.used.get(one["name"], [])} for one in found.images], indent=2))
        return
    images.print_found(out, found)
    if not found.images:
        messages.print(Text("There is no image. To make one: scripts/stead image build NAME"), soft_wrap=True)


@image.command()
def remove(name: Name, inventory: Inventory, plain: Plain = False) -> None:
    """Remove an image that no job uses."""
    from slurmstead.cluster import images

    images.check(name)
    images.run(messages, inventory.absolute(), "absent", plain=plain, image_name=name)
    out.print(Text(f"The image {name} is removed."), soft_wrap=True)


@image.command()
def board(
    source: Annotated[
        pathlib.Path,
        typer.Argument(
            metavar="SOURCE", help="An image for the board, as downloaded: .img or .img.xz.", show_default=False
        ),
    ],
    target: Annotated[
        pathlib.Path, typer.Option("-o", "--output", metavar="IMAGE", help="The image to make.", show_default=False)
    ],
    inventory: Inventory,
    plain: Plain = False,
) -> None:
    """Make a copy of an operating system's image with the account for Ansible and your keys inside."""
    from slurmstead.cluster import board as boards

    system = boards.prepare(out, messages, inventory, source, target, plain=plain)
    out.print(
        Text(f"{target} has {system} with the account. Then run: scripts/stead flash NODE {target}"), soft_wrap=True
    )
