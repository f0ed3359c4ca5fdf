"""The commands that messages about a lab advise."""

from slurmstead.paths import ROOT


def command(words: str, lab: str) -> str:
    """Return the command line of a verb of `lab` for a lab; a lab named after its inventory is created with it.

    >>> command("thaw converged", "other"), command("down", "default")
    ('scripts/stead lab thaw converged --name other', 'scripts/stead lab down')
    >>> command("up", "lab-rk1")
    'scripts/stead lab up --name lab-rk1 -i inventory/lab-rk1'
    """
    name = "" if lab == "default" else f" --name {lab}"
    own = words in ("up", "down") and (ROOT / "inventory" / lab).is_dir()
    return f"scripts/stead lab {words}{name}" + (f" -i inventory/{lab}" if own else "")


def again(lab: str) -> str:
    """Return the command line that removes a lab and creates it again."""
    return f"{command('down', lab)} && {command('up', lab)}"
