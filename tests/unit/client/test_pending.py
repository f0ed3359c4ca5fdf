"""Submissions that were begun: one that was interrupted goes on, and two at once never meet."""

import json

from slurmstead.client import pending


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


def test_many_after_each_other_need_one_place() -> None:
    for _ in range(3):
        with pending.claim("x"), pending.claim("x"):
            pass

    assert len(list(pending.directory().glob("*.lock"))) == 2


def test_what_is_half_written_is_no_submission() -> None:
    with pending.claim("x") as kept:
        kept.remember("r1", "f")
        kept.path.write_text(json.dumps({"run": "r1"})[:5])
    with pending.claim("x") as again:
        assert again.run == ""
