"""What slurm_shares changes in a database that already knows the people."""

from __future__ import annotations

import types
from collections.abc import Callable

import pytest

from ansible.module_utils.slurmstead.accounting.difference import Present
from ansible.module_utils.slurmstead.identity import departures
from ansible.module_utils.slurmstead.identity.departures import Made


@pytest.mark.parametrize("left", [True, False], ids=["locked", "not locked yet"])
def test_a_user_who_leaves_keeps_the_account_and_its_limits(
    load_module: Callable[[str], types.ModuleType], monkeypatch: pytest.MonkeyPatch, left: bool
) -> None:
    module = load_module("slurm_shares")
    record = {"ann": Made(2001, left), "bob": Made(2002, left), "eve": Made(2003), "carl": Made(2004)}
    monkeypatch.setattr(departures, "read", lambda: record)
    monkeypatch.setattr(module, "present", lambda *_: Present(defaults={"ann": "students", "carl": "staff"}))
    params = {
        "cluster": "c",
        "host": "h",
        "template": "course",
        "low": "none",
        "people": [],
        "by_hand": ["carl"],
        "accounts": {},
    }
    params |= {"users": {"carl": {"MaxJobs": 2}}, "qos": {}, "remove_users": [], "remove_accounts": []}
    changes = module.plan(params, *module.both_sides(params, ["ann", "bob", "carl", "debian"]))
    lines = [change.command for change in changes]

    assert not [line for line in lines if "ann" in line]
    assert [line for line in lines if "carl" in line and "MaxJobs" in line]
    # Without an account, pending jobs of bob's would be refused.
    assert [line for line in lines if "bob" in line and line.startswith("add user")]


def test_an_account_in_use_is_not_removed(
    load_module: Callable[[str], types.ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load_module("slurm_shares")
    monkeypatch.setattr(departures, "read", dict)
    monkeypatch.setattr(module, "present", lambda *_: Present(parents={"home": "root"}))
    params = {
        "cluster": "c",
        "host": "h",
        "template": "home",
        "low": "none",
        "people": [],
        "by_hand": ["carl"],
        "accounts": {},
    }

    with pytest.raises(ValueError, match="shares_remove_accounts has home, the account of user ann; nothing was"):
        module.both_sides(params | {"users": {}, "qos": {}, "remove_users": [], "remove_accounts": ["home"]}, ["ann"])


@pytest.mark.parametrize(("code", "said"), [(0, 1), (1, 0)], ids=["slurmctld answers", "it does not"])
def test_jobs_that_can_never_start_are_told(
    load_module: Callable[[str], types.ModuleType], monkeypatch: pytest.MonkeyPatch, code: int, said: int
) -> None:
    module = load_module("slurm_shares")
    monkeypatch.setattr(departures, "read", dict)
    monkeypatch.setattr(module, "present", lambda *_: Present(accounts={"bio": {"QOS": "normal,low"}}))
    monkeypatch.setattr(module, "run", lambda *_: (code, "7|ann|bio|normal\n", ""))
    params = {
        **{"cluster": "c", "host": "h", "template": "course", "low": "none", "by_hand": [], "accounts": {}},
        **{"people": [{"name": "ann", "account": "bio"}], "users": {}, "qos": {}},
        **{"remove_users": [], "remove_accounts": []},
    }

    both = module.both_sides(params, [])

    assert [line for line in module.plan(params, *both) if "QOS=course" in line.command]
    assert len(module.stranded(*both)) == said
