"""What is said of a cluster on which something is wrong, and that nothing is said of a healthy one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from ansible.module_utils.slurmstead.change.classify import classify
from ansible.module_utils.slurmstead.doctor.findings import Cluster, Finding, findings, slurm
from ansible.module_utils.slurmstead.identity.accounts import User
from tests.doctor_facts import ADDRESSES, CONF, CONTROL, FILES, FOUND, KEY, NAMES, WORKERS, healthy

ALICE = User("alice", 2001, "alice", (), "", "/bin/bash", (KEY,))


def judge(machines: dict[str, dict[str, Any]], **more: Any) -> list[Finding]:
    known: dict[str, Any] = {"accounts": {"alice": (2001, 2001)}, "groups": {"alice": 2001}, "files": FILES}
    known["users"] = {"alice": ALICE}
    known["by_hand"] = frozenset({"debian"})
    return findings(Cluster(CONTROL, ADDRESSES, machines, **{**known, **more}))


def lines(found: list[Finding]) -> list[str]:
    return [f"{finding.about}: {finding.host}: {finding.seen}" for finding in found]


def test_nothing_is_said_of_a_healthy_cluster() -> None:
    assert judge(healthy()) == []


def at(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return what changes one value."""

    def change(machines: dict[str, Any]) -> None:
        place = machines
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


def stopped(name: str, word: str, **how: Any) -> Callable[[dict[str, Any]], None]:
    return lambda machines: machines[name]["units"][word].update({"active": "inactive", "sub": "dead", "pid": 0, **how})


def path(name: str, where: str, **state: Any) -> Callable[[dict[str, Any]], None]:
    return lambda machines: machines[name]["paths"][where].update(state)


def other_release(machines: dict[str, Any]) -> None:
    machines["node1"].update(release="debian 13", packages={"munge": "0.5.16-1", "slurmd": "24.11.5-4"})
    machines["node3"]["slurm"]["nodes"]["node1"]["Version"] = "24.11.5"


def other_group(machines: dict[str, Any]) -> None:
    for name in NAMES:
        machines[name]["groups"]["lab"] = 3002 if name == "node1" else 3001


def stranger(name: str, user: str, number: int, **made: Any) -> Callable[[dict[str, Any]], None]:
    """Return what adds an account that the inventory does not have; `made` if it is one of those that we create."""

    def change(machines: dict[str, Any]) -> None:
        people = machines[name]["people"]
        people["numbers"][user] = number
        people["keys"][user] = [KEY]
        people["sudo"][user] = "sudo"
        if made:
            people["made"][user] = {"left": False, "jobs": False, "groups": ["sudo"], **made}

    return change


def departed_with_jobs(machines: dict[str, Any]) -> None:
    machines["node3"]["people"]["made"]["bob"] = {"left": True, "jobs": True, "groups": []}
    machines["node3"]["slurm"]["users"] = ["alice", "bob"]


OPEN = {"address": "0.0.0.0", "port": 8888, "process": "jupyter", "pid": 77}

