"""The table of variables in a role's README."""

from __future__ import annotations

import pytest

from slurmstead.role_docs import BEGIN, END, DocsError, table, with_table

OPTIONS = {
    "x_users": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "description": "Users; see I(x_shell).",
        "options": {"name": {"type": "str", "required": True, "description": "Login name."}},
    },
    "x_shell": {"choices": ["a|b", "c"], "default": "a|b", "description": ["First C(x(1)) line.", "Second."]},
    "x_empty": {"type": "path", "description": "Anything."},
}

TABLE = r"""| Variable | Type | Default | Meaning |
| --- | --- | --- | --- |
| `x_users` | list of dict | `[]` | Users; see `x_shell`. |
| `x_users[].name` | str | required | Login name. |
| `x_shell` | one of `a\|b`, `c` | `a\|b` | First `x(1)` line. Second. |
| `x_empty` | path |  | Anything. |
"""


def test_a_table_shows_types_defaults_and_parts() -> None:
    assert table(OPTIONS) == TABLE


def test_a_role_without_variables_says_so() -> None:
    assert table({}) == "This role has no variables.\n"


def test_a_table_replaces_what_is_between_the_markers_and_nothing_else() -> None:
    readme = f"# x\n\n{BEGIN}\nold\n{END}\n\nmore\n"

    assert with_table(readme, OPTIONS) == f"# x\n\n{BEGIN}\n{TABLE}{END}\n\nmore\n"


@pytest.mark.parametrize("readme", ["", BEGIN, END, f"{END}\n{BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"])
def test_a_readme_without_one_pair_of_markers_is_refused(readme: str) -> None:
    with pytest.raises(DocsError, match="must have one line"):
        with_table(readme, OPTIONS)
