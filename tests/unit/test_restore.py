"""A restore configures everything that site.yml configures, in its order."""

from __future__ import annotations

import pathlib

import yaml

from slurmstead.paths import ROOT


def configured(path: pathlib.Path) -> list[str]:
    """Return the playbooks that a playbook imports to configure something."""
    names = [
        pathlib.Path(play.get("ansible.builtin.import_playbook", "")).name for play in yaml.safe_load(path.read_text())
    ]
    return [name for name in names if name.startswith(("configure-", "install-"))]


def test_a_restore_is_site_yml_with_an_archive() -> None:
    assert configured(ROOT / "playbooks/restore-cluster.yml") == configured(ROOT / "site.yml")
