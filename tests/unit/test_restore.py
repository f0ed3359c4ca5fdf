"""A restore configures everything that site.yml configures, in its order."""

from __future__ import annotations

import pathlib

import yaml

from slurmstead.paths import ROOT


def imported(path: pathlib.Path) -> list[str]:
    """Return the playbooks that a playbook imports."""
    plays = yaml.safe_load(path.read_text())
    return [pathlib.Path(play.get("ansible.builtin.import_playbook", "")).name for play in plays]


def configured(path: pathlib.Path) -> list[str]:
    """Return the playbooks that a playbook imports to configure something."""
    return [name for name in imported(path) if name.startswith(("configure-", "install-"))]


def test_a_restore_is_site_yml_with_an_archive() -> None:
    assert configured(ROOT / "playbooks/restore-cluster.yml") == configured(ROOT / "site.yml")


def test_jobs_of_users_who_left_since_the_backup_are_cancelled_once_slurm_has_them() -> None:
    """The play after the accounts is too early: the archive is not in place yet."""
    restore = imported(ROOT / "playbooks/restore-cluster.yml")

    assert imported(ROOT / "playbooks/configure-accounts.yml")[-1] == "cancel-departed-jobs.yml"
    assert restore[restore.index("configure-slurm.yml") + 1] == "cancel-departed-jobs.yml"
