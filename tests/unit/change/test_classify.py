"""Each change takes what it needs, and no more, in each version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible.module_utils.slurmstead.change.classify import classify
from ansible.module_utils.slurmstead.change.plan import Plan
from ansible.module_utils.slurmstead.conf import keys as conf_keys
from ansible.module_utils.slurmstead.conf.needs import FILES, NODE, SLURM_CONF, Action
from ansible.module_utils.slurmstead.slurm.jobs import Job, State

GOOD = """
AuthType=auth/munge
ClusterName=c
SchedulerParameters=bf_continue,bf_interval=30
SelectType=select/cons_tres
SlurmctldHost=ctl(10.0.0.1)
NodeName=n1 NodeAddr=10.0.0.11 CPUs=4 RealMemory=1000
NodeName=n2 NodeAddr=10.0.0.12 CPUs=4 RealMemory=1000
PartitionName=main Nodes=n[1-2] Default=YES MaxTime=60
PartitionName=spare Nodes=n2
"""
IDLE = State()
BUSY = State((Job("7", "RUNNING", "main", ("n1",)), Job("8", "PENDING", "main")))
WAITING = State((Job("8", "PENDING", "main"),))

NOTHING, RECONFIGURE, RESTART = Action.NOTHING, Action.RECONFIGURE, Action.RESTART
OLD, NEW = ("21.08.5", "22.05.8"), ("23.11.4", "24.11.5")


def plan(change: tuple[str, str], version: str, state: State = IDLE) -> Plan:
    """The plan of a replacement in GOOD, or of lines that are added where nothing is replaced."""
    old, new = change
    text = GOOD.replace(old, new) if old else GOOD + new
    assert text != GOOD
    return classify({"slurm.conf": GOOD}, {"slurm.conf": text}, version, state)


@pytest.mark.parametrize("version", [*OLD, *NEW])
@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"# new\n{GOOD}",
        "\n".join(reversed(GOOD.splitlines())),
        GOOD.replace("AuthType=", "  authtype =  "),
        GOOD.replace("CPUs=4 RealMemory=1000", "RealMemory=1000   CPUs=4"),
        GOOD.replace("CPUs=4", "Procs=4"),
        GOOD.replace("bf_continue,bf_interval=30", "bf_interval=30,bf_continue"),
        GOOD.replace("Default=YES", "default=yes"),
        GOOD.replace("n[1-2]", "n2,n1"),
        GOOD.replace("NodeName=n2 NodeAddr=10.0.0.12 CPUs=4 RealMemory=1000\n", "").replace(
            "NodeName=n1 NodeAddr=10.0.0.11", "NodeName=n[1-2] NodeAddr=10.0.0.[11-12]"
        ),
        GOOD.replace(" CPUs=4 RealMemory=1000", "").replace(
            "NodeName=n1", "NodeName=DEFAULT CPUs=4 RealMemory=1000\nNodeName=n1"
        ),
        GOOD.replace("SelectType=", "SelectType=\\\n  "),
    ],
    ids=[
        *("same", "comment", "order of lines", "spelling", "order of keys", "alias", "order of words", "yes"),
        *("host list", "one line for two nodes", "default line", "continued"),
    ],
)
def test_the_same_said_differently_is_no_change(text: str, version: str) -> None:
    assert classify({"slurm.conf": GOOD}, {"slurm.conf": text}, version, BUSY) == Plan()


ADD_NODE = ("PartitionName=main", "NodeName=n3 CPUs=4 RealMemory=1000\nPartitionName=main")
REMOVE_N2 = ("NodeName=n2 NodeAddr=10.0.0.12 CPUs=4 RealMemory=1000\n", "")

CHANGES = {
    # Name: change, what it takes of slurmctld up to 22.05 and from 23.11 on, nodes whose slurmd restarts in each.
    "limit": (("MaxTime=60", "MaxTime=90"), RECONFIGURE, RECONFIGURE, "", ""),
    "partition added": (("", "PartitionName=new Nodes=n1"), RECONFIGURE, RECONFIGURE, "", ""),
    "partition removed": (("PartitionName=spare Nodes=n2\n", ""), RECONFIGURE, RECONFIGURE, "", ""),
    "partition smaller": (("Nodes=n[1-2]", "Nodes=n1"), RECONFIGURE, RECONFIGURE, "", ""),
    "node set": (("", "NodeSet=a Nodes=n1"), RECONFIGURE, RECONFIGURE, "", ""),
    "down nodes": (("", "DownNodes=n1 State=DOWN"), RECONFIGURE, RECONFIGURE, "", ""),
    "debug": (("", "SlurmctldDebug=debug"), RECONFIGURE, RECONFIGURE, "", ""),
    "scheduler's words": (("bf_interval=30", "bf_interval=60"), RECONFIGURE, RECONFIGURE, "", ""),
    "prolog": (("", "Prolog=/a"), RECONFIGURE, RECONFIGURE, "", ""),
    "unknown key": (("", "OfTheFuture=1"), RECONFIGURE, RECONFIGURE, "", ""),
    "max jobs": (("", "MaxJobCount=5"), RESTART, RECONFIGURE, "", ""),
    "longest array": (("", "MaxArraySize=5"), RESTART, RECONFIGURE, "", ""),
    "routes": (("", "RoutePlugin=route/topology"), RESTART, RECONFIGURE, "n1 n2", ""),
    "scheduler": (("", "SchedulerType=sched/builtin"), RESTART, RECONFIGURE, "", ""),
    "configless": (("", "SlurmctldParameters=enable_configless"), RESTART, RECONFIGURE, "", ""),
    "gres types": (("", "GresTypes=gpu"), RESTART, RECONFIGURE, "n1 n2", ""),
    "slurmd's words": (("", "SlurmdParameters=config_overrides"), RECONFIGURE, RECONFIGURE, "n1 n2", ""),
    "task plugin": (("", "TaskPlugin=task/affinity"), RECONFIGURE, RECONFIGURE, "n1 n2", ""),
    "slurmd's pid": (("", "SlurmdPidFile=/a"), RECONFIGURE, RECONFIGURE, "n1 n2", "n1 n2"),
    "slurmctld's pid": (("", "SlurmctldPidFile=/a"), RESTART, RESTART, "", ""),
    "other auth": (("", "AuthAltTypes=auth/jwt"), RESTART, RESTART, "n1 n2", "n1 n2"),
    "auth": (("auth/munge", "auth/slurm"), RESTART, RESTART, "n1 n2", "n1 n2"),
    "select": (("cons_tres", "linear"), RESTART, RECONFIGURE, "n1 n2", ""),
    "select's words": (("", "SelectTypeParameters=CR_Core"), RESTART, RECONFIGURE, "", ""),
    "state": (("", "StateSaveLocation=/a"), RESTART, RESTART, "", ""),
    "spool": (("", "SlurmdSpoolDir=/a"), RECONFIGURE, RECONFIGURE, "n1 n2", "n1 n2"),
    "controller's port": (("", "SlurmctldPort=7000"), RESTART, RESTART, "n1 n2", "n1 n2"),
    "slurmd's port": (("", "SlurmdPort=7000"), RESTART, RESTART, "n1 n2", "n1 n2"),
    "name": (("ClusterName=c", "ClusterName=d"), RESTART, RESTART, "n1 n2", "n1 n2"),
    "node added": (ADD_NODE, RESTART, RECONFIGURE, "", ""),
    "node removed": (REMOVE_N2, RESTART, RECONFIGURE, "", ""),
    "memory": (("0.12 CPUs=4 RealMemory=1000", "0.12 CPUs=4 RealMemory=900"), RESTART, RECONFIGURE, "n2", ""),
    "CPUs": (("0.12 CPUs=4", "0.12 CPUs=2"), RESTART, RECONFIGURE, "n2", ""),
    "address": (("10.0.0.12", "10.0.0.13"), RESTART, RECONFIGURE, "n2", ""),
    "a node's port": (("10.0.0.12", "10.0.0.12 Port=7000"), RESTART, RESTART, "n2", "n2"),
    "feature": (("10.0.0.12", "10.0.0.12 Feature=fast"), RECONFIGURE, RECONFIGURE, "", ""),
    "weight": (("10.0.0.12", "10.0.0.12 Weight=9"), RECONFIGURE, RECONFIGURE, "", ""),
}


@pytest.mark.parametrize("version", [*OLD, *NEW])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_takes_what_it_needs(name: str, version: str) -> None:
    change, before, since, slurmd_before, slurmd_since = CHANGES[name]
    seen = plan(change, version)
    action, slurmd = (before, slurmd_before) if version in OLD else (since, slurmd_since)

    assert (seen.action, seen.restart_slurmd) == (action, frozenset(slurmd.split()))
    assert not seen.refusals, "without jobs every change is made"


REFUSED = {
    # Name: whether it is refused while job 7 runs on n1, and while only job 8 waits.
    "auth": (True, False),
    "select": (True, True),
    "select's words": (True, False),
    "state": (True, True),
    "spool": (True, False),
    "controller's port": (True, False),
    "slurmd's port": (True, False),
    "name": (True, True),
}


@pytest.mark.parametrize("version", [*OLD, *NEW])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_hurts_jobs_is_refused(name: str, version: str) -> None:
    change = CHANGES[name][0]
    running, waiting = REFUSED.get(name, (False, False))

    assert bool(plan(change, version, BUSY).refusals) == running
    assert bool(plan(change, version, WAITING).refusals) == waiting


@pytest.mark.parametrize("version", [*OLD, *NEW])
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("NodeName=n1 NodeAddr=10.0.0.11 CPUs=4 RealMemory=1000\n", ""), "node n1 removed"),
        (("0.11 CPUs=4", "0.11 CPUs=2"), "node n1: CPUs: 4 → 2"),
        (("10.0.0.11", "10.0.0.99"), "node n1: NodeAddr: 10.0.0.11 → 10.0.0.99"),
        (("10.0.0.11", "10.0.0.11 Gres=gpu:1"), "node n1: Gres: not set → gpu:1"),
        (("PartitionName=main", "PartitionName=other"), "partition main removed"),
    ],
)
def test_what_a_job_stands_on_stays(change: tuple[str, str], what: str, version: str) -> None:
    (refusal,) = plan(change, version, BUSY).refusals

    assert refusal.startswith(f"{what}: refused while ")
    assert "job 7 (running on n1)" in refusal


@pytest.mark.parametrize("version", [*OLD, *NEW])
def test_steps_that_run_keep_the_accounting_that_old_daemons_expect(version: str) -> None:
    assert bool(plan(("", "JobAcctGatherType=jobacct_gather/linux"), version, BUSY).refusals) == (version in OLD)


def test_the_memory_of_a_busy_node_may_change() -> None:
    assert not plan(("RealMemory=1000", "RealMemory=1200"), "22.05.8", BUSY).refusals


def test_what_waits_for_a_partition_keeps_it() -> None:
    assert plan(("PartitionName=main", "PartitionName=other"), "24.11", WAITING).refusals


@pytest.mark.parametrize(
    ("change", "helps"),
    [(("0.11 CPUs=4", "0.11 CPUs=2"), True), (("cons_tres", "linear"), False)],
)
def test_draining_helps_where_running_jobs_are_all(change: tuple[str, str], helps: bool) -> None:
    seen = plan(change, "24.11", BUSY)

    assert (seen.waiting_helps, seen.blocked_nodes) == (helps, frozenset({"n1"}))


def files(name: str, old: str, new: str, version: str, state: State = IDLE) -> Plan:
    return classify({"slurm.conf": GOOD, name: old}, {"slurm.conf": GOOD, name: new}, version, state)


@pytest.mark.parametrize(
    ("version", "action", "slurmd"),
    [("22.05", RECONFIGURE, frozenset({"n1", "n2"})), ("24.11", RECONFIGURE, frozenset())],
)
def test_cgroups_are_slurmds(version: str, action: Action, slurmd: frozenset[str]) -> None:
    seen = files("cgroup.conf", "ConstrainCores=no", "ConstrainCores=yes", version, BUSY)

    assert (seen.action, seen.restart_slurmd, seen.refusals) == (action, slurmd, [])


def test_cgroups_do_not_move_below_jobs() -> None:
    assert files("cgroup.conf", "", "CgroupPlugin=cgroup/v1", "24.11", BUSY).refusals


@pytest.mark.parametrize("version", ["22.05", "24.11"])
def test_images_need_no_restart(version: str) -> None:
    seen = files("oci.conf", "", 'RunTimeRun="exec /sandbox %b %j"\nRunTimeQuery="echo {}"', version, BUSY)

    assert (seen.action, seen.restart_slurmd, seen.refusals) == (RECONFIGURE, frozenset(), [])


def test_images_are_not_taken_from_jobs_that_run_or_wait() -> None:
    text, runs, waits, ended = (
        'RunTimeRun="exec /sandbox %b %j"\nRunTimeQuery="echo {}"',
        *BUSY.jobs,
        Job("9", "FAILED"),
    )
    contained = State((runs, replace(waits, image=True), replace(ended, image=True)))

    assert files("oci.conf", text, "", "24.11", contained).refusals == [
        "oci.conf: RunTimeRun: exec /sandbox %b %j → removed: refused while any job runs or waits: job 8 (pending); "
        "they would run without their images"
    ]
    assert files("oci.conf", text, text.replace("%j", "%t"), "24.11", contained).refusals == []
    assert files("oci.conf", text, "", "24.11", BUSY).refusals == []


def test_gres_of_a_node_concerns_that_node() -> None:
    seen = files("gres.conf", "", "NodeName=n2 Name=gpu Count=1", "22.05", BUSY)
    here = files("gres.conf", "", "NodeName=n1 Name=gpu Count=1", "22.05", BUSY)

    assert (seen.action, seen.restart_slurmd, seen.refusals) == (RESTART, frozenset({"n2"}), [])
    assert here.refusals


@pytest.mark.parametrize(
    ("name", "old", "new"), [("topology.conf", "SwitchName=a", "SwitchName=b"), ("x.lua", "a", "b")]
)
def test_any_other_file_is_a_change(name: str, old: str, new: str) -> None:
    assert files(name, old, new, "22.05").action is RESTART
    assert files(name, old, f"{old}\n", "22.05").action is (NOTHING if name.endswith(".conf") else RESTART)


def test_a_line_more_in_a_topology_is_a_change() -> None:
    old = "SwitchName=a Nodes=n1\nSwitchName=b Switches=a\n"

    assert files("topology.conf", old, f"SwitchName=c Nodes=n2\n{old}", "24.11").action is RECONFIGURE
    assert files("topology.conf", old, f"# same\n{old}", "24.11").action is NOTHING


def test_an_include_that_goes_could_have_said_anything() -> None:
    seen = classify({"slurm.conf": f"{GOOD}Include /a"}, {"slurm.conf": GOOD}, "24.11", IDLE)

    assert (seen.action, seen.restart_slurmd) == (RESTART, frozenset({"n1", "n2"}))


@pytest.mark.parametrize("version", [*OLD, *NEW])
@pytest.mark.parametrize("kind", ["NodeName", "PartitionName"])
def test_the_only_lines_of_a_kind_that_come_back_are_a_change(kind: str, version: str) -> None:
    lost = "\n".join(line for line in GOOD.splitlines() if not line.startswith(kind))

    assert classify({"slurm.conf": lost}, {"slurm.conf": GOOD}, version, IDLE).action >= RECONFIGURE


def test_the_plan_says_what_and_why() -> None:
    seen = plan(ADD_NODE, "22.05.8")

    assert seen.lines == [
        "node n3 added: restart slurmctld (before 23.11, a reconfigure for this would crash slurmctld)",
        "then: restart slurmctld, and make the workers fetch its files",
    ]


def test_the_tables_have_keys_that_slurm_has() -> None:
    rows = {
        **dict.fromkeys((line.split()[0] for line in SLURM_CONF.split("\n") if line), conf_keys.SLURM_CONF),
        **dict.fromkeys((line.split()[0] for line in NODE.split("\n") if line), conf_keys.NODE),
    }
    unknown = [key for key, table in rows.items() if key not in conf_keys.keys(table)]

    assert unknown == []
    assert all(len(line.split()) == 4 for table in (SLURM_CONF, NODE, FILES) for line in table.strip().splitlines())
