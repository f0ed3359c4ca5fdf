"""Which versions of Slurm work together, and which release has which."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.conf import keys as conf_keys
from ansible.module_utils.slurmstead.conf import versions as conf_versions


@pytest.mark.parametrize("key", ["EnableExtraControllers", "CgroupSlice"])
def test_a_key_of_a_newer_version_is_unknown(key: str) -> None:
    assert key not in conf_keys.keys(conf_keys.CGROUP_CONF)


@pytest.mark.parametrize(
    ("distribution", "release", "version"),
    [
        ("ubuntu", "22.04", "21.08"),
        ("debian", "12", "22.05"),
        ("ubuntu", "24.04", "23.11"),
        ("debian", "13", "24.11"),
        ("debian", "11", None),
        ("fedora", "12", None),
    ],
)
def test_a_release_installs_its_version(distribution: str, release: str, version: str | None) -> None:
    assert conf_versions.of_release(distribution, release) == version


@pytest.mark.parametrize(
    ("controller", "oldest"), [("22.05", "20.11"), ("23.11", "22.05"), ("24.11", "23.02"), ("25.05", "23.11")]
)
def test_a_controller_talks_to_its_oldest_peer(controller: str, oldest: str) -> None:
    assert conf_versions.can_talk(controller, oldest)
    assert not conf_versions.can_talk(controller, {"20.11": "20.02", "22.05": "21.08"}.get(oldest, "22.05"))


PAIRS = {
    ("bookworm", "jammy"): True,
    ("noble", "bookworm"): True,
    ("trixie", "noble"): True,
    ("trixie", "trixie"): True,
    ("trixie", "bookworm"): False,
    ("noble", "jammy"): False,
    ("trixie", "jammy"): False,
    ("jammy", "bookworm"): False,
    ("bookworm", "noble"): False,
}


@pytest.mark.parametrize(("releases", "talk"), PAIRS.items(), ids=str)
def test_a_controller_talks_to_what_is_not_newer_and_not_too_old(releases: tuple[str, str], talk: bool) -> None:
    controller, node = (conf_keys.VERSION_OF_RELEASE[release] for release in releases)

    assert conf_versions.can_talk(controller, node) is talk


@pytest.mark.parametrize("version", ["24.11.5", "24.11.5-4", "1:24.11.5-4+b1", "slurm-wlm 24.11.5"])
def test_a_version_means_the_same_in_every_form(version: str) -> None:
    assert conf_versions.series(version) == "24.11"
    assert conf_versions.number(version) == conf_versions.number("24.11")
    assert conf_versions.can_talk(version, "23.02.1") and not conf_versions.can_talk(version, "22.05.8-4+deb12u3")


def test_of_a_version_that_nobody_knows_yet_only_the_same_is_understood() -> None:
    assert conf_versions.can_talk("30.05.1", "30.05.2")
    assert not conf_versions.can_talk("30.05.1", "29.11.1")


def test_a_mixture_that_cannot_talk_names_each_node_with_both_versions() -> None:
    versions = {"node1": "22.05", "node2": "24.11", "node3": "24.11", "node4": None, "node5": "23.11"}

    assert conf_versions.mixture_problems("node3", versions) == [
        "node1: its release has Slurm 22.05, but node3 will have 24.11, which is compatible with 23.02 to 24.11; "
        "install the same release on both"
    ]


def test_a_controller_that_was_not_heard_is_no_problem() -> None:
    assert conf_versions.mixture_problems("node3", {"node1": "22.05"}) == []
