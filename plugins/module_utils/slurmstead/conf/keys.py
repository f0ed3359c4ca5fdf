# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The keys that slurm.conf and cgroup.conf can hold, by Slurm version.

Each table has one line per key: its name as Slurm spells it, the type of its value and, if not every supported version
has it, the versions that do (`22.05..` from 22.05 on, `..23.11` up to 23.11).

Source: the option tables that Slurm's own parser uses, at the tags slurm-21-08-5-1, 22-05-8-1, 23-11-4-1 and 24-11-5-1
(src/common/read_config.c: slurm_conf_options, _nodename_options, _partition_options; src/common/cgroup.c, since 23.02
src/interfaces/cgroup.c: options). If a version's parser knows a key only to reject it or to report that it ignores it,
the key counts as absent from that version. slurmctld and slurmd do not start with an absent key.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ansible.module_utils.slurmstead.conf import versions as conf_versions

VERSIONS = tuple(conf_versions.TABLE)
"""The supported versions, oldest first: Ubuntu 22.04, Debian 12, Ubuntu 24.04, Debian 13."""

VERSION_OF_RELEASE = {version.codename: name for name, version in conf_versions.TABLE.items()}
"""Slurm's version by the code name of the distribution's release."""


@dataclass(frozen=True)
class Key:
    """One key of a configuration file."""

    name: str
    type: str
    """string, integer, number (integer or decimal fraction) or boolean"""
    versions: tuple[str, ...]
    """the supported versions that know it, oldest first"""


def _key(line: str) -> Key:
    name, kind, *span = line.split()
    first, _, last = span[0].partition("..") if span else ("", "", "")
    start = VERSIONS.index(first) if first else 0
    stop = VERSIONS.index(last) + 1 if last else len(VERSIONS)
    return Key(name, kind, VERSIONS[start:stop])


@cache
def keys(table: str) -> dict[str, Key]:
    """The keys of one of the tables below, by name."""
    return {key.name: key for key in map(_key, table.strip().splitlines())}


