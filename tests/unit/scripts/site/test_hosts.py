"""Workers are added to hosts.yml, and nothing else in it changes."""

import pathlib

import pytest

from slurmstead.paths import ROOT
from slurmstead.site.file import replace
from slurmstead.site.hosts import Addition, edited

NEW = Addition("node9", {"os_address": "10.0.0.9", "router_mac": '"52:54:00:00:00:09"'}, ["16 cores"])

SITE = """\
---
# My cluster
all:
  vars: {slurm_cluster_name: mine}   # short
  hosts:
    node1:
      os_address: 10.0.0.1
      password: !vault |
        $ANSIBLE_VAULT;1.1

      # the old one

# below
workers:
  hosts:
    node1:  # first
control:
  hosts: {node1: }
"""


def test_the_lines_are_added_below_the_last_host_and_its_comments() -> None:
    block = '    node9:\n      os_address: 10.0.0.9\n      router_mac: "52:54:00:00:00:09"\n      # 16 cores\n'
    place, line = "      # the old one\n", "    node1:  # first\n"
    before = SITE.replace("\n\n      # the old one", "\n      # the old one")
    wanted = before.replace(place, place + block).replace(line, f"{line}    node9:\n")

    assert edited(before, [NEW]) == wanted


@pytest.mark.parametrize("name", ["lab", "rack", "turing-pi"])
def test_every_example_can_be_added_to_and_keeps_its_lines(name: str) -> None:
    before = (ROOT / "inventory" / name / "hosts.yml").read_text()
    after = edited(before, [NEW, Addition("node10", {"os_address": "10.0.0.10"})])
    added = [line for line in after.splitlines() if "node9" in line or "node10" in line]

    assert len(added) == 4
    assert [line for line in after.splitlines() if line in before.splitlines()] == before.splitlines()


def test_groups_in_groups_and_hosts_only_in_their_group() -> None:
    before = "all:\n  children:\n    workers:\n      hosts:\n        node1: {os_address: 10.0.0.1}"
    added = '        node9:\n          os_address: 10.0.0.9\n          router_mac: "52:54:00:00:00:09"\n'

    assert edited(before, [NEW]) == f"{before}\n{added}          # 16 cores\n"


def test_the_first_worker_is_added_to_an_empty_group() -> None:
    before = "all:\r\n  hosts:\r\n    head:\r\nworkers:\r\n  hosts:\r\n"

    assert edited(before, [Addition("a", {"os_address": "10.0.0.9"})]) == (
        "all:\r\n  hosts:\r\n    head:\r\n    a:\r\n      os_address: 10.0.0.9\r\nworkers:\r\n  hosts:\r\n    a:\r\n"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("workers: {hosts: {node1: }}\n", "not a list of names"),
        ("workers:\n  hosts: null\n", "write only `hosts:`"),
        ("control:\n  hosts:\n    a:\n", "no group `workers`"),
        ("[workers]\nnode1\n", "YAML|no group"),
        ("workers:\n  hosts:\n    node9:\n", "node9 is already in it"),
        ("a: &x\n  b:\nworkers:\n  hosts: *x\n", "without changing others"),
    ],
)
def test_a_file_that_cannot_be_added_to_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        edited(text, [NEW])


def test_writing_keeps_the_mode_and_a_link(tmp_path: pathlib.Path) -> None:
    real = tmp_path / "real.yml"
    real.write_text("a\n")
    real.chmod(0o640)
    (tmp_path / "hosts.yml").symlink_to(real)
    replace(tmp_path / "hosts.yml", "a\n", "b\r\n")

    assert (real.read_bytes(), real.stat().st_mode & 0o777) == (b"b\r\n", 0o640)
    assert (tmp_path / "hosts.yml").is_symlink()
