"""A site that `stead init` made: its machines get the account for Ansible, and become a cluster.

STEAD_LAB=NAME pytest tests/lab/site
"""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurmstead.paths import PLAYBOOKS
from tests.lab.run import STEAD, as_person

TASKS = 65
"""A run has 57. Their number is its cost, which no other load on this computer changes."""


@pytest.fixture(scope="module")
def stead(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Return the output of a verb that runs in a directory without a site, or in `cwd`; it must exit with `code`."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")

    def run(*words: object, cwd: pathlib.Path = elsewhere, code: int = 0) -> str:
        outside = {name: value for name, value in os.environ.items() if name != "STEAD_SITE"}
        done = as_person([STEAD, *words], 1200, cwd=cwd, env=outside)
        assert done.returncode == code, f"expected exit code {code}, found {done.returncode}:\n{done.stdout}"
        return done.stdout

    return run


@pytest.fixture(scope="module")
def site(lab: Any, stead: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """A new site with the machines of the lab, which are reached through loopback instead of their addresses."""
    # The name of the cluster is that of the directory, and a slurmctld that has run accepts no other.
    path = tmp_path_factory.mktemp("of") / "lab"
    workers = [f"--worker={name}={lab.address(name)}" for name in lab.workers]
    key = lab.directory / "key.pub"
    stead("init", path, f"--control={lab.control}={lab.address(lab.control)}", *workers, "--user=alice", f"--key={key}")
    lab.reach(path)
    lab.inventory, before = path / "hosts.yml", lab.inventory
    yield path
    lab.inventory = before


@pytest.mark.usefixtures("site")
def test_machines_get_the_account_once(lab: Any) -> None:
    words = ("--extra-vars", "bootstrap_login_user=debian", str(PLAYBOOKS / "bootstrap-hosts.yml"))

    first, second = lab.ansible(*words, plain=True), lab.ansible(*words, plain=True)

    assert first.code == 0, first.output
    assert set(first.changed) == set(lab.names)
    assert (second.code, second.changed) == (0, {})


def test_the_site_becomes_a_cluster_and_a_second_run_changes_nothing(
    lab: Any, site: pathlib.Path, stead: Callable[..., str]
) -> None:
    """The first run is without the accelerator, as `ansible-playbook site.yml` is."""
    stead("up", "--plain", "-i", site)
    lab.wait_until_idle(180)

    assert re.search(r"\b0 changes on 4 hosts", stead("up", cwd=site / "files"))
    nodes = len(lab.workers)
    assert sorted(lab.user(f"srun --nodes={nodes} hostname").split()) == sorted(lab.workers)
    assert {path.stem for path in (site / "hardware").glob("*.yml")} == set(lab.workers)


@pytest.mark.usefixtures("site")
def test_check_mode_finds_nothing_to_do(lab: Any) -> None:
    run = lab.ansible("--check", "--diff")

    assert run.code == 0, run.output
    assert run.changed == {}
    assert 20 < run.output.count("\nTASK [") <= TASKS


def test_without_a_site_nothing_is_run(stead: Callable[..., str]) -> None:
    said = stead("up", code=2)

    assert "-i DIR" in said and "STEAD_SITE" in said
