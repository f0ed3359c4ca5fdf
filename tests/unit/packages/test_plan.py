"""What an upgrade would change and what prevents it, from literal output of dpkg and apt of Debian 12 and 13."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.packages import plan as apt_plan
from ansible.module_utils.slurmstead.packages.plan import Package, Plan, Step

BOOKWORM = {"ID": "debian", "VERSION_ID": "12", "PRETTY_NAME": "Debian GNU/Linux 12 (bookworm)"}
NOBLE = {"ID": "ubuntu", "VERSION_ID": "24.04", "PRETTY_NAME": "Ubuntu 24.04.3 LTS"}

SIMULATED = """\
Reading package lists...
Calculating upgrade...
The following NEW packages will be installed:
  gcc-14-base
The following packages have been kept back:
  slurm-client slurmctld
  slurmd
The following packages will be upgraded:
  base-files libc6 munge
3 upgraded, 1 newly installed, 0 to remove and 3 not upgraded.
Inst base-files [12.4+deb12u15] (13.8+deb13u7 Debian:13.7/stable [amd64])
Inst libc6 [2.36-9+deb12u14] (2.41-12+deb13u4 Debian:13.7/stable, Debian-Security:13/stable [amd64]) [libc-bin:amd64 ]
Inst gcc-14-base (14.2.0-19 Debian:13.7/stable [amd64])
Inst munge [0.5.15-2] (0.5.15-2+stead1 localhost [amd64]) []
Conf base-files (13.8+deb13u7 Debian:13.7/stable [amd64])
"""

PACKAGES = {
    "libslurm38": Package("22.05.8-4", "slurm-wlm", "installed"),
    "slurmd": Package("22.05.8-4", "slurm-wlm", "installed"),
    "slurm": Package("0.4", "slurm", "installed", held=True),
    "vim": Package("9", "vim", "config-files"),
}


def test_a_simulated_upgrade_names_each_package_with_both_versions_and_its_origin() -> None:
    plan = apt_plan.read_plan(SIMULATED)

    assert [(step.name, step.before, step.after) for step in plan.steps] == [
        ("base-files", "12.4+deb12u15", "13.8+deb13u7"),
        ("libc6", "2.36-9+deb12u14", "2.41-12+deb13u4"),
        ("gcc-14-base", "", "14.2.0-19"),
        ("munge", "0.5.15-2", "0.5.15-2+stead1"),
    ]
    assert plan.steps[1].origin == "Debian:13.7/stable, Debian-Security:13/stable"
    assert plan.kept == ("slurm-client", "slurmctld", "slurmd")


def test_a_plan_without_changes_is_empty() -> None:
    said = "Calculating upgrade...\n0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n"
    assert apt_plan.read_plan(said) == Plan()


@pytest.mark.parametrize("status", ["half-installed", "unpacked", "half-configured", "triggers-pending"])
def test_a_package_on_its_way_says_that_dpkg_was_interrupted(status: str) -> None:
    packages = PACKAGES | {"slurmd": Package("22.05.8-4", "slurm-wlm", status)}

    (line,) = apt_plan.problems(packages, Plan(), BOOKWORM)

    assert line.startswith(f"dpkg was interrupted (slurmd is {status}): run `dpkg --configure -a` there")


def test_a_package_that_has_to_be_installed_again_is_on_its_way() -> None:
    listed = "slurmd\t22.05.8-4\tslurm-wlm\tinstalled\tinstall\treinstreq\n"

    assert apt_plan.read_packages(listed)["slurmd"].status == "reinstreq"


@pytest.mark.parametrize(
    ("release", "origin", "refused"),
    [
        (BOOKWORM, "Debian:12.12/oldstable", False),
        (BOOKWORM, "Debian-Security:12/oldstable-security", False),
        (BOOKWORM, "Debian:13.7/stable", True),
        (BOOKWORM, "Debian-Security:13/stable-security", True),
        (BOOKWORM, "Debian Backports:12/oldstable-backports", False),
        (BOOKWORM, "localhost", False),
        (NOBLE, "Ubuntu:24.04/noble-updates, Ubuntu:24.04/noble-security", False),
        (NOBLE, "Ubuntu:24.10/oracular", True),
    ],
)
def test_packages_of_another_release_are_refused(release: dict[str, str], origin: str, refused: bool) -> None:
    lines = apt_plan.problems(PACKAGES, Plan((Step("libc6", "1", "2", origin),)), release)

    assert [line.partition(",")[0] for line in lines] == ([f"it is {release['PRETTY_NAME']}"] if refused else [])


def test_a_package_of_slurm_on_hold_is_named_with_what_to_do() -> None:
    packages = PACKAGES | {"slurmd": Package("22.05.8-4", "slurm-wlm", "installed", held=True)}

    assert apt_plan.problems(packages, Plan(kept=("libslurm38", "slurmd")), BOOKWORM) == [
        "slurmd on hold, but newer versions are available: `apt-mark unhold slurmd` there"
    ]


def test_a_package_of_slurm_that_apt_keeps_back_is_named() -> None:
    (line,) = apt_plan.problems(PACKAGES, Plan(kept=("slurmd",)), BOOKWORM)

    assert line.startswith("apt keeps slurmd back: ")


def test_other_packages_may_be_on_hold() -> None:
    assert apt_plan.problems(PACKAGES, Plan(kept=("slurm", "vim")), BOOKWORM) == []


def test_a_file_that_somebody_changed_is_named_once() -> None:
    said = (
        "Setting up slurmctld (2) ...\n\nConfiguration file '/etc/default/slurmctld'\n"
        " ==> Modified (by you or by a script) since installation.\n ==> Keeping old config file as default.\n"
    )
    assert apt_plan.conffiles(said * 2) == ["/etc/default/slurmctld"]
