# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The words that keys such as SchedulerParameters can hold, by version. Slurm silently ignores other words.

Each line has the words of one key of slurm.conf; `word:22.05..` is known from 22.05 on, `word:..23.11` up to 23.11.

Source: the manual page slurm.conf(5) at the tags slurm-21-08-5-1, 22-05-8-1, 23-11-4-1 and 24-11-5-1, and, for words
missing from that page, the code (calls of xstrcasestr and conf_get_opt_str). Keys whose unknown words slurmctld
refuses, such as DebugFlags, PrologFlags and SelectTypeParameters, are left to the gate.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import cache

from ansible.module_utils.slurmstead.conf import finding as conf_finding
from ansible.module_utils.slurmstead.conf import keys as conf_keys
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.conf import versions as conf_versions
from ansible.module_utils.slurmstead.conf.finding import Finding

WORDS = """
AccountingStoreFlags job_comment job_env job_extra:23.11.. job_script no_stdio:24.11..
BcastParameters Compression DestDir Exclude send_libs
CommunicationParameters block_null_hash:22.05.. CheckGhalQuiesce:..23.11 DisableIPv4 EnableIPv6
  getnameinfo_cache_timeout:23.11.. keepaliveinterval:22.05.. keepaliveprobes:22.05.. keepalivetime:22.05..
  NoAddrCache NoCtldInAddrAny NoInAddrAny
DependencyParameters disable_remote_singleton kill_invalid_depend max_depend_depth:22.05..
JobAcctGatherParams DisableGPUAcct:23.11.. NoShared OverMemoryKill UsePss
LaunchParameters batch_step_set_cpu_freq cray_net_exclusive disable_send_gids enable_nss_slurm lustre_no_flush
  mem_sort mpir_use_nodeaddr slurmstepd_memlock slurmstepd_memlock_all test_exec ulimit_pam_adopt:23.11..
  use_interactive_step
PreemptParameters min_exempt_priority reclaim_licenses reorder_count send_user_signal strict_order
  suspend_grace_time youngest_first
PriorityFlags ACCRUE_ALWAYS CALCULATE_RUNNING DEPTH_OBLIVIOUS NO_FAIR_TREE FAIR_TREE INCR_ONLY MAX_TRES
  NO_NORMAL_ALL NO_NORMAL_ASSOC NO_NORMAL_PART NO_NORMAL_QOS NO_NORMAL_TRES
  SMALL_RELATIVE_TO_TIME
PrivateData accounts cloud:..22.05 events jobs nodes partitions reservations usage users all
SchedulerParameters allow_zero_lic assoc_limit_stop batch_sched_delay bb_array_stage_cnt
  bf_allow_magnetic_slot:24.11.. bf_busy_nodes bf_continue bf_hetjob_immediate bf_hetjob_prio bf_interval
  bf_job_part_count_reserve bf_licenses:22.05.. bf_max_job_array_resv bf_max_job_assoc bf_max_job_part
  bf_max_job_start bf_max_job_test bf_max_job_user bf_max_job_user_part bf_max_time bf_min_age_reserve
  bf_min_prio_reserve bf_node_space_size bf_one_resv_per_job bf_resolution bf_running_job_reserve
  bf_topopt_enable:24.11.. bf_topopt_iterations:24.11.. bf_window bf_window_linear bf_yield_interval bf_yield_sleep
  build_queue_timeout correspond_after_task_cnt default_queue_depth defer defer_batch:23.11..
  delay_boot disable_hetero_steps disable_hetjob_steps disable_job_shrink enable_hetero_steps enable_hetjob_steps
  enable_job_state_cache:24.05.. enable_user_top extra_constraints:23.11.. ignore_constraint_validation:24.11..
  Ignore_NUMA ignore_prefer_validation:22.05.. max_array_tasks max_job_bf max_rpc_cnt max_rpc_count max_sched_time
  max_script_size max_submit_line_size:23.11.. max_switch_wait no_backup_scheduling no_env_cache nohold_on_prolog_fail
  pack_serial_at_end partition_job_depth preempt_reorder_count:..22.05 preempt_send_user_signal
  preempt_strict_order:..22.05 preempt_youngest_first:..22.05 reduce_completing_frag requeue_setup_env_fail
  salloc_wait_nodes sbatch_wait_nodes sched_interval sched_max_job_start sched_min_interval spec_cores_first
  step_retry_count step_retry_time time_min_as_soft_limit:23.11.. whole_hetjob whole_pack
ScronParameters enable explicit_scancel:23.11..
SlurmctldParameters allow_user_triggers cloud_dns cloud_reg_addrs:..22.05 conmgr_connect_timeout:24.11..
  conmgr_max_connections:24.11.. conmgr_read_timeout:24.11.. conmgr_threads:24.11.. conmgr_use_poll:24.11..
  conmgr_wait_write_delay:24.11.. conmgr_write_timeout:24.11.. disable_triggers:23.11.. enable_configless
  enable_rpc_queue enable_stepmgr:24.05.. idle_on_node_suspend max_dbd_msg_action max_powered_nodes:24.05..
  no_quick_restart:23.11.. node_reg_mem_percent power_save_interval power_save_min_interval
  preempt_send_user_signal:..22.05 reboot_from_controller rl_bucket_size:23.11.. rl_enable:23.11..
  rl_log_freq:23.11.. rl_refill_period:23.11.. rl_refill_rate:23.11.. rl_table_size:23.11.. user_resv_delete
  validate_nodeaddr_threads:23.11..
SlurmdParameters allow_ecores:23.11.. config_override config_overrides conmgr_connect_timeout:24.11..
  conmgr_max_connections:24.11.. conmgr_read_timeout:24.11.. conmgr_threads:24.11.. conmgr_use_poll:24.11..
  conmgr_wait_write_delay:24.11.. conmgr_write_timeout:24.11.. contain_spank:24.05.. l3cache_as_socket
  numa_node_as_socket:22.05.. shutdown_on_reboot
TopologyParam Dragonfly NoCtldInAddrAny:..22.05 NoInAddrAny:..22.05 RoutePart:23.11.. RouteTree:23.11..
  SwitchAsNodeRank:23.11.. TopoOptional
X11Parameters home_xauthority
"""


