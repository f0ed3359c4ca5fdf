"""Which scenarios there are, and on which labs they run."""

import pytest

from slurmstead.errors import UsageError
from slurmstead.testing.scenarios import CHECKS, FIRST, LAB_TESTS, SCENARIOS, by_kind, choose
from slurmstead.testing.session import CI


def test_every_directory_of_lab_tests_is_a_scenario():
    directories = {path.parent.name for path in LAB_TESTS.glob("*/test_*.py")}
    assert {scenario.name for scenario in SCENARIOS} == directories


def test_no_two_scenarios_have_one_line_in_the_table():
    keys = [scenario.key for scenario in SCENARIOS]
    assert len(keys) == len(set(keys))


def test_ci_has_one_lab_of_virtual_machines_which_its_first_scenario_makes():
    (kind, scenarios), *others = by_kind(choose(CI))
    assert scenarios[0].name == FIRST
    assert (kind.native, [other.native for other, _ in others]) == (False, [True])


def test_scenarios_that_share_a_lab_run_one_after_the_other():
    groups = by_kind(reversed(SCENARIOS))
    assert len(groups) == len({kind for kind, _ in groups})
    assert sum(len(scenarios) for _, scenarios in groups) == len(SCENARIOS)


def test_a_name_stands_for_all_its_releases():
    assert [scenario.key for scenario in choose(["smoke"])] == ["smoke bookworm", "smoke trixie"]


def test_a_line_of_the_table_can_be_chosen():
    assert [scenario.key for scenario in choose(["gate trixie native", "reboot"])] == [
        "reboot bookworm",
        "gate trixie native",
    ]


def test_without_a_name_all_scenarios_are_chosen():
    assert choose([]) == list(SCENARIOS)


def test_the_name_of_the_checks_chooses_no_scenario():
    assert choose([CHECKS]) == []


def test_a_name_that_is_not_a_scenario_is_refused_with_those_that_are():
    with pytest.raises(UsageError, match="expected names of scenarios, found smok$") as error:
        choose(["smok", "gate"])
    assert "smoke" in error.value.hint
