"""A user who leaves the inventory loses the cluster with one run, and gets it back with the number of before.

STEAD_LAB=NAME pytest tests/lab/people
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurmstead.paths import PLAYBOOKS

BOB, CAROL = 2002, 2003

OWN_KEY = "install -d -m 700 ~/.ssh && cat /etc/ssh/authorized_keys.d/bob > ~/.ssh/authorized_keys"
"""A key that bob keeps in his home lets him in as well as the one in the inventory."""

IN_LINE = ("sbatch --parsable --chdir=/tmp --output=/dev/null --nodelist=node1 --wrap='sleep 600'",) * 2
"""Jobs for a worker with room for one of them at most, if --exclusive."""


def people(lab: Any, *names: str, groups: tuple[str, ...] = (), **uids: int) -> str:
    """Return extra variables with the lab's own user and others, who log in with the same key."""
    key = (lab.directory / "key.pub").read_text().strip()
    numbers = {"alice": 2001, "bob": BOB, "carol": CAROL} | uids
    users = [{"name": name, "uid": numbers[name], "keys": [key]} for name in ("alice", *names)]
    users[-1]["groups"] = list(groups)
    return json.dumps({"accounts_users": users})


def run(lab: Any, variables: str, *more: str) -> Any:
    return lab.ansible("--extra-vars", variables, "--tags=accounts", *more)


def apply(lab: Any, variables: str, *more: str) -> Any:
    done = run(lab, variables, *more)
    assert done.code == 0, done.output
    return done


def doctor(lab: Any, variables: str) -> list[tuple[str, str, str]]:
    """Return host, text and advice of what the doctor says about bob and dave, with an inventory of other users."""
    done = lab.ansible("--extra-vars", variables, str(PLAYBOOKS / "run-doctor.yml"))
    # Ansible shows several lines as they are, and a single one whole only in its error.
    finding = r"^\s*(?:\[ERROR\]: Task failed: Action failed: )?(node\d): (.*?): (.*)$"
    lines = set(re.findall(finding, done.output, re.MULTILINE))
    assert (done.code == 0) == (not lines), done.output
    return sorted(line for line in lines if re.search("bob|dave", line[1]))


def logs_in(lab: Any, name: str, user: str = "bob") -> bool:
    """Say whether sshd lets a user in, over a new connection."""
    command = ["ssh", "-F", str(lab.directory / "ssh_config"), "-o", "ControlPath=none", f"{user}@{name}", "true"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60).returncode == 0


def queue(lab: Any) -> list[str]:
    return str(lab.root(lab.control, "squeue --noheader --format='%u %T'")).splitlines()


@pytest.fixture
def bob(lab: Any) -> Iterator[str]:
    """The extra variables of an inventory with bob, who may use sudo, and is a user of the whole cluster."""
    variables = people(lab, "bob", groups=("sudo",))
    apply(lab, variables)
    lab.user(OWN_KEY, name="bob")
    try:
        yield variables
    finally:
        lab.root(lab.control, "scancel --user=bob; true")
        apply(lab, people(lab))
        lab.everywhere(lambda name: lab.root(name, "userdel bob; groupdel bob; true"))
        lab.root(lab.control, "rm -rf /srv/share/home/bob")
        lab.wait_until_idle(120)


