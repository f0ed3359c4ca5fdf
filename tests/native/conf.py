"""The configuration of a cluster of bare daemons: as the role `slurm` writes it, where that needs no kernel's help."""

from __future__ import annotations

from collections.abc import Mapping

DEFAULTS = {
    "AuthType": "auth/munge",
    "ClusterName": "native",
    "GetEnvTimeout": "0",
    "MailProg": "/bin/true",
    "MaxArraySize": "10001",
    "MaxJobCount": "1000000",
    "PrivateData": "jobs",
    "ProctrackType": "proctrack/linuxproc",
    "ReturnToService": "2",
    "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,sched_min_interval=0",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core_Memory",
    "SlurmUser": "slurm",
    "SlurmctldParameters": "enable_configless",
    "SlurmctldPidFile": "/run/slurmctld.pid",
    "SlurmdParameters": "config_overrides",
    "SlurmdPidFile": "/run/slurmd.pid",
    "SlurmdSpoolDir": "/var/lib/slurm/slurmd",
    "StateSaveLocation": "/var/lib/slurm/slurmctld",
    "TaskPlugin": "task/none",
    "TmpFS": "/tmp",
}

ACCOUNTING = {"AccountingStorageType": "accounting_storage/slurmdbd", "AccountingStorageHost": "control"}
"""With a database."""

SLURMDBD = """\
AuthType=auth/munge
DbdHost=control
LogFile=/var/log/slurmdbd.log
Parameters=PreserveCaseUser
PidFile=/run/slurmdbd.pid
PrivateData=jobs
SlurmUser=slurm
StorageHost=localhost
StorageLoc=slurm_acct_db
StorageType=accounting_storage/mysql
StorageUser=slurm
"""

CGROUP = "CgroupPlugin=cgroup/v1\n"
"""Named, it does nothing until a plugin needs it; found by itself, it needs control groups of this computer."""

NODE = "CPUs=4 RealMemory=1000"
"""With config_overrides it need not be true."""


PARTITIONS = "PartitionName=main Default=YES MaxTime=INFINITE Nodes=ALL State=UP"


def slurm_conf(
    control: tuple[str, str], nodes: Mapping[str, str], keys: Mapping[str, str | None], partitions: str = PARTITIONS
) -> str:
    """Return slurm.conf. `control` and `nodes` are names with addresses; a key of `keys` without value is left out."""
    settings = {**DEFAULTS, "SlurmctldHost": "{}({})".format(*control), **keys}
    return "\n".join(
        [
            *(f"{key}={value}" for key, value in sorted(settings.items()) if value is not None),
            *(f"NodeName={name} NodeAddr={address} {NODE}" for name, address in nodes.items()),
            partitions,
            "",
        ]
    )
