"""Mistakes that people make in slurm.conf and its kin, and what they are told: data for unit tests and native tests.

Each is made in a working configuration, by the change of one file. In the texts {node} and {other} are two of its
nodes, {partition} is a partition, {busy} is a node with a running job, {missing} is a node that does not exist.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

CONF = "slurm.conf"
CGROUP = "cgroup.conf"
GRES = "gres.conf"


@dataclasses.dataclass(frozen=True)
class Mistake:
    """One change of a good file, and the message that it brings."""

    name: str
    by: str
    """What catches it: lint, machine, gate, words or plan."""
    says: str
    """A regular expression that the message has to match somewhere."""
    file: str = CONF
    add: str = ""
    """Lines at the end."""
    replace: tuple[str, str] = ("", "")
    """A regular expression and what replaces it everywhere."""
    key: str = ""
    """A key of the whole cluster with another value, as in `SlurmdPort=6817`."""
    versions: tuple[str, ...] = ()
    """Versions in which it is a mistake; empty means all."""
    refused: bool = True
    """Whether nothing is published; else it is a warning."""

    def files(self, good: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
        """Return the files with the mistake in them."""
        text = good.get(self.file, "")
        if self.replace[0]:
            pattern, replacement = (part.format(**names) for part in self.replace)
            changed = re.sub(pattern, replacement, text, flags=re.MULTILINE)
            assert changed != text, f"{self.name}: {pattern!r} is not in {self.file}"
            text = changed
        if self.key:
            key = self.key.partition("=")[0]
            text = re.sub(f"^{key}=.*\n", "", text, flags=re.MULTILINE)
        if self.key or self.add:
            text = f"{text.rstrip()}\n{(self.key or self.add).format(**names)}\n"
        return {**good, self.file: text}

    def expected(self, names: Mapping[str, str]) -> re.Pattern[str]:
        """Return what the message has to match."""
        return re.compile(self.says.format(**{name: re.escape(value) for name, value in names.items()}))


MISTAKES = [
    Mistake("typo in a key", "gate", "`SlurmctldTimeuot=120`: slurmctld knows no key", key="SlurmctldTimeuot=120"),
    Mistake("typo in a node's key", "gate", "RealMemry", replace=("RealMemory=", "RealMemry=")),
    Mistake("typo in a partition's key", "gate", "MaxTmie", replace=("MaxTime=", "MaxTmie=")),
    Mistake("typo in cgroup.conf", "gate", "cgroup.conf line .*ConstrainCorse", CGROUP, add="ConstrainCorse=yes"),
    Mistake("typo in gres.conf", "lint", "gres.conf line .*Nmae", GRES, add="NodeName={node} Nmae=gpu Count=1"),
    Mistake("key removed long ago", "gate", "FastSchedule", key="FastSchedule=2"),
    Mistake("key removed in 23.02", "gate", "SlurmctldPlugstack", add="SlurmctldPlugstack=x", versions=("24.11",)),
    Mistake("key of a later version", "gate", "SuspendExcStates", add="SuspendExcStates=DOWN", versions=("22.05",)),
    Mistake("no number", "gate", "MaxJobCount=many", key="MaxJobCount=many"),
    Mistake("no boolean", "gate", "Hidden=perhaps", add="PartitionName=extra Nodes={node} Hidden=perhaps"),
    Mistake("words after a value", "gate", "MailDomain=a.example b", add="MailDomain=a.example b"),
    Mistake(
        "unknown node in a partition",
        "lint",
        "Nodes={missing}`: {missing} has no NodeName line",
        add="PartitionName=extra Nodes={missing}",
    ),
    Mistake("node twice", "lint", "node {node} appears twice", add="NodeName={node} CPUs=1 RealMemory=10"),
    Mistake("bad host list", "lint", "NodeName=x", add="NodeName=x[1-"),
    Mistake("backward range", "lint", "runs backwards", add="NodeName=x[9-1] CPUs=1"),
    Mistake("bad host list in a partition", "lint", "Nodes=", add="PartitionName=extra Nodes={node},[1-"),
    Mistake("missing select plugin", "machine", "select/cons_foo", key="SelectType=select/cons_foo"),
    Mistake(
        "removed select plugin",
        "machine",
        "select/cons_res",
        key="SelectType=select/cons_res",
        versions=("24.11",),
    ),
    Mistake("missing priority plugin", "machine", "priority/best", key="PriorityType=priority/best"),
    Mistake("missing scheduler", "machine", "sched/quick", key="SchedulerType=sched/quick"),
    Mistake("missing auth plugin", "machine", "auth/munje", key="AuthType=auth/munje"),
    Mistake("missing jobcomp plugin", "machine", "jobcomp/fil", key="JobCompType=jobcomp/fil"),
    Mistake(
        "missing plugin of the workers",
        "machine",
        "proctrack/cgruop",
        key="ProctrackType=proctrack/cgruop",
    ),
    Mistake(
        "bad SelectTypeParameters",
        "gate",
        "CR_Cores_Memory",
        key="SelectTypeParameters=CR_Cores_Memory",
    ),
    Mistake("port out of range", "lint", "SlurmctldPort=70000", key="SlurmctldPort=70000"),
    Mistake("one port for both daemons", "lint", "SlurmdPort", key="SlurmdPort=6817"),
    Mistake("port that another program has", "machine", "{taken}", key="SlurmctldPort={taken}"),
    Mistake(
        "controller that is another machine",
        "gate",
        "SlurmctldHost",
        key="SlurmctldHost=elsewhere(192.0.2.9)",
    ),
    Mistake("two default partitions", "lint", "default", add="PartitionName=extra Nodes={node} Default=YES"),
    Mistake(
        "partition twice", "lint", "PartitionName={partition}.*twice", add="PartitionName={partition} Nodes={node}"
    ),
    Mistake("bad time limit", "gate", "MaxTime", add="PartitionName=extra Nodes={node} MaxTime=forever"),
    Mistake(
        "default time above the limit",
        "lint",
        "DefaultTime",
        add="PartitionName=extra Nodes={node} MaxTime=10 DefaultTime=60",
    ),
    Mistake("negative memory", "gate", "RealMemory", add="NodeName=x NodeAddr=192.0.2.9 CPUs=1 RealMemory=-1"),
    Mistake(
        "more CPUs than cores",
        "lint",
        "CPUs=9",
        add="NodeName=x NodeAddr=192.0.2.9 CPUs=9 Sockets=1 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=10",
    ),
    Mistake(
        "node without an address",
        "machine",
        "nowhere.invalid",
        add="NodeName=x NodeAddr=nowhere.invalid CPUs=1 RealMemory=10",
    ),
    Mistake(
        "two nodes at one address",
        "lint",
        "NodeAddr=192.0.2.9",
        add="NodeName=x NodeAddr=192.0.2.9 CPUs=1 RealMemory=10\nNodeName=y NodeAddr=192.0.2.9 CPUs=1 RealMemory=10",
    ),
    Mistake(
        "GRES of no known type",
        "lint",
        "gpu in Gres of {node} is not in GresTypes",
        replace=("^(NodeName={node} .*)", r"\1 Gres=gpu:1"),
    ),
    Mistake(
        "GRES without a type in gres.conf",
        "lint",
        "gres.conf line .*GresTypes",
        GRES,
        add="NodeName={node} Name=gpu Count=1",
    ),
    Mistake(
        "unknown node in gres.conf",
        "lint",
        "gres.conf line .*{missing}",
        GRES,
        add="NodeName={missing} Name=gpu Count=1",
    ),
    Mistake("absent Include", "lint", "Include /nonexistent", add="Include /nonexistent"),
    Mistake("cyclic Include", "lint", "Include /etc/slurm/slurm.conf", add="Include /etc/slurm/slurm.conf"),
    Mistake(
        "state directory that is absent",
        "machine",
        "/nonexistent/state",
        key="StateSaveLocation=/nonexistent/state",
    ),
    Mistake(
        "state directory of another program",
        "machine",
        "cannot write to /proc/1",
        key="StateSaveLocation=/proc/1",
    ),
    Mistake("user that does not exist", "gate", "SlurmUser=slrum", key="SlurmUser=slrum"),
    Mistake("key twice", "lint", "twice", add="ReturnToService=1"),
    Mistake("no partition", "lint", "no partition", replace=("^PartitionName=.*", "")),
    Mistake(
        "typo in SlurmctldParameters",
        "words",
        "enable_configles .*did you mean enable_configless",
        replace=("enable_configless", "enable_configles"),
        refused=False,
    ),
    Mistake(
        "typo in SchedulerParameters",
        "words",
        "did you mean bf_interval",
        key="SchedulerParameters=bf_intervall=30",
        refused=False,
    ),
    Mistake(
        "word of a later version",
        "words",
        "only 23.11, 24.11 know it",
        key="SlurmdParameters=allow_ecores",
        versions=("22.05",),
        refused=False,
    ),
    Mistake("typo in DebugFlags", "gate", "Backfil", key="DebugFlags=Backfil"),
    Mistake("typo in PrologFlags", "gate", "Contian", key="PrologFlags=Contian"),
    Mistake(
        "another name of the cluster",
        "gate",
        "CLUSTER NAME MISMATCH",
        key="ClusterName=another",
    ),
    Mistake(
        "SelectType with jobs",
        "plan",
        "SelectType: .*refused while any job",
        replace=(
            "^SelectType=.*\\nSelectTypeParameters=.*",
            "SelectType=select/linear\\nSelectTypeParameters=CR_Memory",
        ),
    ),
    Mistake(
        "spool with jobs",
        "plan",
        "SlurmdSpoolDir: .*refused while jobs",
        key="SlurmdSpoolDir=/var/spool/other/%n",
    ),
    Mistake(
        "state elsewhere with jobs",
        "plan",
        "StateSaveLocation: .*refused while any job",
        key="StateSaveLocation=/var/lib/slurm",
    ),
    Mistake("busy node removed", "plan", "node {busy} removed: refused", replace=("^NodeName={busy} .*", "")),
    Mistake(
        "other CPUs of a busy node",
        "plan",
        "node {busy}: CPUs: .*refused",
        replace=(r"^NodeName={busy} .*(NodeAddr=\S+).*", r"NodeName={busy} \1 CPUs=3 RealMemory=10"),
    ),
    Mistake(
        "partition of jobs removed",
        "plan",
        "partition {partition} removed: refused",
        replace=("^PartitionName={partition} ", "PartitionName=new "),
    ),
]