FAULTS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "another name": (at("node1", "name", value="ubuntu"), "name: node1: its host name is ubuntu"),
    "another address": (
        at("node1", "addresses", value=["10.0.0.99"]),
        "address: node1: it has the address 10.0.0.99, not 10.0.0.1",
    ),
    "resolved to another": (
        at("node1", "misresolved", "node2", value=["10.0.0.9"]),
        "resolution: node1: it resolves node2 to 10.0.0.9",
    ),
    "names unknown": (
        lambda machines: machines["node1"].update(misresolved={"node1": ["127.0.1.1"], "node2": [], "node3": []}),
        "resolution: node1: it resolves node1 to 127.0.1.1 and cannot resolve node[2-3]",
    ),
    "no firewall": (at("node1", "tables", value=["ip nat"]), "firewall: node1: its firewall is not loaded"),
    "rpcbind": (
        at("node1", "listening", value=[{"address": "0.0.0.0", "port": 111, "process": "rpcbind", "pid": 8}]),
        "port: node1: port 111 listens on all networks (rpcbind, process 8)",
    ),
    "open port": (
        at("node1", "listening", value=[OPEN]),
        "port: node1: port 8888 listens on all networks (jupyter, process 77)",
    ),
    "open UDP port": (
        at("node1", "udp", value=[{**OPEN, "port": 5353, "process": "avahi-daemon"}]),
        "port: node1: UDP port 5353 listens on all networks (avahi-daemon, process 77)",
    ),
    "a firewall": (
        at("node1", "unreached", value={"node2": {"6818": "no answer", "60001": "No route to host"}}),
        "firewall: node1: it does not reach node2 on TCP port 6818 (no answer) and 60001 (No route to host)",
    ),
    "another MTU": (
        at("node1", "mtus", "10.0.0.1", value=9000),
        "mtu: node1: the MTU of its network is 9000, but 1500 on node[2-3]",
    ),
    "read-only export": (
        at("node3", "exports", value=[{"path": "/srv/share", "client": "10.0.0.1", "readonly": True}]),
        "export: node3: /srv/share is exported read-only to 10.0.0.1",
    ),
    "no slurmdbd": (
        at("node3", "accounting", value={"error": "Connection refused", "waiting": 12}),
        "accounting: node3: slurmdbd does not answer: Connection refused, and slurmctld keeps 12 records for it",
    ),
    "swap": (at("node1", "swap", value=64), "swap: node1: 64 MiB of swap are in use"),
    "a step of no job": (
        at("node2", "steps", value={"23": 61.0, "24": 59.0}),
        "orphan: node2: it has a slurmstepd of job 23, which slurmctld does not know",
    ),
    "a job on no node": (
        at("node1", "steps", value={}),
        "job: node1: slurmctld has job 7 running here, but no process of it is left",
    ),
    "clock ahead": (
        at("node1", "offset", value=[597.0, 602.0]),
        "clock: node1: its clock is at least 595 s ahead of that of node3",
    ),
    "clock behind": (
        at("node1", "offset", value=[-3602.0, -3598.0]),
        "clock: node1: its clock is at least 3596 s behind that of node3",
    ),
    "clock off by chrony": (
        at("node1", "clock", value={"offset": -1.6, "error": ""}),
        "clock: node1: its clock is 2 s off according to chrony",
    ),
    "no time source": (
        at("node1", "clock", value={"offset": None, "error": "no time source"}),
        "time: node1: chrony: no time source",
    ),
    "user missing": (
        at("node1", "accounts", value={"slurm": [64030, 64030]}),
        "accounts: node1: the user alice is missing",
    ),
    "user with another number": (
        at("node1", "accounts", "alice", value=[2002, 2001]),
        "accounts: node1: alice has the IDs 2002:2001, but 2001:2001 in the inventory",
    ),
    "system user with another number": (
        at("node1", "accounts", "slurm", value=[991, 991]),
        "accounts: node1: slurm has the IDs 991:991, but 64030:64030 on node3",
    ),
    "group missing": (at("node1", "groups", value={}), "groups: node1: the group alice is missing"),
    "group with another number": (
        at("node1", "groups", "alice", value=2002),
        "groups: node1: the group alice has the ID 2002, but 2001 in the inventory",
    ),
    "another group with another number": (
        other_group,
        "groups: node1: the group lab has the ID 3002, but 3001 on node3",
    ),
    "departed": (
        stranger("node1", "bob", 2002, left=False),
        "people: node1: bob (2002) left the inventory, but can still log in",
    ),
    "account by hand": (
        stranger("node1", "bob", 1001),
        "people: node1: the account bob (1001) is not in the inventory; it has 1 key and may use sudo",
    ),
    "returned": (
        at("node1", "people", "made", "alice", "left", value=True),
        "people: node1: alice is in the inventory, but still locked",
    ),
    "departed with jobs": (
        departed_with_jobs,
        "people: node3: bob, who left the inventory, has jobs",
    ),
    "group too many": (
        at("node1", "people", "made", "alice", "groups", value=["sudo", "video"]),
        "members: node1: alice is in the group sudo, video, unlike in the inventory",
    ),
    "another authorized key": (
        at("node1", "people", "keys", "alice", value=[KEY, "ssh-rsa BBBB"]),
        "keys: node1: /etc/ssh/authorized_keys.d/alice differs from the keys in the inventory",
    ),
    "no keys": (
        at("node1", "people", "keys", value={}),
        "keys: node1: /etc/ssh/authorized_keys.d/alice differs from the keys in the inventory",
    ),
    "keys without a user": (
        at("node1", "people", "keys", "dave", value=[KEY]),
        "keys: node1: /etc/ssh/authorized_keys.d/dave is for a user who is not in the inventory",
    ),
    "keys of root": (
        at("node1", "people", "own_keys", "root", value=2),
        "keys: node1: 2 keys in /root/.ssh/authorized_keys can log in as root",
    ),
    "sudo by a group": (
        at("node1", "people", "sudo", "alice", value="sudo"),
        "sudo: node1: alice may use sudo through the group sudo, which the inventory does not say",
    ),
    "sudo by a rule": (
        at("node1", "people", "sudo", "backup", value=""),
        "sudo: node1: backup may use sudo by a rule in sudoers, which the inventory does not say",
    ),
    "another key": (at("node1", "key", "digest", value="d2"), "key: node1: its MUNGE key differs from that of node3"),
    "no key": (
        at("node1", "key", value={"error": "No such file or directory"}),
        "key: node1: /etc/munge/munge.key cannot be read: No such file or directory",
    ),
    "readable key": (
        at("node1", "key", "mode", value="0444 munge:munge"),
        "key: node1: its MUNGE key is 0444 munge:munge; expected 0400 munge:munge",
    ),
    "munge hangs": (
        at("node1", "credential", value={"error": "timed out after 15 seconds"}),
        "munge: node1: it cannot sign credentials: timed out after 15 seconds",
    ),
    "stopped": (stopped("node1", "slurmd"), "service slurmd: node1: slurmd is not running (inactive)"),
    "failed": (
        stopped("node1", "slurmd", active="failed", result="exit-code"),
        "service slurmd: node1: slurmd is not running (failed, exit-code)",
    ),
    "fails again and again": (
        stopped("node3", "slurmctld", active="activating", sub="auto-restart", result="signal"),
        "service slurmctld: node3: slurmctld is not running (auto-restart, signal)",
    ),
    "says why it ends": (
        stopped("node3", "slurmctld", active="failed", result="exit-code", said="CLUSTER NAME MISMATCH"),
        "service slurmctld: node3: slurmctld is not running (failed, exit-code): CLUSTER NAME MISMATCH",
    ),
    "not installed": (
        stopped("node1", "chrony", load="not-found"),
        "service chrony: node1: chrony is not installed",
    ),
    "masked": (
        stopped("node1", "slurmd", load="masked", reload=True),
        "service slurmd: node1: slurmd is masked, so it is never started",
    ),
    "description with a mistake": (
        at("node1", "units", "slurmd", "load", value="bad-setting"),
        "service slurmd: node1: slurmd cannot be started (bad-setting)",
    ),
    "not started at boot": (
        at("node1", "units", "munge", "enabled", value="disabled"),
        "boot: node1: munge is not enabled at boot",
    ),
    "another unit failed": (
        at("node1", "failed", value=["backup.service"]),
        "failed: node1: backup.service failed",
    ),
    "description changed": (
        at("node1", "units", "slurmd", "reload", value=True),
        "reload: node1: the unit file of slurmd was changed, and systemd has not reloaded it",
    ),
    "program replaced": (
        at("node1", "units", "munge", "outdated", value="/usr/sbin/munged"),
        "outdated: node1: munge is older than its package: /usr/sbin/munged was replaced after it started",
    ),
    "older slurmctld runs": (
        at("node3", "slurm", "version", value="22.05.3"),
        "outdated: node3: slurmctld runs version 22.05.3, but 22.05.8 is installed",
    ),
    "older slurmd runs": (
        at("node3", "slurm", "nodes", "node2", "Version", value="22.05.3"),
        "outdated: node2: slurmd runs version 22.05.3, but 22.05.8 is installed",
    ),
    "one package is older": (
        at("node1", "packages", "munge", value="0.5.15-1"),
        "version: node1: munge 0.5.15-1 is installed here, but 0.5.15-2 on node[2-3]",
    ),
    "releases that do not fit": (
        other_release,
        "mixture: node1: slurmctld 22.05 on node3 is incompatible with its Slurm 24.11",
    ),
    "not mounted": (path("node1", "/scratch", source=None), "mount: node1: nothing is mounted on /scratch"),
    "share not mounted on its server": (
        path("node3", "/share", source=None, id="/"),
        "mount: node3: nothing is mounted on /share",
    ),
    "read-only": (path("node1", "/scratch", readonly=True), "mount: node1: /scratch is read-only"),
    "no answer": (
        path("node1", "/share", error="no answer within 8 s"),
        "mount: node1: /share does not answer: no answer within 8 s",
    ),
    "share on the system's disk": (
        path("node3", "/share", id="/"),
        "separation: node3: /share is a directory of the server's own disk, which users of the share can fill",
    ),
    "full": (path("node1", "/", free=900), "space: node1: / is nearly full: 900 of 30000 MiB are free"),
    "no inodes": (
        path("node1", "/", free_inodes=0),
        "space: node1: / is nearly out of inodes: 0 of 1000",
    ),
    "no memory controller": (
        at("node1", "cgroup", value={"mode": "v2", "controllers": ["cpu", "cpuset"]}),
        "cgroup: node1: no cgroup controller memory",
    ),
    "slurmctld silent here": (
        at("node1", "slurm", value={"files": {}, "fetched": FOUND, "error": "timed out"}),
        "answer: node1: slurmctld does not answer it: timed out",
    ),
    "state of another": (
        at("node3", "slurm", "unwritable", value=["slurm cannot write to /var/lib/slurm/slurmctld"]),
        "state: node3: slurm cannot write to /var/lib/slurm/slurmctld",
    ),
    "edited": (
        at("node3", "slurm", "files", "slurm.conf", value=CONF.replace("25000", "7")),
        "configuration: node3: /etc/slurm differs from the inventory: MaxJobCount: 7 → 25000",
    ),
    "not loaded": (
        at("node3", "slurm", "match", value=False),
        "loaded: node3: slurmctld has not loaded the current /etc/slurm/slurm.conf",
    ),
    "files of its own": (
        at("node1", "slurm", "files", value={"slurm.conf": CONF}),
        "own: node1: /etc/slurm has its own slurm.conf, which hides that of node3",
    ),
    "an older configuration": (
        at("node1", "slurm", "fetched", value={**FOUND, "slurm.conf": CONF.replace("25000", "7")}),
        "fetched: node1: its configuration differs from that of node3: MaxJobCount: 7 → 25000",
    ),
    "no configuration": (
        at("node1", "slurm", "fetched", value={}),
        "fetched: node1: its configuration was not fetched",
    ),
    "a file less": (
        at("node1", "slurm", "fetched", value={"slurm.conf": CONF}),
        "fetched: node1: its configuration differs from that of node3: cgroup.conf: ConstrainCores: not set → yes",
    ),
    "slurmd not restarted": (
        at("node3", "slurm", "restarts", value=["node1"]),
        "restart: node1: slurmd still needs a restart for the changed configuration",
    ),
    "drained": (
        at("node3", "slurm", "nodes", "node1", value={"State": "IDLE+DRAIN", "Reason": "fan [root@2026-11-20]"}),
        "node: node1: slurmctld gives it no jobs: IDLE+DRAIN, fan [root@2026-11-20]",
    ),
    "too busy to show nodes": (
        lambda machines: machines["node3"]["slurm"].update(nodes={}, error="it reports no nodes"),
        "answer: node3: slurmctld does not answer it: it reports no nodes",
    ),
    "down": (
        at("node3", "slurm", "nodes", "node1", value={"State": "DOWN*", "Reason": "Not responding"}),
        "node: node1: slurmctld gives it no jobs: DOWN*, Not responding",
    ),
    "not in Slurm": (
        lambda machines: machines["node3"]["slurm"]["nodes"].pop("node1"),
        "node: node1: slurmctld does not know it",
    ),
    "partition down": (
        at("node3", "slurm", "partitions", "main", value="DOWN"),
        "partition: node3: the partition main is DOWN, but UP in the inventory",
    ),
}


