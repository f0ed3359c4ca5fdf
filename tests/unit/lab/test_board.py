"""What the device tree of an imitated board says of its CPUs."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.lab import board as lab_board

RK1 = lab_board.BOARDS["rk1"]
PHANDLES = [f"800{number}" for number in range(8)]


def places(variant: str) -> dict[str, str]:
    """The phandle of the CPU that stands at each place of cpu-map."""
    edits = lab_board.device_tree_edits(RK1, variant, PHANDLES)
    return {edit[4].removeprefix("/cpus/cpu-map/"): edit[6] for edit in edits if edit[0] == "-p"}


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ("vendor", ["socket0/cluster0"] * 4 + ["socket1/cluster0"] * 2 + ["socket2/cluster0"] * 2),
        ("mainline", ["cluster0"] * 4 + ["cluster1"] * 2 + ["cluster2"] * 2),
    ],
)
def test_clusters_are_sockets_only_as_the_vendor_sees_them(variant: str, expected: list[str]) -> None:
    cores = [0, 1, 2, 3, 0, 1, 0, 1]
    assert places(variant) == {
        f"{place}/core{core}": phandle for place, core, phandle in zip(expected, cores, PHANDLES, strict=True)
    }


def test_the_map_of_qemu_is_taken_away_before_another_is_made() -> None:
    edits = lab_board.device_tree_edits(RK1, "vendor", PHANDLES)

    assert edits.index(["-r", "{tree}", "/cpus/cpu-map"]) < min(i for i, edit in enumerate(edits) if edit[0] == "-p")


def test_the_fast_cores_are_the_last_four() -> None:
    edits = lab_board.device_tree_edits(RK1, "vendor", PHANDLES)

    assert [edit[-1] for edit in edits if edit[4:5] == ["capacity-dmips-mhz"]] == ["530"] * 4 + ["1024"] * 4


def test_the_board_says_what_it_is() -> None:
    edits = lab_board.device_tree_edits(RK1, "vendor", PHANDLES)

    assert ["-t", "s", "{tree}", "/", "compatible", "turing,rk1", "rockchip,rk3588"] in edits
