"""Submissions that were begun: one that was interrupted goes on, and two at once never meet."""

import json
import os
import pathlib
import pwd

import pytest

from slurmstead.client import head, pending
from slurmstead.errors import MachineError


def test_an_interrupted_submission_is_found_again() -> None:
    with pending.claim({"folder": "x"}) as kept:
        kept.remember("r1", "f1")
    with pending.claim({"folder": "x"}) as again:
        assert (again.run, again.fingerprint) == ("r1", "f1")
    with pending.claim({"folder": "y"}) as other:
        assert other.run == ""


def test_a_finished_submission_is_forgotten() -> None:
    with pending.claim("x") as kept:
        kept.remember("r1", "f1")
        kept.forget()
    with pending.claim("x") as again:
        assert again.run == ""


def test_what_is_forgotten_stays_so_after_a_power_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    on_disk: list[bool] = []
    with pending.claim("x") as kept:
        kept.remember("r1", "f1")
        monkeypatch.setattr(pending, "_sync", lambda: on_disk.append(kept.path.exists()))
        kept.forget()

    assert on_disk == [False]


def test_two_at_once_are_two() -> None:
    with pending.claim("x") as one, pending.claim("x") as other:
        one.remember("r1", "f")
        other.remember("r2", "f")
    with pending.claim("x") as one, pending.claim("x") as other, pending.claim("x") as third:
        assert sorted([one.run, other.run]) == ["r1", "r2"]
        assert third.run == ""


def test_an_interrupted_one_comes_before_a_new_one() -> None:
    with pending.claim("x") as one, pending.claim("x") as other:
        other.remember("r2", "f")
        assert one.run == ""
    with pending.claim("x") as again:
        assert again.run == "r2"


def test_submissions_that_ended_leave_no_file() -> None:
    for number in range(3):
        with pending.claim(number) as one, pending.claim(number):
            one.remember("r1", "f")
            one.forget()

    assert list(pending.directory().iterdir()) == []


def test_the_second_of_two_that_was_interrupted_is_found_though_the_first_left_nothing() -> None:
    with pending.claim("x"), pending.claim("x"), pending.claim("x") as third:
        third.remember("r3", "f")
    with pending.claim("x") as again:
        assert again.run == "r3"


def test_a_lock_that_was_removed_while_it_was_opened_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    real, opened = os.open, list[pathlib.Path]()

    def slow(path: pathlib.Path, *more: int) -> int:
        descriptor = real(path, *more)
        if not opened:
            path.unlink()
        opened.append(path)
        return descriptor

    monkeypatch.setattr(os, "open", slow)
    with pending.claim("x") as one, pending.claim("x") as other:
        assert one.path != other.path

    assert len(opened) > 2


def test_where_nothing_can_be_remembered_is_said(own_home: pathlib.Path) -> None:
    (own_home / ".local").write_text("")
    with pytest.raises(MachineError, match="cannot store submissions in .*: Not a directory"), pending.claim("x"):
        pass


def test_a_computer_that_knows_no_home_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: object) -> None:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(MachineError, match="home directory is unknown"):
        head.choose({}, {})


def test_what_is_half_written_is_no_submission() -> None:
    with pending.claim("x") as kept:
        kept.remember("r1", "f")
        kept.path.write_text(json.dumps({"run": "r1"})[:5])
    with pending.claim("x") as again:
        assert again.run == ""
