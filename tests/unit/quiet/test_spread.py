"""Which node does not match the others."""

from __future__ import annotations

from typing import Any

import pytest

from ansible.module_utils.slurmstead.quiet.spread import mismatches, report

STEADY = [1.0, 1.001, 1.002]


def answer(compute: list[float], memory: list[float] | None = None, **more: Any) -> dict[str, Any]:
    seconds = {"compute": compute, "memory": memory or STEADY}
    return {"quiet": True, "hardware": "x, 4 CPUs", "seconds": seconds, **more}


def times(*compute: list[float]) -> dict[str, dict[str, list[float]]]:
    return {f"n{number}": {"compute": own, "memory": STEADY} for number, own in enumerate(compute, 1)}


def scaled(factor: float) -> list[float]:
    return [factor * one for one in STEADY]


def test_equal_nodes_match() -> None:
    assert mismatches(times(STEADY, scaled(1.01), scaled(0.995))) == []


@pytest.mark.parametrize(("factor", "said"), [(1.12, "takes 12.0 % longer"), (0.9, "takes 10.0 % less")])
def test_a_node_that_is_different_is_named(factor: float, said: str) -> None:
    assert mismatches(times(STEADY, scaled(factor), STEADY)) == [f"n2 does not match: compute {said}"]


def test_of_two_nodes_none_is_the_wrong_one() -> None:
    assert mismatches(times(STEADY, scaled(1.1))) == ["n1 and n2 do not match: compute differs by 10.0 %"]


def test_a_node_that_is_disturbed_is_named() -> None:
    assert mismatches(times(STEADY, [1.0, 1.001, 1.3], STEADY)) == [
        "n2 is not steady: compute spreads by 30.0 %, on the others by 0.2 %"
    ]


def test_where_all_are_disturbed_a_difference_means_nothing() -> None:
    noisy = [1.0, 1.1, 1.3]

    assert mismatches(times(noisy, [1.0, 1.15, 1.3], noisy)) == []


def test_one_node_has_none_to_match() -> None:
    assert mismatches(times([1.0, 1.5])) == []


def test_a_report_has_a_line_for_each_node_and_each_kind_of_hardware() -> None:
    lines, ok = report({"n1": answer(STEADY), "n2": answer(STEADY), "b1": answer(scaled(3), hardware="y")}, {})

    assert ok
    assert lines == [
        "b1  compute 3003.00 ms, spread 0.2 %   memory 1001.00 ms, spread 0.2 %",
        "n1  compute 1001.00 ms, spread 0.2 %   memory 1001.00 ms, spread 0.2 %",
        "n2  compute 1001.00 ms, spread 0.2 %   memory 1001.00 ms, spread 0.2 %",
        "between 2 nodes (x, 4 CPUs): compute 0.0 %, memory 0.0 %",
    ]


def test_a_node_that_was_not_measured_or_not_quiet_is_named() -> None:
    lines, ok = report({"n1": answer(STEADY, quiet=False)}, {"n2": "no answer within 9 s"})

    assert not ok
    assert lines[1:] == [
        "n2  not measured: no answer within 9 s",
        "n1 was not made quiet: see `journalctl -t slurmstead-quiet` there",
    ]
