"""A machine of the lab that is not in the inventory is found by control, measured, and added.

STEAD_LAB=NAME pytest tests/lab/discover
"""

from __future__ import annotations

import pathlib
import re
import shutil
from typing import Any

import pytest

from slurmstead.paths import LAB_INVENTORY
from tests.lab.run import STEAD, as_person

NEW = "node4"

PRINT = "sshd -T | awk '$1 == \"hostkey\" && /ed25519/ {print $2}' | xargs --max-args=1 ssh-keygen -lf"
"""Prints the fingerprint of sshd's own key."""


@pytest.fixture
def site(lab: Any, tmp_path: pathlib.Path) -> pathlib.Path:
    """The lab's inventory without one of its workers; the operator's key is that of the lab."""
    shutil.copytree(LAB_INVENTORY, tmp_path / "site")
    hosts, reached = tmp_path / "site/hosts.yml", tmp_path / "site/group_vars/all.yml"
    hosts.write_text(re.sub(rf"    {NEW}:\n(      .*\n)*", "", hosts.read_text()))
    key = f" -i {lab.directory}/key\n"
    reached.write_text(re.sub(r"^(ansible_ssh_common_args: .*)\n", rf"\g<1>{key}", reached.read_text(), flags=re.M))
    assert NEW not in hosts.read_text()
    return hosts


def discover(site: pathlib.Path, *words: str) -> str:
    done = as_person([STEAD, "discover", "-i", site, *words], 600)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_machine_is_found_once_and_known_at_another_address_afterwards(lab: Any, site: pathlib.Path) -> None:
    printed = lab.root(NEW, PRINT).split()[1]
    said = discover(site, "--yes")

    assert "1 new machine," in said
    assert "login as debian" in said
    assert f"    {NEW}:\n      os_address: {lab.address(NEW)}\n" in site.read_text()
    assert f"      os_host_key: {printed}\n" in site.read_text()

    written = site.read_text()
    assert "0 new machines," in discover(site, "--yes")
    site.write_text(written.replace(f"os_address: {lab.address(NEW)}\n", "os_address: 10.77.0.99\n"))
    said = discover(site, "--yes")
    assert "0 new machines," in said
    assert f"{lab.address(NEW)} has the host key of {NEW}" in said or f"{lab.address(NEW)} is {NEW}, at" in said
