"""Invitations: what the machine of the hub keeps of them."""

from __future__ import annotations

import os
import pathlib
import pwd
import time
import types

import pytest

from ansible.module_utils.slurmstead.identity import departures
from ansible.module_utils.slurmstead.jupyterhub import invitation

ONE, TWO = "1" * 64, "2" * 64


@pytest.fixture(autouse=True)
def accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounts: alice and bob are people, backup is of the system."""
    known = {"alice": 2001, "bob": 2002, "backup": 34, "dave": 2004}
    monkeypatch.setattr(departures, "locks", lambda: {"dave": departures.Lock(expired=True)})
    monkeypatch.setattr(pwd, "getpwnam", lambda name: types.SimpleNamespace(pw_uid=known[name]))


def test_people_with_an_account_can_be_invited() -> None:
    assert list(invitation.problems({"alice": ONE, "bob": TWO})) == []


def test_others_cannot() -> None:
    assert list(invitation.problems({"carol": ONE, "backup": ONE, "bob": "../../etc/passwd", "dave": ONE})) == [
        "carol has no account here; `stead up` creates those of the inventory",
        "backup is an account of the system",
        "the invitation of bob is not a SHA-256",
        "dave is locked: run `stead people expire dave --on never` or `stead people add dave`, then `stead up`",
    ]


def test_a_new_invitation_replaces_those_of_the_same_person_and_old_ones(tmp_path: pathlib.Path) -> None:
    old = time.time() - invitation.SECONDS - 60
    invitation.write({"alice": "a" * 64, "bob": "b" * 64}, tmp_path)
    invitation.write({"carol": "c" * 64}, tmp_path)
    os.utime(tmp_path / ("c" * 64), (old, old))

    invitation.write({"alice": ONE}, tmp_path)

    assert {path.name for path in tmp_path.iterdir()} == {ONE, "b" * 64}


def test_only_root_reads_who_is_invited(tmp_path: pathlib.Path) -> None:
    invitation.write({"alice": ONE}, tmp_path / "new")

    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new" / ONE).stat().st_mode & 0o777 == 0o600
