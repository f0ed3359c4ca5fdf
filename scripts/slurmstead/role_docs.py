"""Writes the table of variables in each role's README from the role's argument spec.

    PYTHONPATH=scripts python -m slurmstead.role_docs [--check]

With --check it writes nothing, and exits with 1 if a table differs from its spec.
"""

import pathlib
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from slurmstead.paths import ROOT

BEGIN = "<!-- variables -->"
END = "<!-- end -->"

HEADER = ("Variable", "Type", "Default", "Meaning")


class DocsError(Exception):
    """A README without valid markers for the table; the text says why and what to do."""


def options_of(role: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Return the options of a role's entry point `main` by name."""
    spec = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())
    return spec["argument_specs"]["main"].get("options") or {}


def table(options: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table in Markdown, with a trailing newline; for a role without variables, a sentence.

    >>> print(table({"lab_cpus": {"type": "int", "default": 2, "description": "Number of C(vCPUs)."}}), end="")
    | Variable | Type | Default | Meaning |
    | --- | --- | --- | --- |
    | `lab_cpus` | int | `2` | Number of `vCPUs`. |
    """
    if not options:
        return "This role has no variables.\n"
    rows = [HEADER, ("---",) * len(HEADER), *_rows(options)]
    return "".join(f"| {' | '.join(map(_cell, row))} |\n" for row in rows)


def _rows(options: Mapping[str, Mapping[str, Any]], prefix: str = "") -> Iterator[tuple[str, str, str, str]]:
    for name, option in options.items():
        place = f"{prefix}{name}"
        yield f"`{place}`", _type(option), _default(option), _text(option.get("description", ""))
        if option.get("options"):
            yield from _rows(option["options"], f"{place}[]." if option.get("type") == "list" else f"{place}.")


def _type(option: Mapping[str, Any]) -> str:
    kind = str(option.get("type", "str"))
    if option.get("choices"):
        choices = ", ".join(f"`{choice}`" for choice in option["choices"])
        return f"one of {choices}" if kind != "list" else f"list of {choices}"
    return f"list of {option['elements']}" if kind == "list" and "elements" in option else kind


def _default(option: Mapping[str, Any]) -> str:
    """Return the default in the notation of an inventory."""
    if option.get("required"):
        return "required"
    if "default" not in option:
        return ""
    text = yaml.safe_dump(option["default"], default_flow_style=True, width=10**6, allow_unicode=True)
    # A document that is a single value ends with a line of three dots.
    return f"`{text.strip().removesuffix('...').strip()}`"


def _text(description: str | list[str]) -> str:
    """Return a description with Ansible's markup (C(code), I(option) and similar) as Markdown."""
    text = description if isinstance(description, str) else " ".join(description)
    return re.sub(r"\b[CIVOE]\(([^()]*(?:\([^()]*\))?[^()]*)\)", r"`\1`", text)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", r"\|").split())


def with_table(readme: str, options: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the README with the table between its markers.

    :raises DocsError: it does not have each marker once, in order
    """
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in after:
        raise DocsError(f"must have one line {BEGIN}, and one line {END} below it")
    return f"{before}{BEGIN}\n{table(options)}{END}{after}"


def stale(role: pathlib.Path) -> str | None:
    """Return the correct text of a role's README; None if the README is already correct.

    :raises DocsError: the README is missing, or has no valid markers
    """
    path = role / "README.md"
    if not path.exists():
        raise DocsError(f"{path.relative_to(ROOT)} is missing; create it with the lines {BEGIN} and {END}")
    text = path.read_text()
    try:
        wanted = with_table(text, options_of(role))
    except DocsError as error:
        raise DocsError(f"{path.relative_to(ROOT)} {error}") from None
    return None if wanted == text else wanted


def main(arguments: list[str]) -> None:
    """Write the tables, or only check them; exit with a message if something is wrong."""
    if arguments not in ([], ["--check"]):
        raise SystemExit("usage: python -m slurmstead.role_docs [--check]")
    problems = []
    for spec in sorted(ROOT.glob("roles/*/meta/argument_specs.yml")):
        role = spec.parents[1]
        try:
            wanted = stale(role)
        except DocsError as error:
            problems.append(str(error))
            continue
        if wanted is not None and arguments:
            problems.append(f"roles/{role.name}/README.md: the table differs from the role's argument spec")
        elif wanted is not None:
            (role / "README.md").write_text(wanted)
    if problems:
        problems.append("Write the tables: PYTHONPATH=scripts python -m slurmstead.role_docs")
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main(sys.argv[1:])