@pytest.mark.parametrize(("change", "expected"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_found_alone_and_named(change: Callable[[dict[str, Any]], None], expected: str) -> None:
    machines = healthy()
    change(machines)
    found = judge(machines)

    assert lines(found) == [expected]
    assert all(finding.advice for finding in found)


def test_a_machine_that_is_silent_is_a_finding_and_the_others_are_judged() -> None:
    machines = healthy()
    del machines["node2"]
    machines["node3"]["slurm"]["nodes"]["node2"] = {"State": "DOWN*", "Reason": "Not responding"}
    machines["node1"]["failed"] = ["backup.service"]
    found = judge(machines, silent={"node2": "Connection refused"})

    assert lines(found) == [
        "failed: node1: backup.service failed",
        "ssh: node2: it cannot be checked (Connection refused)",
    ]


def test_without_control_the_workers_are_judged() -> None:
    machines = healthy()
    del machines["node3"]
    for name in WORKERS:
        machines[name]["slurm"] |= {"error": "timed out"}
    machines["node1"]["key"]["mode"] = "0644 munge:munge"

    assert [finding.about for finding in judge(machines, silent={"node3": "timed out"})] == ["key", "ssh"]


def test_a_clock_of_control_that_is_off_is_told_of_there() -> None:
    machines = healthy()
    for name in WORKERS:
        machines[name]["offset"] = [-602.1, -598.1]
        machines[name]["clock"]["offset"] = -600.0
    refused = {"node3": {name: "Rewound credential" for name in WORKERS}}

    assert lines(judge(machines, refused=refused)) == [
        "clock: node3: its clock is at least 596 s ahead of the clocks of all others"
    ]


def test_clocks_that_agree_with_none_are_told_of_one_by_one() -> None:
    machines = healthy()
    machines["node1"]["offset"] = [-602.1, -598.1]
    machines["node2"]["offset"] = [-62.1, -58.1]

    assert [(finding.about, finding.host) for finding in judge(machines)] == [("clock", "node1"), ("clock", "node2")]


def test_credentials_that_are_refused_for_another_key_say_so_once() -> None:
    machines = healthy()
    machines["node1"]["key"]["digest"] = "d2"
    refused = {"node1": {"node2": "Invalid", "node3": "Invalid"}, "node2": {"node1": "Invalid"}}

    assert lines(judge(machines, refused=refused)) == ["key: node1: its MUNGE key differs from that of node3"]


def test_a_munge_that_was_not_restarted_after_its_key_is_named() -> None:
    machines = healthy()
    machines["node1"]["key"]["written"] = 2000.0
    refused = {"node1": {"node2": "Invalid"}, "node2": {"node1": "Invalid"}, "node3": {"node1": "Invalid"}}

    assert lines(judge(machines, refused=refused)) == ["munge: node1: munge still uses the previous key"]


def test_a_credential_that_is_refused_for_no_known_reason_is_told_in_its_direction() -> None:
    refused = {"node2": {"node1": "unmunge: Error: Replayed credential"}}

    assert lines(judge(healthy(), refused=refused)) == [
        "credential: node2: it cannot decode credentials of node1 (Error: Replayed credential)"
    ]


@pytest.mark.parametrize("center", ["node3", "node1"], ids=["control", "without control"])
def test_the_machine_whose_key_in_memory_differs_is_named(center: str) -> None:
    """Only one machine exchanges credentials with all others: control, or the first that answers."""
    said = "Invalid credential"
    machines = healthy()
    others = [name for name in NAMES if name != center]
    if center != "node3":
        machines["node3"]["credential"] = {"error": "", "text": ""}
        machines["node4"] = {**machines["node2"], "name": "node4"}
        machines["node4"]["addresses"] = ["10.0.0.4"]
        others = ["node2", "node4"]
    for odd in (center, others[0]):
        wrong = others if odd == center else [odd]
        refused = {center: dict.fromkeys(wrong, said), **{name: {center: said} for name in wrong}}

        found = judge(machines, refused=refused)

        assert [(finding.about, finding.host) for finding in found if finding.about == "credential"] == [
            ("credential", odd)
        ]


def test_a_refusal_in_one_direction_is_told_at_the_machine_that_is_not_control() -> None:
    assert lines(judge(healthy(), refused={"node3": {"node1": "unmunge: Error: Replayed credential"}})) == [
        "credential: node1: node3 cannot decode its credentials (Error: Replayed credential)"
    ]


def test_keys_that_all_differ_from_controls_are_findings_of_their_machines_only() -> None:
    machines = healthy()
    for name in WORKERS:
        machines[name]["key"]["digest"] = "d2"
    refused = {"node3": dict.fromkeys(WORKERS, "Invalid"), **{name: {"node3": "Invalid"} for name in WORKERS}}

    assert {finding.about for finding in judge(machines, refused=refused)} == {"key"}


def test_a_dead_slurmctld_is_told_of_once() -> None:
    machines = healthy()
    stopped("node3", "slurmctld")(machines)
    for name in NAMES:
        machines[name]["slurm"] = {"files": {}, "fetched": FOUND, "error": "connect failure"}
    machines["node3"]["slurm"]["files"] = FOUND

    assert [finding.about for finding in judge(machines)] == ["service slurmctld"]


def share_silent(machines: dict[str, Any]) -> None:
    for name in WORKERS:
        machines[name]["paths"]["/share"] |= {"error": "no answer in 8 s", "source": "10.0.0.3:/srv", "type": "nfs4"}


def test_a_dead_nfs_server_is_told_of_once() -> None:
    machines = healthy()
    stopped("node3", "nfs-server")(machines)
    share_silent(machines)
    machines["node1"]["failed"] = ["share.mount"]

    assert lines(judge(machines)) == ["service nfs-server: node3: nfs-server is not running (inactive)"]


def test_the_share_of_a_machine_that_is_off_is_its_consequence() -> None:
    machines = healthy()
    del machines["node3"]
    share_silent(machines)
    machines["node2"]["paths"]["/scratch"]["error"] = "Input/output error"

    assert [(finding.about, finding.host) for finding in judge(machines, silent={"node3": "timed out"})] == [
        ("mount", "node2"),
        ("ssh", "node3"),
    ]


def test_builds_for_another_architecture_are_the_same_package() -> None:
    machines = healthy()
    machines["node1"]["packages"]["munge"] += "+b1"

    assert judge(machines) == []


def test_a_user_that_was_removed_with_its_group_is_told_of_once() -> None:
    machines = healthy()
    del machines["node1"]["accounts"]["alice"], machines["node1"]["groups"]["alice"]

    assert lines(judge(machines)) == ["accounts: node1: the user alice is missing"]


def test_nodes_that_do_not_believe_control_are_its_consequence() -> None:
    machines = healthy()
    stopped("node3", "munge")(machines)
    machines["node3"]["slurm"]["nodes"]["node1"] = {"State": "DOWN*", "Reason": "Not responding"}

    assert [finding.about for finding in judge(machines)] == ["service munge"]


def test_a_machine_with_another_address_is_told_of_once() -> None:
    machines = healthy()
    machines["node1"]["addresses"] = ["10.0.0.99"]
    machines["node3"]["slurm"]["nodes"]["node1"] = {"State": "DOWN*", "Reason": "Not responding"}

    assert [finding.about for finding in judge(machines)] == ["address"]


def test_clients_that_found_no_configuration_are_a_consequence_of_slurmd() -> None:
    machines = healthy()
    stopped("node1", "slurmd")(machines)
    machines["node1"]["slurm"] = {"files": {}, "fetched": {}, "error": "Could not establish a configuration source"}

    assert [finding.about for finding in judge(machines)] == ["service slurmd"]


def test_a_configuration_that_was_edited_is_told_of_on_control_only() -> None:
    machines = healthy()
    machines["node3"]["slurm"]["files"]["slurm.conf"] = CONF.replace("25000", "7")
    machines["node3"]["slurm"]["match"] = False

    assert [finding.about for finding in judge(machines)] == ["configuration", "loaded"]


@pytest.mark.parametrize("state", ["IDLE+PLANNED", "MIXED", "ALLOCATED", "IDLE+POWERED_DOWN", "COMPLETING"])
def test_a_node_that_works_or_sleeps_is_no_finding(state: str) -> None:
    machines = healthy()
    machines["node3"]["slurm"]["nodes"]["node1"]["State"] = state

    assert judge(machines) == []


@pytest.mark.parametrize("state", ["IDLE+POWERED_DOWN", "IDLE+POWERING_DOWN", "MIXED+NOT_RESPONDING+POWERING_UP"])
def test_a_machine_that_slurm_has_switched_off_is_no_finding(state: str) -> None:
    machines = healthy()
    del machines["node1"]
    machines["node3"]["slurm"]["nodes"]["node1"]["State"] = state
    machines["node3"]["slurm"]["restarts"] = ["node1"]

    assert judge(machines, silent={"node1": "No route to host"}) == []


@pytest.mark.parametrize(
    ("default", "found"),
    [("", []), ("pmi2", []), ("pmix", ["node1"]), ("pmix_v4", ["node1"])],
)
def test_a_worker_needs_the_library_of_the_default_mpi(default: str, found: list[str]) -> None:
    machines = healthy()
    machines["node2"]["pmix"] = True
    files = {**FILES, "slurm.conf": f"{CONF}MpiDefault={default}\n" if default else CONF}
    machines["node3"]["slurm"]["files"] = {**FOUND, "slurm.conf": files["slurm.conf"]}
    for name in WORKERS:
        machines[name]["slurm"]["fetched"] = machines["node3"]["slurm"]["files"]

    seen = judge(machines, files=files)

    assert [(finding.host, finding.about) for finding in seen] == [(name, "mpi") for name in found]


def test_a_worker_that_is_off_is_no_firewall() -> None:
    machines = healthy()
    machines["node1"]["unreached"] = {"node2": {"6818": "no answer"}}
    del machines["node2"]

    assert lines(judge(machines, silent={"node2": "No route to host"})) == [
        "ssh: node2: it cannot be checked (No route to host)"
    ]


def test_steps_that_one_side_may_not_know_yet_are_no_finding() -> None:
    machines = healthy()
    machines["node1"]["steps"] = {"9": 59.0}
    machines["node3"]["slurm"]["steps"] = {"8": {"nodes": ["node2"], "age": 59.0}}

    assert judge(machines) == []


def test_without_an_answer_of_slurmctld_no_step_is_an_orphan() -> None:
    machines = healthy()
    del machines["node3"]["slurm"]["jobs"], machines["node3"]["slurm"]["steps"]
    machines["node1"]["steps"] = {"9": 999.0}

    assert judge(machines) == []


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("Kill task failed [root@2026-11-20T09:00:00]", "its health check resumes it once the cause is gone"),
        ("slurmstead: disk / is full [root@2026-11-20T09:00:00]", "the node is then resumed within a minute"),
        ("fan [root@2026-11-20T09:00:00]", "`scontrol update nodename=node1 state=resume`"),
    ],
)
def test_the_advice_says_who_resumes_a_drained_node(reason: str, advice: str) -> None:
    machines = healthy()
    machines["node3"]["slurm"]["nodes"]["node1"] = {"State": "IDLE+DRAIN", "Reason": reason}

    assert [advice in finding.advice for finding in judge(machines)] == [True]


