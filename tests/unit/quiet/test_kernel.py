"""Settings of the kernel for a job that is alone, on a tree of files as the kernel has it."""

from __future__ import annotations

import pathlib

import pytest

from ansible.module_utils.slurmstead.quiet import kernel
from ansible.module_utils.slurmstead.quiet.kernel import Wanted

POLICY = f"{kernel.CPU}/cpufreq/policy"
INTEL = {
    **{f"{POLICY}{number}/scaling_governor": "powersave" for number in (0, 1)},
    **{f"{POLICY}{number}/scaling_available_governors": "performance powersave" for number in (0, 1)},
    **{f"{POLICY}{number}/energy_performance_preference": "balance_performance" for number in (0, 1)},
    kernel.NO_TURBO: "0",
    kernel.SMT: "on",
    kernel.PARANOID: "3",
    kernel.NMI_WATCHDOG: "1",
}
BOARD = {
    f"{POLICY}0/scaling_governor": "ondemand",
    f"{POLICY}0/scaling_available_governors": "ondemand performance schedutil",
    f"{POLICY}4/scaling_governor": "performance",
    f"{POLICY}4/scaling_available_governors": "ondemand performance schedutil",
    kernel.BOOST: "1",
    kernel.SMT: "notsupported",
}


def tree(root: pathlib.Path, files: dict[str, str]) -> pathlib.Path:
    """Make the files, with the line breaks of the kernel."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


def read(root: pathlib.Path, files: dict[str, str]) -> dict[str, str]:
    return {name: (root / name).read_text().strip() for name in files}


def quiet(root: pathlib.Path, wanted: Wanted) -> list[kernel.Write]:
    """Apply everything, as the program does."""
    applied = []
    for find in (kernel.threads, kernel.settings):
        writes, missing = find(root, wanted)
        assert missing == []
        assert kernel.apply(root, writes) == []
        applied += writes
    return applied


def test_an_intel_machine_becomes_quiet_and_as_it_was(tmp_path: pathlib.Path) -> None:
    root = tree(tmp_path, INTEL)

    writes = quiet(root, Wanted(turbo=False, smt=False, perf=True))

    now = read(root, INTEL)
    assert {now[f"{POLICY}{number}/scaling_governor"] for number in (0, 1)} == {"performance"}
    assert [now[path] for path in (kernel.NO_TURBO, kernel.SMT, kernel.PARANOID, kernel.NMI_WATCHDOG)] == [
        *("1", "off", "1", "0")
    ]
    assert kernel.restore(root, writes) == []
    assert read(root, INTEL) == INTEL


def test_a_preference_is_put_back_after_its_governor(tmp_path: pathlib.Path) -> None:
    writes = [write.path.rpartition("/")[2] for write in kernel.settings(tree(tmp_path, INTEL), Wanted(turbo=None))[0]]

    # Backwards when it is put back.
    assert writes == ["energy_performance_preference", "scaling_governor"] * 2


def test_a_board_keeps_what_is_right(tmp_path: pathlib.Path) -> None:
    writes = quiet(tree(tmp_path, BOARD), Wanted(turbo=False, smt=False))

    assert [(write.path, write.new) for write in writes] == [
        (f"{POLICY}0/scaling_governor", "performance"),
        (kernel.BOOST, "0"),
    ]


def test_turbo_can_be_wanted(tmp_path: pathlib.Path) -> None:
    root = tree(tmp_path, {**INTEL, kernel.NO_TURBO: "1"})

    quiet(root, Wanted(turbo=True))

    assert read(root, INTEL)[kernel.NO_TURBO] == "0"


def test_boost_of_each_cpu_is_set_where_there_is_no_other(tmp_path: pathlib.Path) -> None:
    files = {f"{POLICY}0/boost": "1", f"{POLICY}1/boost": "0"}

    writes, _ = kernel.settings(tree(tmp_path, files), Wanted(turbo=False))

    assert [(write.path, write.new) for write in writes] == [(f"{POLICY}0/boost", "0")]


def test_what_is_not_declared_is_left_alone(tmp_path: pathlib.Path) -> None:
    root = tree(tmp_path, INTEL)

    quiet(root, Wanted(turbo=None))

    left = (kernel.NO_TURBO, kernel.SMT, kernel.PARANOID, kernel.NMI_WATCHDOG)
    assert {name: read(root, INTEL)[name] for name in left} == {name: INTEL[name] for name in left}


def test_a_virtual_machine_says_what_it_lacks(tmp_path: pathlib.Path) -> None:
    assert kernel.settings(tmp_path, Wanted()) == ([], ["no governor", "turbo cannot be set"])
    assert kernel.threads(tmp_path, Wanted(smt=False)) == ([], [])


@pytest.mark.parametrize(("now", "said"), [("forceoff", ["SMT cannot be on: forceoff"]), ("on", []), ("off", [])])
def test_smt_that_cannot_be_on_is_named(tmp_path: pathlib.Path, now: str, said: list[str]) -> None:
    writes, missing = kernel.threads(tree(tmp_path, {kernel.SMT: now}), Wanted(smt=True))

    assert missing == said
    assert [write.new for write in writes] == (["on"] if now == "off" else [])


def test_a_value_that_another_process_set_stays(tmp_path: pathlib.Path) -> None:
    root = tree(tmp_path, BOARD)
    writes = quiet(root, Wanted(turbo=False))
    tree(root, {f"{POLICY}0/scaling_governor": "schedutil"})

    assert kernel.restore(root, writes) == []

    now = read(root, BOARD)
    assert (now[f"{POLICY}0/scaling_governor"], now[kernel.BOOST]) == ("schedutil", "1")


def test_a_file_that_is_gone_is_no_failure_and_one_that_refuses_is(tmp_path: pathlib.Path) -> None:
    root = tree(tmp_path, BOARD)
    writes = [kernel.Write(kernel.BOOST, "1", "0"), kernel.Write(kernel.NO_TURBO, "0", "1")]

    assert kernel.apply(root, writes) == [f"/{kernel.NO_TURBO}: 1: No such file or directory"]
    (root / kernel.BOOST).unlink()
    assert kernel.restore(root, writes) == []


def test_a_control_group_is_frozen_once(tmp_path: pathlib.Path) -> None:
    path = "sys/fs/cgroup/system.slice/apt-daily.service/cgroup.freeze"
    root = tree(tmp_path, {path: "0"})

    writes = kernel.freezing(root, "/system.slice/apt-daily.service")

    assert kernel.apply(root, writes) == []
    assert kernel.freezing(root, "/system.slice/apt-daily.service") == []
    assert read(root, {path: ""}) == {path: "1"}
    assert kernel.freezing(root, "/system.slice/gone.service") == []


def test_a_driver_without_the_governor_is_named(tmp_path: pathlib.Path) -> None:
    files = {f"{POLICY}0/scaling_governor": "userspace", f"{POLICY}0/scaling_available_governors": "userspace"}

    assert kernel.settings(tree(tmp_path, files), Wanted(turbo=None)) == ([], ["no governor"])