@cache
def words(version: str) -> Mapping[str, frozenset[str]]:
    """Return the words that a version knows by the name of their key, all as written in the table.

    >>> "cloud_reg_addrs" in words("22.05.8")["SlurmctldParameters"]
    True
    """
    found: dict[str, frozenset[str]] = {}
    for line in WORDS.strip().replace("\n  ", " ").splitlines():
        key, *entries = line.split()
        found[key] = frozenset(word for word, span in map(_entry, entries) if _within(version, span))
    return found


def _entry(text: str) -> tuple[str, str]:
    word, _, span = text.partition(":")
    return word, span


def _within(version: str, span: str) -> bool:
    first, _, last = span.partition("..")
    number = conf_versions.number(version)
    return (not first or number >= conf_versions.number(first)) and (not last or number <= conf_versions.number(last))


def span_of(key: str, word: str) -> list[str]:
    """Return the supported versions that know a word.

    >>> span_of("SlurmdParameters", "allow_ecores")
    ['23.11', '24.11']
    """
    return [
        version
        for version in conf_keys.VERSIONS
        if word.lower() in {known.lower() for known in words(version).get(key, ())}
    ]


def unknown_words(files: Mapping[str, str], version: str) -> Iterator[Finding]:
    """Yield a finding for each word in slurm.conf that the version ignores, with the nearest known word."""
    model = conf_model.read(files.get("slurm.conf", ""))
    for key, known in words(version).items():
        pair = model.settings.get(key.lower())
        spelled = {word.lower(): word for word in known}
        for word in pair.value.split(",") if pair else ():
            name = word.strip().partition("=")[0].partition(":")[0]
            if not name or name.lower() in spelled:
                continue
            elsewhere = span_of(key, name)
            if elsewhere:
                what = f"Slurm {version} ignores {name} in {key}: only {', '.join(elsewhere)} know it"
            else:
                what = f"Slurm ignores {name} in {key}: it knows no such word"
            match = difflib.get_close_matches(name.lower(), spelled, n=1, cutoff=0.6)
            advice = f"did you mean {spelled[match[0]]}?" if match else "see slurm.conf(5)"
            assert pair is not None
            yield conf_finding.at(files, "slurm.conf", pair.line, what, advice)
