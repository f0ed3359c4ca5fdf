"""Quiet nodes beside real daemons: a job is alone there, and what was changed for it is put back.

A tree of files stands for the kernel's settings, and a program that notes its arguments for systemctl.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from ansible.module_utils.slurmstead.conf.partitions import partitions
from ansible.module_utils.slurmstead.conf.text import slurm_lines
from ansible.module_utils.slurmstead.quiet import benchmark, kernel, spread
from ansible.module_utils.slurmstead.reach import remote_call
from slurmstead.paths import ROOT
from tests.native import conf, root
from tests.native.cluster import SLURMD, Cluster

MAIN = yaml.safe_load((ROOT / "roles/slurm/vars/main.yml").read_text())["__slurm_partition_defaults"]
LINES = slurm_lines(partitions({}, MAIN, ["node3"], ["node1", "node2", "node3"]), "PartitionName")


LIB = "/usr/local/lib/slurmstead"
PROGRAM = "/usr/local/libexec/slurmstead/quiet"
CHECK = "/tmp/health-check"
TREE = "/tmp/tree"
GOVERNOR = f"{TREE}/{kernel.CPU}/cpufreq/policy0/scaling_governor"
STATE = "/run/slurmstead-quiet.json"
JOB = ("--partition=quiet", "--mem=16M")

TIMER = "Id=apt-daily.timer\\nActiveState=active\\nUnitFileState=enabled\\nUnit=apt-daily.service\\n"
SERVICE = "Id=apt-daily.service\\nActiveState=active\\nControlGroup=/system.slice/apt-daily.service\\n"
SYSTEMCTL = f"""#!/bin/sh
case $* in show*timer) printf '{TIMER}' ;; show*) printf '{SERVICE}' ;; *) echo "$*" >>/tmp/units ;; esac
"""
ASKING = ("scontrol", "sinfo", "squeue")
NOTE_QUESTIONS = """#!/bin/sh
echo "${0##*/} $*" >>/tmp/questions
exec "/usr/bin/${0##*/}" "$@"
"""


def program() -> str:
    """Return the program as the role installs it, on a tree of its own."""
    code = [sys.executable, "-c", "import sys; sys.path.insert(0, 'plugins/filter'); import slurmstead as f; "]
    code[-1] += "print(f.standalone_program('quiet.program'), end='')"
    text = subprocess.run(code, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert text.count('ROOT = Path("/")') == 1
    return text.replace('ROOT = Path("/")', f'ROOT = Path("{TREE}")').replace("run/slurmstead", "../../run/slurmstead")


@pytest.fixture(scope="module")
def three(release: str) -> Iterator[Cluster]:
    """A cluster whose node3 is quiet; a test leaves it idle."""
    conf = {"DefMemPerCPU": "240", "Prolog": f"{LIB}/prolog", "Epilog": f"{LIB}/epilog"}
    with Cluster(release, 3, conf, partitions=LINES) as cluster:
        for node in cluster.nodes:
            for name in ("prolog", "epilog"):
                put(cluster, node, f"{LIB}/{name}", (ROOT / "roles/scratch/files" / name).read_text())
        for name in ("prolog.d", "epilog.d"):
            text = (ROOT / "roles/quiet/files" / name / "slurmstead-quiet").read_text()
            put(cluster, "node3", f"{LIB}/{name}/slurmstead-quiet", text)
        put(cluster, "node3", PROGRAM, program())
        put(cluster, "node3", "/usr/bin/systemctl", SYSTEMCTL)
        for name in ASKING:
            put(cluster, "node3", f"/tmp/bin/{name}", NOTE_QUESTIONS)
        health = (ROOT / "roles/slurmd/files/health_check.py").read_text()
        online = 'CPUS = "/sys/devices/system/cpu/online"'
        assert health.count(online) == 1
        put(cluster, "node3", CHECK, health.replace(online, 'CPUS = "/tmp/online"'))
        put(cluster, "node3", "/tmp/online", "0-3\n")
        put(cluster, "node3", GOVERNOR, "ondemand\n")
        put(cluster, "node3", GOVERNOR.replace("governor", "available_governors"), "ondemand performance\n")
        yield cluster


def put(cluster: Cluster, node: str, path: str, text: str) -> None:
    """Write a program or file on a node."""
    cluster.run("sh", "-c", f"mkdir -p $(dirname {path}) && touch {path} && chmod 755 {path}", on=node)
    cluster.run("tee", path, text=text, on=node)


def check(cluster: Cluster) -> str:
    """Run the health check as slurmd does, and return what it asks slurmctld."""
    cluster.run("sh", "-c", ": >/tmp/questions", on="node3")
    path = "PATH=/tmp/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    cluster.run("env", "-i", "SLURMD_NODENAME=node3", path, CHECK, on="node3")
    return cluster.run("cat", "/tmp/questions", on="node3")


def governor(cluster: Cluster) -> str:
    return cluster.run("cat", GOVERNOR, on="node3")


def is_quiet(cluster: Cluster) -> bool:
    return governor(cluster) == "performance" and cluster.tried("test", "-e", STATE, on="node3").returncode == 0


def test_a_job_that_asks_for_little_has_the_quiet_node_alone(three: Cluster) -> None:
    submit = ("sbatch", "--parsable", "--partition=quiet", "--mem=16M", "--output=/dev/null", "--wrap=sleep 600")
    first, second = three.run(*submit, user="alice"), three.run(*submit, user="bob")
    three.wait_until("allocated", ["node3"])

    shown = three.run("scontrol", "--oneliner", "show", "job", first)
    assert "NumCPUs=4 " in shown
    assert three.run("squeue", "--noheader", f"--jobs={second}", "--format=%T") == "PENDING"
    three.run("scancel", first, second)
    three.wait_until_idle()


@pytest.mark.slow
def test_a_job_gets_the_memory_of_all_cpus(three: Cluster) -> None:
    shown = three.run("srun", "--partition=quiet", "sh", "-c", "scontrol show job $SLURM_JOB_ID", user="alice")

    assert "cpu=4,mem=960M" in shown


@pytest.mark.slow
def test_no_job_gets_a_core_that_is_kept_for_the_system(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "NODE", f"{conf.NODE} CoreSpecCount=1")
    lines = slurm_lines(partitions({}, MAIN, ["node2"], ["node1", "node2"]), "PartitionName")
    with Cluster(release, 2, partitions=lines) as cluster:
        alone = cluster.run("srun", *JOB, "sh", "-c", "echo $SLURM_CPUS_ON_NODE", user="alice")
        refused = cluster.tried("srun", "--ntasks=4", "--nodes=1", "--immediate=1", "true", user="alice")

        assert "CPUEfctv=3 CPUTot=4 " in cluster.run("scontrol", "--oneliner", "show", "node", "node1")

    assert alone == "3"
    assert "Requested node configuration is not available" in refused.stderr


@pytest.mark.slow
def test_a_job_without_a_partition_is_elsewhere(three: Cluster) -> None:
    assert three.run("srun", "--nodes=2", "hostname", user="alice").split() in (["node1", "node2"], ["node2", "node1"])
    refused = three.tried("srun", "--nodes=3", "--immediate=1", "true", user="alice")
    assert refused.returncode != 0


def test_settings_and_timers_are_changed_for_the_job_only(three: Cluster) -> None:
    three.run("sh", "-c", ": >/tmp/units", on="node3")

    assert three.run("srun", *JOB, "cat", GOVERNOR, user="alice") == "performance"

    three.wait_for(lambda: governor(three) == "ondemand", 30, "the governor is back")
    three.wait_until_idle()
    assert three.run("cat", "/tmp/units", on="node3").split("\n") == [
        "stop apt-daily.timer",
        "freeze apt-daily.service",
        "thaw apt-daily.service",
        "start --no-block apt-daily.timer",
    ]
    assert not is_quiet(three)


@pytest.mark.slow
def test_a_job_of_another_partition_changes_nothing(three: Cluster) -> None:
    three.run("scontrol", "create", "PartitionName=spare", "Nodes=node3", "State=UP")

    assert three.run("srun", "--partition=spare", "cat", GOVERNOR, user="alice") == "ondemand"
    three.wait_until_idle()
    three.run("scontrol", "delete", "PartitionName=spare")


def test_the_health_check_asks_nothing_while_a_job_has_processes(three: Cluster) -> None:
    number = three.run("sbatch", "--parsable", *JOB, "--output=/dev/null", "--wrap=sleep 600", user="alice")
    three.wait_for(lambda: is_quiet(three), 30, "the job is alone")
    three.wait_for(lambda: three.tried("pgrep", "-x", "sleep", "-u", "alice", on="node3").stdout, 30, "the job runs")

    assert check(three) == ""

    three.run("scancel", number)
    three.wait_until_idle()
    assert not is_quiet(three)
    assert "sinfo " in check(three)


@pytest.mark.slow
def test_between_two_steps_the_node_stays_quiet(three: Cluster) -> None:
    said = three.tried("salloc", "--no-shell", *JOB, user="alice").stderr
    number = re.search(r"job allocation (\d+)", said)
    assert number, said
    three.run("srun", f"--jobid={number[1]}", "true", user="alice")
    three.wait_for(lambda: not three.tried("pgrep", "-f", "[s]lurmstepd", on="node3").stdout, 30, "the step has ended")

    assert f" --jobs={number[1]} " in check(three)
    assert is_quiet(three)

    three.run("scancel", number[1])
    three.wait_until_idle()
    assert governor(three) == "ondemand"


@pytest.mark.slow
def test_the_health_check_puts_back_what_an_epilog_did_not(three: Cluster) -> None:
    three.run("chmod", "-x", f"{LIB}/epilog.d/slurmstead-quiet", on="node3")
    three.run("srun", *JOB, "true", user="alice")
    three.wait_until_idle()
    assert is_quiet(three)

    check(three)

    assert governor(three) == "ondemand"
    assert not is_quiet(three)
    three.run("chmod", "+x", f"{LIB}/epilog.d/slurmstead-quiet", on="node3")


@pytest.mark.slow
def test_the_next_job_puts_back_what_was_before_the_first(three: Cluster) -> None:
    three.run("chmod", "-x", f"{LIB}/epilog.d/slurmstead-quiet", on="node3")
    three.run("srun", *JOB, "true", user="alice")
    three.wait_until_idle()
    three.run("chmod", "+x", f"{LIB}/epilog.d/slurmstead-quiet", on="node3")

    assert three.run("srun", *JOB, "cat", GOVERNOR, user="bob") == "performance"

    three.wait_for(lambda: governor(three) == "ondemand", 30, "the governor is back")
    three.wait_until_idle()


@pytest.mark.slow
def test_a_trial_of_prolog_and_epilog_changes_nothing(three: Cluster) -> None:
    for name in ("prolog", "epilog"):
        three.run("env", "SLURM_JOB_ID=0", "SLURM_JOB_UID=0", f"{LIB}/{name}", on="node3")

    assert governor(three) == "ondemand"
    assert not is_quiet(three)


def measure(cluster: Cluster, seconds: float, times: int = 3) -> dict[str, Any]:
    """Measure the quiet node as `stead quiet measure` does on control."""
    arguments = {"nodes": ["node3"], "times": times, "seconds": seconds}
    text = remote_call.program("quiet.benchmark", "measure", arguments)
    found: dict[str, Any] = json.loads(cluster.run("/usr/bin/python3", "-IS", "-", text=text, user="alice"))
    return found


def test_a_quiet_node_is_measured_by_a_job(three: Cluster) -> None:
    found = measure(three, 60)

    assert found["problems"] == {}
    answer = found["answers"]["node3"]
    assert answer["quiet"]
    assert {kind: len(seconds) for kind, seconds in answer["seconds"].items()} == {"compute": 3, "memory": 3}
    three.wait_until_idle()


@pytest.mark.slow
def test_a_node_that_is_busy_is_named_and_its_job_removed(three: Cluster) -> None:
    number = three.run("sbatch", "--parsable", *JOB, "--output=/dev/null", "--wrap=sleep 600", user="bob")
    three.wait_until("allocated", ["node3"])

    found = measure(three, 4)

    assert found == {"answers": {}, "problems": {"node3": "no answer within 4 s, its job is pending (Resources)"}}
    assert three.run("squeue", "--noheader", "--format=%A") == number
    three.run("scancel", number)
    three.wait_until_idle()


NOISY = [f"noisy{number}" for number in range(1, 9)]
GO = "/share/home/alice/go"
SPIN = f"until [ -e {GO} ]; do sleep 0.1; done; while [ -e {GO} ]; do :; done"
MEASURE = f"""
until [ -e {GO} ]; do sleep 0.1; done
/usr/bin/python3 -IS program 20 >$1.json
[ $1 = among ] || exit 0
until [ -s alone.json ]; do sleep 0.1; done
rm {GO}
"""
"""Eight users compute, and only while two benchmarks are measured at the same time, one among them, one alone."""


@pytest.fixture
def noisy(release: str) -> Iterator[Cluster]:
    """Two nodes, each with a CPU of this computer: node1 of all users, node2 quiet. Eight users can be on node1.

    All their processes have real-time priority, so they wait for each other, not for other programs of this computer.
    Only root may give it; for an ordinary user, nothing else may compute here.
    """
    cpus = sorted(os.sched_getaffinity(0))
    assert len(cpus) > 1, "needs two CPUs"
    first = ["chrt", "--rr", "1"] if not root.AS_ROOT else []
    shared = {"main": {**MAIN["main"], "Nodes": "node1", "OverSubscribe": "FORCE:4"}}
    lines = slurm_lines(partitions(shared, MAIN, ["node2"], ["node1", "node2"]), "PartitionName")
    users = {"alice": 2001, **{name: number for number, name in enumerate(NOISY, 2011)}}
    with Cluster(release, 2, partitions=lines, users=users) as cluster:
        for node, cpu in (("node1", cpus[0]), ("node2", cpus[-1])):
            cluster.kill(node)
            cluster.boot(node, slurmd=["taskset", "--cpu-list", str(cpu), *first, *SLURMD])
        cluster.wait_until_idle()
        yield cluster


@pytest.mark.slow
def test_noise_of_eight_users_does_not_reach_the_quiet_node(noisy: Cluster) -> None:
    """The spread of a quiet node is that of an idle computer; beside the others it is several times as large."""

    def submit(user: str, line: str, *options: str) -> None:
        noisy.run("sbatch", "--time=9", "--output=/dev/null", *options, f"--wrap={line}", user=user)

    def found(name: str) -> float:
        noisy.wait_for(lambda: noisy.tried("test", "-s", f"{name}.json", user="alice").returncode == 0, 90, name)
        seconds = json.loads(noisy.run("cat", f"{name}.json", user="alice"))["seconds"]["compute"]
        return spread.spread(seconds)

    noisy.run("tee", "program", text=benchmark.PROGRAM, user="alice")
    noisy.run("tee", "measure", text=MEASURE, user="alice")
    noisy.run("touch", GO, user="alice")
    submit("alice", "sh measure idle", "--partition=quiet", "--mem=256M")
    idle = found("idle")
    noisy.run("rm", GO, user="alice")
    noisy.wait_until_idle()
    for user in NOISY:
        submit(user, SPIN, "--mem=16M")
    submit("alice", "sh measure among", "--mem=256M")
    submit("alice", "sh measure alone", "--partition=quiet", "--mem=256M")
    running = ("squeue", "--noheader", "--states=RUNNING", "--format=%N")
    where = [*["node1"] * 9, "node2"]
    noisy.wait_for(lambda: sorted(noisy.run(*running).split()) == where, 150, "all jobs run")
    noisy.run("touch", GO, user="alice")
    alone, among = found("alone"), found("among")

    print(f"spread: idle {idle:.1%}, alone {alone:.1%}, among eight users {among:.1%}")
    # Interrupts and the hypervisor of a virtual machine were up to 28 %.
    assert alone < max(3 * idle, 0.5)
    assert among > 5 * max(alone, idle)