def test_a_machine_that_slurm_could_not_switch_on_is_a_finding() -> None:
    machines = healthy()
    del machines["node1"]
    machines["node3"]["slurm"]["nodes"]["node1"] = {"State": "DOWN+POWERED_DOWN", "Reason": "ResumeTimeout reached"}

    assert lines(judge(machines, silent={"node1": "No route to host"})) == [
        "node: node1: slurmctld gives it no jobs: DOWN+POWERED_DOWN, ResumeTimeout reached"
    ]


def test_comments_and_order_of_a_configuration_are_no_finding() -> None:
    machines = healthy()
    turned = "\n".join(["# another comment", *reversed(CONF.splitlines())])
    machines["node3"]["slurm"]["files"]["slurm.conf"] = turned

    assert judge(machines) == []


def test_workers_with_the_same_old_files_cost_one_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    machines = healthy()
    for name in WORKERS:
        machines[name]["slurm"]["fetched"] = {**FOUND, "slurm.conf": CONF.replace("25000", "7")}
    compared: list[str] = []

    def compare(old: dict[str, str], *rest: Any) -> Any:
        compared.append(old["slurm.conf"])
        return classify(old, *rest)

    monkeypatch.setattr(slurm, "classify", compare)

    found = judge(machines)

    assert [finding.host for finding in found if finding.about == "fetched"] == list(WORKERS)
    assert len(compared) == 1


