"""ansible-lint without its syntax checks: it starts ansible-playbook for each playbook, each role and each import.

`slurmstead.testing.checks` checks the syntax of all of them in one process. ansible-lint has no option for that (its
pull request 2078).
An update that renames what is replaced here makes this program fail.
"""

import runpy
from unittest import mock

CHECK = "ansiblelint.runner.Runner._get_ansible_syntax_check_matches"
"""What checks a playbook or a role, before the rules."""
IMPORTED = "ansible_compat.runtime.Runtime.has_playbook"
"""What checks a playbook that another one imports."""


def main() -> None:
    """Run ansible-lint with this process's arguments; it exits with its own codes."""
    with mock.patch(CHECK, return_value=[]), mock.patch(IMPORTED, return_value=True):
        runpy.run_module("ansiblelint", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
