# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The action that each daemon needs after a change of a key, by version, and which changes harm jobs.

Source: the manual pages slurm.conf(5), cgroup.conf(5), gres.conf(5) and scontrol(1) of 21.08.5, 22.05.8, 23.11.4 and
24.11.5 ("A restart of slurmctld is required …"; from 23.11 on "Changes to TCP listening settings will require a daemon
restart", and scontrol reconfigure starts new daemons, which cannot change ports and authentication), and the FAQ,
question "add nodes". If a page does not mention slurmd, a changed plugin that slurmd loads at its start still gets a
restart of slurmd, which does not affect jobs. Pages up to 22.05 do not mention keys that slurmctld reads only once:
MaxArraySize (max_array_size in src/slurmctld/job_mgr.c), AccountingStorageTRES (_init_tres in
src/slurmctld/controller.c), and RoutePlugin and PrioritySiteFactorPlugin, whose plugins are loaded once
(src/common/slurm_route.c, site_factor.c).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ansible.module_utils.slurmstead.conf import versions as conf_versions

FORKS_TO_RECONFIGURE = (23, 11)
"""The first version whose `scontrol reconfigure` starts new daemons and keeps the old ones if these fail."""


class Action(enum.IntEnum):
    """Actions on slurmctld; a higher number includes the lower ones."""

    NOTHING = 0
    RECONFIGURE = 1
    RESTART = 2


class While(enum.Enum):
    """When a change is refused."""

    NEVER = "-"
    RUNNING = "running"
    """while a job runs on an affected node"""
    ANY = "any"
    """while any job runs or waits: slurmctld would forget it"""


@dataclass(frozen=True)
class Need:
    """The actions that a change of a key requires."""

    action: Action
    slurmd: bool = False
    refused: While = While.NEVER


CODES = {
    "R": Need(Action.RECONFIGURE),
    "C": Need(Action.RESTART),
    "D": Need(Action.RECONFIGURE, slurmd=True),
    "B": Need(Action.RESTART, slurmd=True),
}
"""R: all daemons reread their files; C: restart slurmctld; D: restart slurmd, slurmctld rereads; B: both."""

SLURM_CONF = """
AccountingStorageEnforce C R -
AccountingStorageTRES C R -
AccountingStorageType C R -
AcctGatherEnergyType B R -
AcctGatherFilesystemType B R -
AcctGatherInterconnectType B R -
AcctGatherProfileType B R -
AuthAltParameters C C -
AuthAltTypes B B -
AuthInfo B B running
AuthType B B running
BurstBufferType C R -
ClusterName B B any
CommunicationParameters B B -
CoreSpecPlugin D R -
CredType B B running
CryptoType B B running
GresTypes B R -
HashPlugin B B running
JobAcctGatherType D R running/-
JobCompType C R -
JobContainerType B R running
MaxArraySize C R -
MaxJobCount C R -
MaxNodeCount C R -
MCSPlugin C R -
NodeFeaturesPlugins B R -
PluginDir B R -
PowerPlugin C R -
PreemptType C R -
PrEpPlugins B R -
PrioritySiteFactorPlugin C R -
PriorityType C R -
ProctrackType B R running
RoutePlugin B R -
SchedulerType C R -
SelectType B R any
SelectTypeParameters C R running
SlurmctldAddr B B running
SlurmctldHost B B running
SlurmctldParameters C R -
SlurmctldPidFile C C -
SlurmctldPort B B running
SlurmdParameters D R -
SlurmdPidFile D D -
SlurmdPort B B running
SlurmdSpoolDir D D running
SlurmdUser D D running
SlurmUser B B running
StateSaveLocation C C any
SwitchType B B any
TaskPlugin D R -
TLSType B B running
TopologyPlugin B R -
"""
"""Key, need up to 22.05, need from 23.11 on, which jobs block the change. A key that is not listed: `R R -`.

`running/-` is refused while jobs run up to 22.05, and never from 23.11 on.
"""

NODE = """
Boards B R running
CoreSpecCount B R running
CoresPerSocket B R running
CPUs B R running
CPUSpecList B R running
Gres B R running
MemSpecLimit B R running
NodeAddr B R running
NodeHostname B R running
Port B B running
RealMemory B R -
Sockets B R running
ThreadsPerCore B R running
TmpDisk B R -
"""
"""The same for keys of a node; slurmd and the jobs are those of that node."""

FILES = """
cgroup.conf D R -
gres.conf B R running
oci.conf R R -
topology.conf B R -
"""
"""The same for other files; a file that is not listed needs `B R -`."""

CGROUP_LAYOUT = frozenset({"cgroupplugin", "cgroupmountpoint"})
"""Keys of cgroup.conf that move the cgroups of running jobs."""

OCI = "oci.conf"
"""Without its RunTimeRun, slurmd ignores `--container` and runs jobs outside of their images."""


@cache
def _table(text: str) -> Mapping[str, tuple[str, str, str]]:
    rows = (line.split() for line in text.strip().splitlines())
    return {key.lower(): (old, new, refused) for key, old, new, refused in rows}


def forks(version: str) -> bool:
    """Say whether a version's reconfigure starts new daemons and keeps the old ones if those fail.

    >>> forks("22.05.8"), forks("23.11.4")
    (False, True)
    """
    return conf_versions.number(version) >= FORKS_TO_RECONFIGURE


def need(table: str, key: str, version: str, otherwise: tuple[str, str, str] = ("R", "R", "-")) -> Need:
    """Return the need of a changed key or file.

    >>> need(SLURM_CONF, "MaxJobCount", "22.05").action.name, need(SLURM_CONF, "MaxJobCount", "24.11").action.name
    ('RESTART', 'RECONFIGURE')
    """
    old, new, refused = _table(table).get(key.lower(), otherwise)
    before, slash, since = refused.partition("/")
    code = CODES[new if forks(version) else old]
    return Need(code.action, code.slurmd, While(since if slash and forks(version) else before))
