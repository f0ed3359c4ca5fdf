"""What RabbitMQ, Redis and Celery are told of the broker's users."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import pathlib
import re

import yaml
from jinja2.nativetypes import NativeEnvironment

from ansible.module_utils.slurmstead.identity import broker

PASSWORDS = {"alice": "one", "bob": "two"}
ROLE = pathlib.Path(__file__).resolve().parents[3] / "roles" / "celery_broker"


def test_a_new_user_gets_a_password_and_the_others_keep_theirs() -> None:
    passwords = broker.with_passwords(PASSWORDS, ["alice", "carol"])

    assert passwords["alice"] == "one"
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", passwords["carol"])


def test_no_two_passwords_are_the_same() -> None:
    passwords = broker.with_passwords({}, [f"user{number}" for number in range(100)])

    assert len(set(passwords.values())) == 100


def test_rabbitmq_can_check_the_hash() -> None:
    salted = base64.b64decode(broker.rabbitmq_hash("one"))

    assert salted[4:] == hashlib.sha256(salted[:4] + b"one").digest()


def test_a_second_run_writes_the_same() -> None:
    assert broker.definitions(PASSWORDS, ["alice", "bob"]) == broker.definitions(PASSWORDS, ["bob", "alice"])


def test_each_user_has_a_virtual_host_that_is_nobody_elses() -> None:
    found = json.loads(broker.definitions(PASSWORDS, ["alice", "bob"]))

    assert {(entry["user"], entry["vhost"]) for entry in found["permissions"]} == {("alice", "alice"), ("bob", "bob")}
    assert {user["tags"] for user in found["users"]} == {""}


def test_who_is_no_user_any_more_has_neither_password_nor_permissions() -> None:
    found = json.loads(broker.definitions(PASSWORDS, ["alice"]))
    bob = next(user for user in found["users"] if user["name"] == "bob")
    permissions = next(entry for entry in found["permissions"] if entry["user"] == "bob")

    assert bob["password_hash"] == ""
    assert (permissions["configure"], permissions["write"], permissions["read"]) == ("", "", "")


def test_each_user_has_a_redis_that_knows_no_other_user() -> None:
    lines = broker.redis_conf("alice", "one", 6380).splitlines()

    assert [line.split()[1] for line in lines if line.startswith("user ")] == ["default", "alice"]
    assert {"port 6380", "dir /var/lib/slurmstead-redis/alice", "user default off"} <= {*lines}


def test_no_user_of_redis_can_write_files_or_load_code() -> None:
    rules = broker.redis_conf("alice", "one", 6380).splitlines()[-1].split()

    # CONFIG, MODULE and DEBUG are in the first, MIGRATE and RESTORE in the second (redis.io/commands).
    assert {"-@admin", "-@dangerous"} <= set(rules[rules.index("+@all") :])


def test_a_port_belongs_to_a_user_for_ever() -> None:
    before = broker.with_passwords({}, ["carol", "alice"])
    after = broker.with_passwords(before, ["alice", "bob"])

    assert broker.redis_ports(before) == {"carol": 6379, "alice": 6380}
    assert broker.redis_ports(after) == {"carol": 6379, "alice": 6380, "bob": 6381}


def test_without_a_free_port_a_new_user_gets_that_of_one_who_had_left_before() -> None:
    first = [f"first{number}" for number in range(215)]
    second = [f"second{number}" for number in range(205)]
    left = broker.with_passwords(broker.with_passwords({}, ["alice", *first]), ["alice"])
    before = broker.with_passwords(left, ["alice", *second])
    after = broker.with_passwords(before, ["alice", *second, "carol", "dave"])
    ports = broker.redis_ports(after)

    assert {user: port for user, port in ports.items() if user in before} == {
        user: port for user, port in broker.redis_ports(before).items() if user not in ("first0", "first1")
    }
    assert [ports["carol"], ports["dave"]] == [6380, 6381]
    assert after["alice"] == before["alice"] and "" not in (after["carol"], after["dave"])


def test_the_port_of_a_user_who_leaves_now_is_not_given_to_another() -> None:
    """The Redis of that user still runs."""
    before = broker.with_passwords({}, [f"user{number}" for number in range(len(broker.REDIS_PORTS))])
    after = broker.with_passwords(before, ["carol"])

    assert after["user0"] == ""
    assert len(after) > len(broker.REDIS_PORTS)


def test_the_table_keeps_other_users_off_all_ports() -> None:
    redis = broker.REDIS_PORTS

    table = (ROLE / "templates" / "broker.nft.j2").read_text()
    assert f"{{ {broker.RABBITMQ_PORT}, {redis.start}-{redis.stop - 1} }}" in table


def test_the_password_of_a_former_user_is_forgotten() -> None:
    passwords = broker.with_passwords(PASSWORDS, ["bob"])

    assert passwords == {"alice": "", "bob": "two"}
    assert broker.with_passwords(passwords, ["alice"])["alice"] not in ("", "one")


def test_no_file_of_the_daemons_holds_a_password() -> None:
    passwords = broker.with_passwords({}, ["alice"])
    text = broker.definitions(passwords, ["alice"]) + broker.redis_conf("alice", passwords["alice"], 6379)

    assert passwords["alice"] not in text


def test_the_role_asks_for_all_accounts_and_not_for_those_with_a_name_of_their_own() -> None:
    files = [path for name in ("tasks", "templates", "vars") for path in (ROLE / name).iterdir()]
    readers = [path.name for path in files if re.search(r"(?<!__)celery_broker_(users|groups)", path.read_text())]

    assert files and readers == []


def test_a_run_fails_if_the_redis_of_a_user_does_not_start() -> None:
    """The target starts even if no Redis does."""
    tasks = yaml.safe_load((ROLE / "tasks" / "running.yml").read_text())
    (argv,) = (task["ansible.builtin.command"]["argv"] for task in tasks if "ansible.builtin.command" in task)
    environment = NativeEnvironment()
    environment.filters["product"] = itertools.product

    units = environment.from_string(argv).render(celery_broker_accounts=["alice", "bob"])
    assert units == ["systemctl", "start", "slurmstead-redis@alice", "slurmstead-redis@bob"]


def test_no_password_leaves_control_before_the_ports_are_protected() -> None:
    """A user of control could listen on them, and would be sent the passwords."""
    plays = yaml.safe_load((ROLE.parents[1] / "playbooks" / "configure-broker.yml").read_text())

    assert [play["name"] for play in plays][1:] == ["Run the broker", "Configure the broker's clients"]