def test_a_full_file_system_is_told_of_once() -> None:
    machines = healthy()
    for where in ("/", "/share", "/srv/share"):
        machines["node3"]["paths"][where] |= {"id": "fd01", "free": 0}

    space = [line for line in lines(judge(machines)) if line.startswith("space")]
    assert space == ["space: node3: / is nearly full: 0 of 30000 MiB are free"]


def test_a_file_system_that_is_read_only_is_told_of_once() -> None:
    machines = healthy()
    for where in ("/share", "/srv/share"):
        machines["node3"]["paths"][where] |= {"id": "fd01", "readonly": True}

    assert lines(judge(machines)) == ["mount: node3: /share is read-only"]


def test_controllers_are_not_missed_where_slurm_uses_none() -> None:
    machines = healthy()
    machines["node1"]["cgroup"]["controllers"] = []
    files = {**FILES, "slurm.conf": CONF.replace("proctrack/cgroup", "proctrack/linuxproc")}
    for name in NAMES:
        machines[name]["slurm"]["fetched" if name != CONTROL else "files"] = dict(files)

    assert judge(machines, files=files) == []


def test_without_remembered_hardware_the_configuration_is_not_called_wrong() -> None:
    files = {**FILES, "slurm.conf": CONF.replace("NodeName=node1", "# NodeName=node1")}

    assert [finding.about for finding in judge(healthy(), files=files)] == ["hardware"]


