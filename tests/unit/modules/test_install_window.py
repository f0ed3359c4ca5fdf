"""The window through which one machine is installed: what is served, and what a run waits for."""

from __future__ import annotations

import json
import os
import pathlib
import socket
import stat
from typing import Any

import pytest

from ansible.module_utils.slurmstead.install.plan import PORT
from tests.unit.modules.conftest import RunModule, load

KEY = "SHA256:" + "k" * 43

PLAN = {
    "node": "node5",
    "mac": "52:54:00:AB:00:05",
    "address": "127.0.0.5",
    "network": "127.0.0.0/8",
    "router": "127.0.0.1",
    "domain": "cluster",
    "user": "ansible",
    "keys": ["ssh-ed25519 AAAA me"],
    "disk": "A1",
}


@pytest.fixture
def units(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What systemctl was asked for; the machine has no ssh."""
    module = load("install_window")
    calls: list[tuple[str, ...]] = []

    def run(*words: str, **_: Any) -> tuple[int, str, str]:
        calls.append(words)
        return 0, "", ""

    monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(module, "answers", lambda _: False)
    monkeypatch.setattr(module, "DIRECTORY", tmp_path / "served")
    monkeypatch.setattr(module, "REPORTS", tmp_path / "reports")
    (tmp_path / "checksum").write_text("5a\n")
    return calls


def test_it_opens_for_one_machine_without_old_reports(
    run_module: RunModule, units: list[tuple[str, ...]], tmp_path: pathlib.Path
) -> None:
    (tmp_path / "reports").write_text('{"stage": "installed", "host_key": "SHA256:old"}\n')
    done = run_module("install_window", state="open", plan=PLAN, image=str(tmp_path))
    served = json.loads((tmp_path / "served/served").read_text())

    assert done.changed
    assert not (tmp_path / "reports").exists()
    assert units == [("systemctl", "restart", "slurmstead-install.service")]
    assert (served["node"], json.loads(served["texts"]["plan"])["checksum"]) == ("127.0.0.5", "5a")
    assert f"127.0.0.1:{PORT}/{served['token']}/boot" in (tmp_path / "served/dnsmasq.conf").read_text()


def test_the_server_without_rights_can_read_it_whatever_the_umask(
    run_module: RunModule, units: list[tuple[str, ...]], tmp_path: pathlib.Path
) -> None:
    before = os.umask(0o077)
    try:
        run_module("install_window", state="open", plan=PLAN, image=str(tmp_path))
    finally:
        os.umask(before)

    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("served", "served/served")] == [0o755, 0o644]


@pytest.mark.parametrize(
    ("last", "key", "option"),
    [("127.0.0.5", KEY, f" --host-key {KEY}"), ("127.0.0.5", "$(reboot)", ""), ("127.0.0.6", KEY, "")],
)
def test_a_machine_that_has_a_system_is_not_installed_and_its_next_step_is_named(
    run_module: RunModule,
    units: list[tuple[str, ...]],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    last: str,
    key: str,
    option: str,
) -> None:
    run_module("install_window", state="open", plan={**PLAN, "address": last}, image=str(tmp_path))
    units.clear()
    (tmp_path / "reports").write_text(f'{{"stage": "started"}}\n{{"stage": "installed", "host_key": "{key}"}}\n')
    monkeypatch.setattr(load("install_window"), "answers", lambda address: address == "127.0.0.5")
    done = run_module("install_window", state="open", plan=PLAN, image=str(tmp_path))

    assert done.failed
    assert "node5 answers ssh at 127.0.0.5, so it has a system; nothing was started" in done.message
    assert f"run `scripts/stead add-node node5{option}`" in done.message
    assert units == []


def test_a_listening_ssh_is_an_answer() -> None:
    with socket.create_server(("127.0.0.5", 0)):
        assert load("install_window").answers("127.0.0.6") is False


@pytest.mark.parametrize(
    ("reports", "failed", "said"),
    [
        (
            [{"stage": "started"}, {"stage": "writing", "disk": "sda"}, {"stage": "installed", "host_key": KEY}],
            False,
            "",
        ),
        ([{"stage": "started"}, {"stage": "refused", "text": "not blank"}], True, "the machine refused: not blank"),
        ([{"stage": "started"}, {"stage": "failed", "text": "no space"}], True, "the machine failed: no space"),
        ([{"stage": "started"}], True, "after 0 minutes the machine did not finish"),
        ([], True, "after 0 minutes the machine did not finish"),
    ],
)
def test_it_waits_for_what_the_machine_reports(
    run_module: RunModule,
    units: list[tuple[str, ...]],
    tmp_path: pathlib.Path,
    reports: list[dict[str, str]],
    failed: bool,
    said: str,
) -> None:
    (tmp_path / "reports").write_text("".join(json.dumps(one) + "\n" for one in reports))
    done = run_module("install_window", state="installed", deadline=0)

    assert done.failed == failed
    assert said in (done.message if failed else "")
    if not failed:
        assert done.result["report"] == {"stage": "installed", "disk": "sda", "host_key": KEY}
    assert ("systemctl", "stop", "slurmstead-install.service") not in units


def test_a_run_that_only_checks_opens_nothing(
    run_module: RunModule, units: list[tuple[str, ...]], tmp_path: pathlib.Path
) -> None:
    done = run_module("install_window", check=True, state="open", plan=PLAN, image=str(tmp_path))

    assert done.changed
    assert units == []