def test_a_user_who_leaves_the_inventory_loses_the_cluster_with_one_run(lab: Any, bob: str) -> None:
    without = people(lab)
    assert doctor(lab, bob) == []
    assert lab.everywhere(lambda name: logs_in(lab, name)) == dict.fromkeys(lab.names, True)
    for command in IN_LINE:
        lab.user(command.replace("sbatch", "sbatch --exclusive"), name="bob")
    for name in (lab.control, lab.workers[1]):
        # A session that outlives its connection, and one in which bob is root.
        lab.host(name, "bob").check_output("setsid sleep 1000 < /dev/null > /dev/null 2>&1 & true")
    lab.root(lab.control, "touch /var/lib/systemd/linger/bob")

    red = doctor(lab, without)
    shown = run(lab, without, "--check", "--diff")
    first = apply(lab, without)
    second = apply(lab, without)

    said = {host for host, seen, _ in red if "bob (2002) left the inventory, but can still log in" in seen}
    assert said == {*lab.names}
    assert "usermod --expiredate 1 --groups '' bob" in shown.output
    assert {*first.changed} == {*lab.names}
    assert second.changed == {}
    assert doctor(lab, without) == []
    assert lab.everywhere(lambda name: logs_in(lab, name)) == dict.fromkeys(lab.names, False)
    assert lab.everywhere(lambda name: logs_in(lab, name, "alice")) == dict.fromkeys(lab.names, True)
    assert [line for line in queue(lab) if line.startswith("bob ")] == []
    # Neither root nor a cron job can act as bob, and nothing of bob's runs.
    assert "expired" in lab.root(lab.control, "su bob -c id 2>&1; true")
    assert lab.everywhere(lambda name: lab.root(name, "pgrep --uid bob; id -nG bob")) == dict.fromkeys(lab.names, "bob")
    assert lab.root(lab.control, "ls -d /srv/share/home/bob/.ssh") != ""
    assert lab.root(lab.workers[0], "cat /etc/ssh/authorized_keys.d/bob") == ""
    # As from a machine that was off, and lets bob in until the next run.
    lab.without_login(lab.control, "bob", IN_LINE[0])
    assert [seen for _, seen, _ in doctor(lab, without)] == ["bob, who left the inventory, has jobs"]
    assert {*apply(lab, without).changed} == {lab.control}
    assert [line for line in queue(lab) if line.startswith("bob ")] == []


def test_the_jobs_of_several_who_leave_are_cancelled(lab: Any, bob: str) -> None:
    apply(lab, people(lab, "bob", "carol"))
    try:
        for name in ("bob", "carol"):
            lab.user(IN_LINE[0], name=name)
        apply(lab, people(lab))

        assert queue(lab) == []
    finally:
        lab.everywhere(lambda name: lab.root(name, "userdel carol; groupdel carol; true"))
        lab.root(lab.control, "rm -rf /srv/share/home/carol")


def test_jobs_of_a_user_who_leaves_go_on_if_they_are_kept(lab: Any, bob: str) -> None:
    node = lab.workers[0]
    lab.user(IN_LINE[0], name="bob")
    deadline = time.monotonic() + 60
    while queue(lab) != ["bob RUNNING"]:
        assert time.monotonic() < deadline, queue(lab)
        time.sleep(1)
    lab.host(node, "bob").check_output("setsid sleep 1000 < /dev/null > /dev/null 2>&1 & true")

    apply(lab, people(lab), "--extra-vars", '{"accounts_keep_jobs": true}')
    # Also the runs after it, which do not say so.
    again = apply(lab, people(lab))

    assert again.changed == {}
    assert not logs_in(lab, node)
    assert queue(lab) == ["bob RUNNING"]
    commands = lab.root(node, "ps --no-headers -o args -u bob").splitlines()
    assert "sleep 600" in commands
    assert "sleep 1000" not in commands


def test_a_user_who_comes_back_is_let_in_again_with_the_same_number(lab: Any, bob: str) -> None:
    apply(lab, people(lab))
    assert not logs_in(lab, lab.control)

    apply(lab, bob)

    assert lab.everywhere(lambda name: logs_in(lab, name)) == dict.fromkeys(lab.names, True)
    assert lab.user("id -u; id -nG; cat ~/.ssh/authorized_keys | wc -l", name="bob").split() == [
        *(str(BOB), "bob", "sudo", "1"),
    ]
    assert apply(lab, bob).changed == {}


def test_the_number_of_a_departed_user_is_given_to_no_other(lab: Any, bob: str) -> None:
    apply(lab, people(lab))

    refused = run(lab, people(lab, "carol", carol=BOB))

    assert refused.code != 0
    assert "Nothing was changed on any machine" in refused.output
    assert "uid 2002 of carol stays reserved for bob, who left the inventory" in refused.output


