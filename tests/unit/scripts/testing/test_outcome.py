"""What is read from the output of pytest."""

import pytest

from slurmstead.testing.outcome import Outcome


@pytest.mark.parametrize(
    ("line", "closes"),
    [
        ("34 passed in 139.30s (0:02:19)", True),
        ("\x1b[32m==== 3 failed, 24 passed in 66.06s (0:01:06) ====\x1b[0m", True),
        ("  \x1b[2m│\x1b[0m 12 passed, 3 deselected in 5.2s", True),
        ("1 error in 0.2s", True),
        ("12 passed the gate", False),
        ("TASK [Say 3 passed in 2s]", False),
    ],
)
def test_the_lines_in_which_pytest_sums_up_are_found(line, closes):
    outcome = Outcome("pytest", True, 1.0, f"first\n{line}\nlast\n")
    assert bool(outcome.closing) is closes


def test_the_tests_of_all_pytest_runs_are_counted():
    outcome = Outcome("checks", True, 1.0, "5 passed in 1.0s\nok\n3 failed, 24 passed in 66.06s (0:01:06)\n")
    assert outcome.tests == 29