SLURM_CONF = """
AccountingStorageBackupHost string
AccountingStorageEnforce string
AccountingStorageExternalHost string
AccountingStorageHost string
AccountingStorageParameters string
AccountingStoragePass string
AccountingStoragePort integer
AccountingStorageTRES string
AccountingStorageType string
AccountingStorageUser string
AccountingStoreFlags string
AcctGatherEnergyType string
AcctGatherFilesystemType string
AcctGatherInfinibandType string
AcctGatherInterconnectType string
AcctGatherNodeFreq integer
AcctGatherProfileType string
AllowSpecResourcesUsage boolean
AuthAltParameters string
AuthAltTypes string
AuthInfo string
AuthType string
BackupAddr string
BackupController string
BatchStartTimeout integer
BcastExclude string
BcastParameters string
BurstBufferParameters string
BurstBufferType string
CertmgrParameters string 24.11..
CertmgrType string 24.11..
CliFilterPlugins string
ClusterName string
CommunicationParameters string
CompleteWait integer
ControlAddr string
ControlMachine string
CoreSpecPlugin string ..23.11
CpuFreqDef string
CpuFreqGovernors string
CredType string
CryptoType string
DataParserParameters string 24.11..
DebugFlags string
DefCPUPerGPU integer
DefMemPerCPU integer
DefMemPerGPU integer
DefMemPerNode integer
DependencyParameters string
DisableRootJobs boolean
DownNodes string
EioTimeout integer
EnforcePartLimits string
Epilog string
EpilogMsgTime integer
EpilogSlurmctld string
ExtSensorsFreq integer ..22.05
ExtSensorsType string ..22.05
FairShareDampeningFactor integer
FederationParameters string
FirstJobId integer
GetEnvTimeout integer
GpuFreqDef string
GresTypes string
GroupUpdateForce integer
GroupUpdateTime integer
HashPlugin string 24.11..
HealthCheckInterval integer
HealthCheckNodeState string
HealthCheckProgram string
InactiveLimit integer
InteractiveStepOptions string
JobAcctGatherFrequency string
JobAcctGatherParams string
JobAcctGatherType string
JobCompHost string
JobCompLoc string
JobCompParams string
JobCompPass string
JobCompPort integer
JobCompType string
JobCompUser string
JobContainerType string
JobCredentialPrivateKey string ..22.05
JobCredentialPublicCertificate string ..22.05
JobFileAppend integer
JobRequeue integer
JobSubmitPlugins string
KeepAliveTime integer
KillOnBadExit integer
KillWait integer
LaunchParameters string
LaunchType string
Licenses string
LogTimeFormat string
MailDomain string
MailProg string
MaxArraySize integer
MaxBatchRequeue integer 23.11..
MaxDBDMsgs integer
MaxJobCount integer
MaxJobId integer
MaxMemPerCPU integer
MaxMemPerNode integer
MaxNodeCount integer 22.05..
MaxStepCount integer
MaxTasksPerNode integer
MCSParameters string
MCSPlugin string
MessageTimeout integer
MinJobAge integer
MpiDefault string
MpiParams string
NodeFeaturesPlugins string
NodeName string
NodeSet string
OverTimeLimit integer
PartitionName string
PluginDir string
PlugStackConfig string
PowerParameters string ..23.11
PowerPlugin string ..23.11
PreemptExemptTime string
PreemptMode string
PreemptParameters string 23.11..
PreemptType string
PrEpParameters string
PrEpPlugins string
PriorityCalcPeriod string
PriorityDecayHalfLife string
PriorityFavorSmall boolean
PriorityFlags string
PriorityMaxAge string
PriorityParameters string
PrioritySiteFactorParameters string
PrioritySiteFactorPlugin string
PriorityType string
PriorityUsageResetPeriod string
PriorityWeightAge integer
PriorityWeightAssoc integer
PriorityWeightFairshare integer
PriorityWeightJobSize integer
PriorityWeightPartition integer
PriorityWeightQOS integer
PriorityWeightTRES string
PrivateData string
ProctrackType string
Prolog string
PrologEpilogTimeout integer
PrologFlags string
PrologSlurmctld string
PropagatePrioProcess integer
PropagateResourceLimits string
PropagateResourceLimitsExcept string
RebootProgram string
ReconfigFlags string
RequeueExit string
RequeueExitHold string
ResumeFailProgram string
ResumeProgram string
ResumeRate integer
ResumeTimeout integer
ResvEpilog string
ResvOverRun integer
ResvProlog string
ReturnToService integer
RoutePlugin string
SbcastParameters string
SchedulerParameters string
SchedulerTimeSlice integer
SchedulerType string
ScronParameters string
SelectType string
SelectTypeParameters string
SlurmctldAddr string
SlurmctldDebug string
SlurmctldHost string
SlurmctldLogFile string
SlurmctldParameters string
SlurmctldPidFile string
SlurmctldPlugstack string ..22.05
SlurmctldPort string
SlurmctldPrimaryOffProg string
SlurmctldPrimaryOnProg string
SlurmctldSyslogDebug string
SlurmctldTimeout integer
SlurmdDebug string
SlurmdLogFile string
SlurmdParameters string
SlurmdPidFile string
SlurmdPort integer
SlurmdSpoolDir string
SlurmdSyslogDebug string
SlurmdTimeout integer
SlurmdUser string
SlurmSchedLogFile string
SlurmSchedLogLevel integer
SlurmUser string
SrunEpilog string
SrunPortRange string
SrunProlog string
StateSaveLocation string
SuspendExcNodes string
SuspendExcParts string
SuspendExcStates string 23.11..
SuspendProgram string
SuspendRate integer
SuspendTime string
SuspendTimeout integer
SwitchParameters string
SwitchType string
TaskEpilog string
TaskPlugin string
TaskPluginParam string
TaskProlog string
TCPTimeout integer
TLSParameters string 24.11..
TLSType string 24.11..
TmpFS string
TopologyParam string
TopologyPlugin string
TrackWCKey boolean
TreeWidth integer
UnkillableStepProgram string
UnkillableStepTimeout integer
UsePAM boolean
VSizeFactor integer
WaitTime integer
X11Parameters string
"""
"""Lines of slurm.conf other than those of nodes and partitions."""