def test_a_group_that_leaves_the_inventory_is_taken_away(lab: Any, bob: str) -> None:
    fewer = people(lab, "bob", groups=("video",))

    red = doctor(lab, fewer)
    apply(lab, fewer)

    assert {host for host, seen, _ in red if "bob is in the group sudo" in seen} == {*lab.names}
    assert doctor(lab, fewer) == []
    assert lab.everywhere(lambda name: lab.root(name, "id -nG bob")) == dict.fromkeys(lab.names, "bob video")


def test_an_account_that_an_administrator_made_is_reported_and_left_alone(lab: Any, bob: str) -> None:
    node = lab.workers[0]
    key = (lab.directory / "key.pub").read_text().strip()
    lab.root(
        node,
        f"useradd --create-home --uid 1777 --groups sudo dave && install -d -o dave /home/dave/.ssh"
        f" && echo '{key}' > /home/dave/.ssh/authorized_keys && chown dave /home/dave/.ssh/authorized_keys",
    )
    try:
        apply(lab, bob)
        assert logs_in(lab, node, "dave")
        ((host, seen, advice),) = doctor(lab, bob)
        assert (host, seen) == (node, "the account dave (1777) is not in the inventory; it has 1 key and may use sudo")
        assert "accounts_by_hand" in advice
        by_hand = {**json.loads(bob), "accounts_by_hand": ["dave"]}
        assert doctor(lab, json.dumps(by_hand)) == []
    finally:
        lab.root(node, "userdel --force --remove dave 2>&1")


REACHABLE = (Path(__file__).parent / "reachable.py").read_text()
SECRET = "/root/slurmstead-bob.json"
"""A copy that bob kept of the broker's address and the password."""

BOTH, NEITHER = {"rabbitmq": True, "redis": True}, {"rabbitmq": False, "redis": False}
UNITS = "rabbitmq-server.service slurmstead-redis.target slurmstead-redis@alice.service slurmstead-redis@bob.service"


def broker(lab: Any, *users: str) -> Any:
    """Run what configures the broker for users of the cluster, with the packages."""
    variables = json.dumps({**json.loads(people(lab, "bob")), "celery_broker_users": users})
    done = lab.ansible("--extra-vars", variables, "--tags=os,broker", seconds=1800)
    assert done.code == 0, done.output
    return done


def test_a_user_who_leaves_the_broker_can_talk_to_it_no_more(lab: Any, bob: str) -> None:
    def active() -> list[bool]:
        # On a busy machine RabbitMQ may need longer to end than systemd lets it: it has failed then, and is off.
        return [state == "active" for state in lab.root(lab.control, f"systemctl is-active {UNITS}; true").split()]

    file = "/etc/slurmstead/celery/bob.json"
    try:
        broker(lab, "alice", "bob")
        lab.root(lab.control, f"cp {file} {SECRET}")
        before = lab.python(lab.control, REACHABLE, SECRET), active()
        broker(lab, "alice")
        other = lab.python(lab.control, REACHABLE, "/etc/slurmstead/celery/alice.json")
        without = lab.python(lab.control, REACHABLE, SECRET), active()
        # The last user too: after that, the broker has no users.
        lab.root(lab.control, f"cp /etc/slurmstead/celery/alice.json {SECRET}")
        broker(lab)
        nobody = lab.python(lab.control, REACHABLE, SECRET), active()
        again = broker(lab)
    finally:
        lab.root(lab.control, f"systemctl disable --now {UNITS} epmd.socket; rm -f {SECRET}; true", seconds=180)
        lab.everywhere(lambda name: lab.root(name, "rm -rf /etc/slurmstead/celery /etc/slurmstead/celery_broker.json"))

    assert before == (BOTH, [True] * 4)
    assert without == (NEITHER, [True, True, True, False])
    assert other == BOTH
    assert nobody == (NEITHER, [False] * 4)
    assert again.changed == {}
    assert lab.everywhere(lambda name: lab.root(name, "ls /etc/slurmstead/celery 2>/dev/null; true")) == dict.fromkeys(
        lab.names, ""
    )
