"""From what was seen on a cluster to checks that say expected, seen and what to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from ansible.module_utils.slurmstead.slurm.nodes import Node
from ansible.module_utils.slurmstead.smoke import causes, verdicts
from ansible.module_utils.slurmstead.smoke.findings import Batch, Findings
from ansible.module_utils.slurmstead.smoke.report import Check

NONCE = "0badcafe"

Spoil = Callable[[Findings], None]


def healthy(number: int = 3) -> Findings:
    """What is seen on a cluster on which everything works."""
    workers = [f"n{index}" for index in range(1, number + 1)]
    found = Findings(workers, control="head", user="alice", share="/share", scratch="/scratch", nonce=NONCE)
    found.nodes = {name: Node(name, "idle", idle_cpus=8, partitions=("main",)) for name in workers}
    found.answers = {
        name: {
            "host": {"host": name},
            "cpu": {"bound": 1, "usable": 1, "core": 1, "online": 8},
            "share": {"read": NONCE, "wrote": f"by {name}", "type": "nfs4", "source": "head:/srv/share"},
            "scratch": {"given": "/scratch/7", "inside": True, "type": "ext4", "source": "/dev/mapper/scratch-scratch"},
            "munge": {"read": "Success (0)", "made": "MUNGE:x:", "failed": ""},
            "memory": {"ended": "killed"},
        }
        for name in workers
    }
    found.reported = set(workers)
    found.batch = Batch(job="7", state="COMPLETED", node="n1", output=f"{NONCE} n1\n", directory="/share/home/x")
    found.read_back = {name: f"by {name}" for name in workers}
    found.decoded = dict.fromkeys(workers, "Success (0)")
    return found


def part(node: str, name: str, **seen: Any) -> Spoil:
    """Change one part of the answer of a node."""
    return lambda found: found.answers[node][name].update(seen)


def without(node: str, name: str) -> Spoil:
    """Remove one part of the answer of a node."""
    return lambda found: found.answers[node].__delitem__(name)


def silent(node: str, seen: str) -> Spoil:
    """Let no job answer from a node."""

    def spoil(found: Findings) -> None:
        del found.answers[node]
        found.untested[node] = causes.failed_start(seen)

    return spoil


def state(node: str, value: str, flags: str = "", **more: Any) -> Spoil:
    """Give a node another state."""
    return lambda found: found.nodes.update({node: Node(node, value, flags, 0, ("main",), **more)})


def set_to(**fields: Any) -> Spoil:
    """Change fields of the findings."""

    def spoil(found: Findings) -> None:
        for name, value in fields.items():
            setattr(found, name, value)

    return spoil


def batch(**fields: Any) -> Spoil:
    """Change fields of the batch job."""

    def spoil(found: Findings) -> None:
        found.batch = dataclasses.replace(found.batch, **fields)

    return spoil


def red(found: Findings) -> dict[str, Check]:
    return {check.name: check for check in verdicts.verdict(found) if not check.ok}


@pytest.mark.parametrize("number", [1, 3, 400])
def test_a_healthy_cluster_is_green_in_short_lines(number: int) -> None:
    checks = verdicts.verdict(healthy(number))

    assert [check.name for check in checks] == list(verdicts.CHECKS)
    assert all(check.ok and check.expected and check.seen and not check.hint for check in checks)
    assert all(len(check.seen) < 100 for check in checks)


CAUSES: list[tuple[str, Spoil, str, str]] = [
    # check, what goes wrong, what must be seen, what must be in the hint
    (
        "nodes",
        state("n2", "drained", reason="bad | disk", by="root", since="2026-11-21T03:04:31"),
        "n[1,3]: good; n2: drained: bad | disk (by root since 2026-11-21T03:04:31)",
        "scontrol update nodename=n2 state=resume",
    ),
    (
        "nodes",
        state("n2", "down", "*", reason="Not responding", by="slurm"),
        "does not answer",
        "systemctl status slurmd",
    ),
    ("nodes", state("n2", "down", reason="set by hand", by="root"), "n2: down: set by hand", "state=resume"),
    ("nodes", state("n2", "inval", reason="Low RealMemory"), "n2: inval: Low RealMemory", "slurmd -C"),
    ("nodes", state("n2", "idle", "*"), "n2: idle, does not answer", "journalctl -u slurmd"),
    ("nodes", state("n2", "maint"), "n2: maint", "reservation"),
    ("nodes", state("n2", "reboot", "^"), "n2: reboot", "wait until n2 is back"),
    ("nodes", state("n2", "unknown", "*"), "n2: unknown, does not answer", "on n2"),
    ("nodes", lambda found: found.nodes.__delitem__("n2"), "n2: not known to Slurm", "scontrol show node n2"),
    (
        "nodes",
        lambda found: found.nodes.update(n2=Node("n2", "idle")),
        "n2: its partitions are not up",
        "scontrol show partition",
    ),
    ("srun", silent("n2", "Communication connection failure"), "n2: Communication connection failure", "on n2"),
    ("srun", silent("n2", "Protocol authentication error"), "Protocol authentication error", "munge.key"),
    ("srun", part("n2", "host", host="n1"), "n2: calls itself n1, as n1 does", "hostnamectl hostname n2"),
    ("sbatch", batch(job="", error="Invalid partition"), "Invalid partition", "sbatch --test-only"),
    ("sbatch", batch(state="PENDING", reason="Resources", node=""), "job 7 is still pending (Resources)", "squeue"),
    ("sbatch", batch(state="RUNNING", reason="None"), "job 7 on n1 is still running", "squeue"),
    (
        "sbatch",
        batch(state="FAILED", reason="JobLaunchFailure"),
        "ended as failed (JobLaunchFailure)",
        "findmnt /share",
    ),
    ("sbatch", batch(output=None), "nothing is in /share/home/x/batch.out", "on n1 and head"),
    ("sbatch", batch(output="junk"), "something else is in /share/home/x/batch.out", "findmnt /share"),
    ("sbatch", batch(state="COMPLETING"), "does not leave the queue", "Epilog"),
    ("one-cpu", part("n2", "cpu", bound=8, usable=8), "n2: a job sees 8 of 8 CPUs", "cons_tres"),
    ("one-cpu", part("n2", "cpu", usable=8), "n2: a job is bound to 1 CPU but can take 8", "ConstrainCores=yes"),
    ("one-cpu", part("n2", "cpu", error="no"), "n2: no", "on n2"),
    ("one-cpu", without("n2", "cpu"), "n2: its probe gave no answer in time", "on n2"),
    (
        "memory-limit",
        part("n2", "memory", ended="survived"),
        "n2: a job that asked for 64 MiB used 256",
        "ConstrainRAM",
    ),
    ("memory-limit", part("n2", "memory", ended="refused"), "n2: a shell limit", "ulimit"),
    ("memory-limit", set_to(reported={"n1", "n3"}), "n2: the job was killed, but not reported", "dmesg"),
    ("memory-limit", without("n2", "memory"), "n2: its probe gave no answer", "on n2"),
    ("share", set_to(share_error="Permission denied: /share"), "head: Permission denied: /share", "nfs-server"),
    (
        "share",
        part("n2", "share", error="No such file or directory", type="ext4", source="/dev/vda1"),
        "n2: No such file or directory (ext4 on /dev/vda1)",
        "on n2: `findmnt /share`",
    ),
    ("share", part("n2", "share", read="old"), "n2: reads other content than head wrote", "on n2"),
    ("share", set_to(read_back={"n1": "by n1", "n3": "by n3"}), "n2: head does not see what the node wrote", "on n2"),
    ("share", without("n2", "share"), "n2: its probe gave no answer in time", "is share stuck"),
    ("scratch", part("n2", "scratch", type="nfs4", source="head:/srv"), "(nfs4 on head:/srv) is not local", "on n2"),
    ("scratch", part("n2", "scratch", type="fuse.sshfs"), "is not local", "findmnt /scratch"),
    ("scratch", part("n2", "scratch", shared=True), "is not local", "findmnt /scratch"),
    (
        "scratch",
        part("n2", "scratch", error="Read-only file system"),
        "n2: cannot write to /scratch/7 (ext4",
        "on n2",
    ),
    ("scratch", part("n2", "scratch", given=""), "n2: $SCRATCH is not set in a job", "TaskProlog"),
    ("scratch", part("n2", "scratch", inside=False, given="/tmp"), "n2: $SCRATCH is /tmp", "TaskProlog"),
    (
        "munge",
        set_to(munge_error="Failed to access socket"),
        "head: Failed to access socket",
        "systemctl restart munge",
    ),
    (
        "munge",
        part("n2", "munge", read="Invalid credential (12)"),
        "n2: reads head's credential as: Inv",
        "munge.key",
    ),
    (
        "munge",
        part("n2", "munge", read="Expired credential (15)"),
        "n2: reads head's credential as: Exp",
        "chronyc",
    ),
    ("munge", part("n2", "munge", failed="Failed to access socket"), "n2: Failed to access socket", "on n2"),
    ("munge", part("n2", "munge", error="No such file"), "n2: No such file", "on n2"),
    ("munge", lambda found: found.decoded.update(n2="Rewound credential (16)"), "as: Rewound credential", "clocks"),
    ("munge", lambda found: found.decoded.__delitem__("n2"), "n2: head reads its credential as: not read", "munge.key"),
]


@pytest.mark.parametrize(("name", "spoil", "seen", "hint"), CAUSES, ids=[f"{case[0]}: {case[2]}" for case in CAUSES])
def test_a_cause_turns_its_check_red(name: str, spoil: Spoil, seen: str, hint: str) -> None:
    found = healthy()
    spoil(found)
    check = red(found)[name]

    assert seen in check.seen
    assert hint in check.hint
    assert "{node}" not in check.hint


def test_every_check_has_a_cause() -> None:
    assert {case[0] for case in CAUSES} == set(verdicts.CHECKS)


def test_a_cause_of_its_own_turns_no_other_check_red() -> None:
    alone = {"one-cpu", "memory-limit", "share", "scratch", "munge", "sbatch"}
    for name, spoil, _, _ in CAUSES:
        found = healthy()
        spoil(found)

        assert name not in alone or set(red(found)) == {name}


def test_a_silent_node_is_untested_in_all_checks_of_workers() -> None:
    found = healthy()
    silent("n2", "Communication connection failure")(found)

    assert set(red(found)) == {"srun", "one-cpu", "memory-limit", "share", "scratch", "munge"}
    assert "n2: not tested" in red(found)["share"].seen


def test_a_node_with_another_key_is_a_problem_of_munge() -> None:
    found = healthy()
    silent("n2", "Task launch failed on node n2: Zero Bytes were transmitted or received")(found)

    assert "n2: not tested: Task launch failed" in red(found)["munge"].seen
    assert "munge.key" in red(found)["munge"].hint


def test_a_node_that_does_not_answer_may_have_another_key() -> None:
    found = healthy()
    del found.answers["n2"]
    state("n2", "completing", "*")(found)

    assert "n2: not tested: completing, does not answer" in red(found)["munge"].seen
    assert "if n2 is on: compare `sha256sum /etc/munge/munge.key`" in red(found)["munge"].hint


def test_a_core_is_one_cpu_with_its_hardware_threads() -> None:
    found = healthy()
    part("n2", "cpu", bound=2, usable=2, core=2)(found)

    assert red(found) == {}


def test_a_drained_node_is_not_tried() -> None:
    found = healthy()
    state("n2", "drained", reason="bad disk")(found)
    del found.answers["n2"]

    assert "n2: drained" in red(found)["srun"].seen


def test_many_findings_are_one_line() -> None:
    found = healthy(400)
    for number in range(1, 401):
        state(f"n{number}", "drained", reason=f"disk {number}")(found)
    check = red(found)["nodes"]

    assert check.seen.startswith("n1: drained: disk 1; n2: drained: disk 2; n3: drained: disk 3; and 397 more")
    assert len(check.seen + check.hint) < 400


def test_nodes_with_the_same_finding_share_a_place() -> None:
    found = healthy(400)
    for number in range(2, 401):
        state(f"n{number}", "drained", reason="power cut")(found)

    assert red(found)["nodes"].seen == "n1: good; n[2-400]: drained: power cut"


NODE = Node("n2", "allocated")


def test_a_busy_node_is_named_with_the_jobs_on_it() -> None:
    problem = causes.waited(NODE, "Resources", {"17": "bob", "18": "eve"}, 30.2)

    assert problem.seen == "no free CPU or memory within 30 s: job 17 of bob, job 18 of eve on it"
    assert "smoke_test_deadline" in problem.hint


def test_jobs_that_are_hidden_leave_slurms_own_reason() -> None:
    assert causes.waited(Node("n2", "mixed"), "Resources", {}, 30).seen.endswith(": Resources")


def test_a_node_that_is_full_of_hidden_jobs_is_called_busy() -> None:
    problem = causes.waited(Node("n2", "allocated"), "Resources", {}, 30)

    assert problem.seen == "no free CPU or memory within 30 s: jobs of other users on it"
    assert "smoke_test_deadline" in problem.hint


@pytest.mark.parametrize("node", [Node("n2", "idle", "~"), Node("n2", "mixed", "#"), Node("n2", "powering_up")])
def test_a_node_that_saves_power_is_not_called_busy(node: Node) -> None:
    assert causes.waited(node, "Resources", {}, 30).seen == "in power saving, not up within 30 s"


def test_a_refused_job_is_not_blamed_on_the_node() -> None:
    problem = causes.failed_start("Unable to allocate resources: Invalid account or account/partition combination")

    assert "limits of the account" in problem.hint
    assert "slurmd" not in problem.hint


def test_without_slurmctld_every_check_is_red() -> None:
    checks = verdicts.not_run("Unable to contact slurm controller (connect failure)", "head")

    assert [check.name for check in checks] == list(verdicts.CHECKS)
    assert not any(check.ok for check in checks)
    assert "Unable to contact" in checks[0].seen
    assert all("slurmctld" in check.hint and "head" in check.hint for check in checks)


def test_without_munge_on_control_its_check_says_so() -> None:
    check = verdicts.not_run("Protocol authentication error", "head", "Did you start munged?")[-1]

    assert (check.name, check.seen) == ("munge", "Did you start munged?")
    assert "systemctl restart munge" in check.hint