NODE = """
BcastAddr string
Boards integer
CoreSpecCount integer
CoresPerSocket integer
CpuBind string
CPUs integer
CPUSpecList string
Feature string
Features string
Gres string
MemSpecLimit integer
NodeAddr string
NodeHostname string
Port string
Procs integer
RealMemory integer
Reason string
RestrictedCoresPerGPU integer 24.11..
Sockets integer
SocketsPerBoard integer
State string
ThreadsPerCore integer
TmpDisk integer
TRESWeights string
Weight integer
"""
"""What may follow `NodeName=<name>`."""

PARTITION = """
AllocNodes string
AllowAccounts string
AllowGroups string
AllowQos string
Alternate string
CpuBind string
Default boolean
DefaultTime string
DefCPUPerGPU integer
DefMemPerCPU integer
DefMemPerGPU integer
DefMemPerNode integer
DenyAccounts string
DenyQos string
DisableRootJobs boolean
ExclusiveTopo boolean 24.11..
ExclusiveUser boolean
GraceTime integer
Hidden boolean
LLN boolean
MaxCPUsPerNode integer
MaxCPUsPerSocket integer 23.11..
MaxMemPerCPU integer
MaxMemPerNode integer
MaxNodes integer
MaxTime string
MinNodes integer
Nodes string
OverSubscribe string
OverTimeLimit string
PowerDownOnIdle boolean 23.11..
PreemptMode string
Priority integer
PriorityJobFactor integer
PriorityTier integer
QOS string
ReqResv boolean
ResumeTimeout integer
RootOnly boolean
SelectTypeParameters string
Shared string
State string
SuspendTime integer
SuspendTimeout integer
TRESBillingWeights string
"""
"""What may follow `PartitionName=<name>`."""

CGROUP_CONF = """
AllowedDevicesFile string ..21.08
AllowedKmemSpace number ..22.05
AllowedRAMSpace number
AllowedSwapSpace number
CgroupAutomount boolean ..22.05
CgroupMountpoint string
CgroupPlugin string
CgroupReleaseAgentDir string ..21.08
ConstrainCores boolean
ConstrainDevices boolean
ConstrainKmemSpace boolean ..22.05
ConstrainRAMSpace boolean
ConstrainSwapSpace boolean
EnableControllers boolean 23.11..
IgnoreSystemd boolean 22.05..
IgnoreSystemdOnFailure boolean 22.05..
MaxKmemPercent number ..22.05
MaxRAMPercent number
MaxSwapPercent number
MemoryLimitEnforcement boolean
MemoryLimitThreshold number
MemorySwappiness integer
MinKmemSpace integer ..22.05
MinRAMSpace integer
SignalChildrenProcesses boolean 23.11..
SystemdTimeout integer 24.11..
TaskAffinity boolean ..21.08
"""
"""Lines of cgroup.conf."""

REMOVED = {
    "AccountingStorageLoc": "remove it",
    "AccountingStoreJobComment": "write AccountingStoreFlags: job_comment",
    "FastSchedule": "instead of FastSchedule: 2, write SlurmdParameters: config_overrides",
    "FrontendName": "remove it",
    "SallocDefaultCommand": "write LaunchParameters: use_interactive_step",
    "SchedulerAuth": "remove it",
}
"""Keys of slurm.conf that every supported version rejects or ignores, and what to do instead."""