def test_a_machine_without_slurm_is_not_asked_for_it() -> None:
    machines = healthy()
    machines["node2"]["wanted"]["units"].remove("slurmd")
    machines["node2"] |= {"slurm": {}, "listening": []}
    del machines["node3"]["slurm"]["nodes"]["node2"]

    assert judge(machines) == []


def test_a_port_that_is_meant_is_not_called_open() -> None:
    machines = healthy()
    machines["node1"]["listening"].append({**OPEN, "address": ADDRESSES["node1"]})
    machines["node2"]["listening"].append(OPEN)
    machines["node2"]["wanted"]["ports"]["tcp"].append(OPEN["port"])

    assert judge(machines) == []


def test_who_is_locked_or_managed_by_hand_is_no_finding() -> None:
    machines = healthy()
    stranger("node1", "bob", 2002, left=True)(machines)
    machines["node1"]["people"]["locked"] = ["bob"]
    del machines["node1"]["people"]["keys"]["bob"]
    stranger("node2", "carl", 1001)(machines)

    assert judge(machines, by_hand=frozenset({"debian", "carl"})) == []


def test_a_declared_group_gives_the_right_to_sudo() -> None:
    machines = healthy()
    for name in NAMES:
        machines[name]["people"]["made"]["alice"]["groups"] = ["sudo"]
        machines[name]["people"]["sudo"]["alice"] = "sudo"

    assert judge(machines, users={"alice": dataclasses.replace(ALICE, groups=("sudo",))}) == []
