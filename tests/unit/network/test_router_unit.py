"""Control forwards only while the router's table is loaded."""

from __future__ import annotations

import pathlib
from typing import Any

import yaml

ROOT = pathlib.Path(__file__).parents[3]
ROLE = ROOT / "roles/router"
UNIT = (ROOT / "tests/unit/golden/router/router.service").read_text()
ON, OFF = (f"/bin/sh -c 'echo {value} > /proc/sys/net/ipv4/ip_forward'" for value in (1, 0))
LOAD = "/usr/sbin/nft --file /etc/slurmstead/router.nft"
OLD = "/etc/sysctl.d/60-slurmstead-router.conf"
"""The file of earlier versions, which a boot read before the table was loaded."""


def commands(verb: str) -> list[str]:
    """Return what the unit runs, in its order."""
    return [line.partition("=")[2] for line in UNIT.splitlines() if line.startswith(f"{verb}=")]


def files() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((ROLE / "vars/main.yml").read_text())["__router_files"]
    return found


def test_forwarding_begins_after_the_table_is_loaded() -> None:
    assert (commands("ExecStart"), commands("ExecStartPost")) == ([LOAD], [ON])
    assert commands("ExecReload") == [LOAD, ON]


def test_forwarding_ends_before_the_table_is_deleted_and_other_files_of_sysctl_count() -> None:
    off, others, delete = commands("ExecStop")

    # Without a minus: where this fails, systemd does not run the others.
    assert off == OFF
    assert others == "-/usr/lib/systemd/systemd-sysctl --prefix=/net/ipv4/ip_forward"
    assert delete == "-/usr/sbin/nft delete table ip slurmstead_router"


def test_no_file_of_sysctl_switches_forwarding_on_before() -> None:
    written = [file for file in files() if "/sysctl.d/" in file["path"]]

    assert written == [{"path": OLD, "state": "absent"}]
    assert "systemd-sysctl.service" in UNIT.partition("After=")[2].splitlines()[0]


def test_a_router_of_an_earlier_version_stops_forwarding_before_its_unit_stops() -> None:
    first, *_ = yaml.safe_load((ROLE / "tasks/absent.yml").read_text())
    (file,) = first["config_files"]["files"]

    assert (file["path"], file["state"], file["apply"][0]) == (OLD, "absent", OFF)


def test_a_run_repairs_forwarding_that_was_switched_off() -> None:
    (unit,) = [file for file in files() if file["path"].endswith("/slurmstead-router.service")]

    assert unit["loaded"].endswith("1 /proc/sys/net/ipv4/ip_forward")
