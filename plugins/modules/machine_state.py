#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Inspect a machine before anything on it is changed."""

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_state
short_description: Inspect a machine before anything on it is changed
description:
  - Read-only. Reports the problems of this machine that would stop a run, so that all machines can be checked before
    any is changed.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  releases:
    description: Supported releases by distribution, as os-release(5) names them (C(ID) and C(VERSION_ID)).
    type: dict
    required: true
  address: {type: str, required: true, description: Declared address of the machine.}
  groups: {type: list, elements: dict, default: [], description: 'Declared groups, see M(local_accounts).'}
  users: {type: list, elements: dict, default: [], description: 'Declared users, see M(local_accounts).'}
  has_people: {type: bool, default: true, description: Whether the site has a people.yml.}
  has_broker: {type: bool, default: false, description: Whether the broker of Celery is to run here.}
  by_hand: {type: list, elements: str, default: [], description: 'Accounts that no run locks, see M(local_accounts).'}
  has_users: {type: bool, default: true, description: Whether the inventory defines C(accounts_users).}
  node: {type: dict, default: {}, description: 'Declared keys of its line in slurm.conf(5).'}
  is_control: {type: bool, default: true, description: Whether the inventory says that slurmctld runs here.}
  host_name: {type: str, default: "", description: 'Name of the machine in the inventory, which becomes its host name.'}
  share:
    description: The declared share. C(source) is its directory on the server, C(path) its mount point.
    type: dict
    default: {}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Inspect the machine
  machine_state:
    releases: {debian: ["12", "13"]}
    address: 192.168.1.101
"""

RETURN = r"""
ansible_facts:
  description: Facts that the roles use.
  type: dict
  returned: always
  contains:
    packages: {description: Names of the installed packages., type: list}
    packages_interrupted: {description: Whether dpkg runs or was interrupted., type: bool}
    accounting_exists: {description: Whether slurmdbd was configured here., type: bool}
    broker_exists: {description: Whether the broker of Celery was configured here., type: bool}
    power_saving_exists: {description: Whether this machine lets others sleep., type: bool}
    power_asleep: {description: Machines that this one last saw asleep., type: list, elements: str}
    jupyterhub_exists: {description: Whether this machine has a hub for notebooks., type: bool}
    julia_exists: {description: Whether the command of the role julia is here., type: bool}
    login_exists: {description: Whether the role login was applied here., type: bool}
    router_exists: {description: Whether this machine is the router of an inside network., type: bool}
    quiet_exists: {description: Whether jobs of the partition quiet make this machine quiet., type: bool}
    sandbox_exists: {description: Whether the role sandbox was applied here., type: bool}
    package_cache_exists: {description: Whether the role package_cache was applied here., type: bool}
    slurmd_enabled: {description: Whether slurmd starts here at boot., type: bool}
    sshd_penalizes: {description: Whether sshd refuses addresses from which logins have failed., type: bool}
    vpn_exists: {description: Whether this machine has the VPN., type: bool}
    slurm_version: {description: Version of Slurm that this release installs; null if it is not supported., type: str}
has_queue: {description: Whether this machine has the queue of a slurmctld., type: bool, returned: always}
jobs: {description: Numbers of the jobs that run here., type: list, elements: str, returned: always}
share:
  description: What this machine has of a share now, see storage/share.py; empty without O(share).
  type: dict
  returned: always
problems:
  description: Problems, one line each; empty on a good machine.
  type: list
  elements: str
  returned: always
"""

import json
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.conf import versions as conf_versions
from ansible.module_utils.slurmstead.doctor.facts import jobs as running
from ansible.module_utils.slurmstead.firewall import sshd
from ansible.module_utils.slurmstead.hardware import measure, node_lines
from ansible.module_utils.slurmstead.identity import accounts, departures
from ansible.module_utils.slurmstead.packages import apt
from ansible.module_utils.slurmstead.people.lost import lost_lists
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.jobs import State, in_words
from ansible.module_utils.slurmstead.storage import share

ACCOUNTING = Path("/etc/systemd/system/slurmdbd.service.d/slurmstead.conf")
"""What only the role accounting writes."""

BROKER = Path("/etc/slurmstead/celery_broker.json")
"""The passwords of the broker's users, see broker_users."""
BROKER_NEEDS = {"rabbitmq-server", "redis-server"}

POWER_SAVING = Path("/etc/slurmstead/power.json")
"""What only the role power writes."""
POWER_MEMORY = Path("/var/lib/slurmstead/power/memory.json")
"""See power/watch.py."""

JULIA, JULIA_ONLY = Path("/usr/local/bin/julia"), b"/default-$(uname -m)/bin/julia"
"""The command of the role julia, and what another one of this name does not contain."""

LOGIN = Path("/etc/slurmstead/login-users")
"""See login/pam.py."""

QUIET = Path("/usr/local/lib/slurmstead/prolog.d/slurmstead-quiet")
"""What the role scratch copies from the role quiet."""

SLURMD = Path("/etc/systemd/system/multi-user.target.wants/slurmd.service")
"""A link of systemd."""

SANDBOX = Path("/etc/slurmstead/sandbox.json")
"""What only the role sandbox writes."""

PACKAGE_CACHE = Path("/usr/local/libexec/slurmstead/apt-proxy")
"""See the role package_cache."""

JUPYTERHUB = Path("/etc/systemd/system/slurmstead-jupyterhub.service")
"""The unit of the role jupyterhub."""

ROUTER = Path("/etc/systemd/system/slurmstead-router.service")
"""A unit of the role router."""

VPN = Path("/etc/systemd/system/slurmstead-vpn.service")
"""The unit of the role vpn."""


CONTROLLER = Path("/etc/slurm/slurmstead/good")
"""The last configuration that worked with the slurmctld of this machine."""

SLURM_CONF = Path("/etc/slurm/slurm.conf")

QUEUES = (Path("/var/spool/job_state"), Path("/var/lib/slurm/slurmctld/job_state"))
"""The usual queues of a slurmctld that we did not configure."""


def asleep() -> list[str]:
    """Return the machines that control last saw asleep or shut down, as power.watch.Memories are written."""
    try:
        memories = json.loads(POWER_MEMORY.read_text())["machines"]
    except (OSError, ValueError, KeyError):
        return []
    return sorted(name for name, memory in memories.items() if memory["asleep"] or memory["told"])


def controller_problems(is_control: bool, published: Path = CONTROLLER) -> list[str]:
    """Return why the queue would be lost: slurmctld of another machine would begin without it, and end all jobs."""
    if is_control or not published.is_symlink():
        return []
    return [
        "this machine has the cluster's queue, but is not in the group control; a new slurmctld would begin without "
        "it and end all jobs. Put it back into the group control, or restore a backup to a machine with its name and "
        f"address (docs/backup-and-key.md). To give the queue up, run `systemctl disable --now slurmctld` there and "
        f"delete {published.parent}"
    ]


def name_problems(name: str, conf: str, state: Callable[[], State]) -> list[str]:
    """Return why control cannot get this name: slurmctld accepts no other host name than that in its slurm.conf.

    :param conf: the active slurm.conf, whose SlurmctldHost cannot be changed while jobs run

    >>> from ansible.module_utils.slurmstead.slurm.jobs import Job
    >>> seen = State((Job("7", "RUNNING", nodes=("n1",)),))
    >>> name_problems("ctl", "SlurmctldHost=node3(10.0.0.3)", lambda: seen)[0].partition(";")[0]
    'group control: slurmctld runs as node3, in the inventory it is ctl, and job 7 (running on n1) has not ended'
    >>> name_problems("node3", "SlurmctldHost=node3(10.0.0.3)", lambda: seen)
    []
    """
    now = conf_model.read(conf).value("SlurmctldHost").partition("(")[0]
    if now in ("", name) or not (running := state().running):
        return []
    return [
        f"group control: slurmctld runs as {now}, in the inventory it is {name}, and {in_words(running)} "
        f"{'has' if len(running) == 1 else 'have'} not ended; slurmctld would not start again under the new name. Call "
        f"it {now} in the inventory until no job runs"
    ]


def release_problems(release: dict[str, str], supported: dict[str, list[str]]) -> list[str]:
    """Return why this distribution is not supported.

    >>> release_problems({"ID": "debian", "VERSION_ID": "11", "PRETTY_NAME": "Debian 11"}, {"debian": ["12", "13"]})
    ['Debian 11 is not supported; install debian 12 or 13']
    """
    if release.get("VERSION_ID", "") in supported.get(release.get("ID", ""), []):
        return []
    choices = ", ".join(f"{name} {' or '.join(versions)}" for name, versions in sorted(supported.items()))
    return [f"{release.get('PRETTY_NAME', 'this system')} is not supported; install {choices}"]


def broker_problems(release: Mapping[str, str]) -> list[str]:
    """Return why this release cannot run the broker: each user's channels need Redis 6.2.

    >>> broker_problems({"ID": "debian", "VERSION_ID": "12"})
    []
    """
    if (release.get("ID"), release.get("VERSION_ID")) != ("ubuntu", "22.04"):
        return []
    return [
        "celery_broker_users: the broker needs Redis 6.2 or newer, but Ubuntu 22.04 has 6.0; install a newer release, "
        "or remove celery_broker_users and celery_broker_groups"
    ]


def address_problems(address: str, links: list[dict[str, Any]]) -> list[str]:
    """Return why the declared address is wrong; `links` is the output of `ip --json address`."""
    entries = [entry for link in links for entry in link.get("addr_info", []) if entry.get("scope") == "global"]
    own = sorted(entry["local"] for entry in entries)
    if address in own:
        return []
    seen = ", ".join(own) or "no address"
    return [f"os_address: {address} is declared, but this machine has {seen}; correct one of them"]


def node_problems(measured: Mapping[str, Any], declared: Mapping[str, Any], version: str | None) -> list[str]:
    """Return why the declared keys of a node's line are wrong; `version` is Slurm's.

    >>> measured = {"cpus": 1, "sockets": 1, "cores_per_socket": 1, "threads_per_core": 1, "memory": 1024}
    >>> node_problems(measured, {"RealMemory": 4096}, None)
    ['slurm_nodes: RealMemory=4096 is declared, but the node has 1024 MiB; declare less, or nothing']
    """
    if not declared or not node_lines.was_measured(measured):
        return []
    try:
        node_lines.node_keys(measured, declared, version)
    except node_lines.NodeError as error:
        return [f"slurm_nodes: {error}"]
    return []


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "releases": {"type": "dict", "required": True},
            "address": {"type": "str", "required": True},
            "groups": {"type": "list", "elements": "dict", "default": []},
            "users": {"type": "list", "elements": "dict", "default": []},
            "has_people": {"type": "bool", "default": True},
            "has_broker": {"type": "bool", "default": False},
            "has_users": {"type": "bool", "default": True},
            "by_hand": {"type": "list", "elements": "str", "default": []},
            "node": {"type": "dict", "default": {}},
            "is_control": {"type": "bool", "default": True},
            "host_name": {"type": "str", "default": ""},
            "share": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    _, links, _ = module.run_command(["ip", "--json", "address"], check_rc=True)
    _, installed, _ = module.run_command(
        ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package}\\n"], check_rc=True
    )
    states = (line.split() for line in installed.splitlines())
    groups, users = accounts.wanted(module.params["groups"], module.params["users"])
    release = platform.freedesktop_os_release()
    version = conf_versions.of_release(release.get("ID", ""), release.get("VERSION_ID", ""))
    try:
        record = departures.read(departures.RECORD) or {}
        unreadable = []
    except (OSError, ValueError) as error:
        record, unreadable = {}, [str(error)]
    active = SLURM_CONF.read_text(errors="replace") if SLURM_CONF.is_file() else ""
    gone, known = departures.departed(record, users, ()), accounts.known()
    locked = departures.departed(record, users, module.params["by_hand"])
    problems = [
        *unreadable,
        *lost_lists(locked, record, known.users, module.params["has_people"], module.params["has_users"]),
        *controller_problems(module.params["is_control"]),
        *(name_problems(module.params["host_name"], active, Slurm().state) if module.params["is_control"] else []),
        *release_problems(release, module.params["releases"]),
        *(broker_problems(release) if module.params["has_broker"] else []),
        *address_problems(module.params["address"], json.loads(links)),
        *accounts.conflicts(groups, users, known, gone),
        # Then CPUs may be missing that the node has.
        *(() if measure.QUIET.exists() else node_problems(measure.measure(Path("/")), module.params["node"], version)),
    ]
    packages = sorted(package for state, package in states if state == "installed")
    facts = {
        "packages": packages,
        "packages_interrupted": apt.is_interrupted(),
        "slurm_version": version,
        "accounting_exists": ACCOUNTING.exists(),
        "broker_exists": BROKER.exists() and BROKER_NEEDS <= {*packages},
        "jupyterhub_exists": JUPYTERHUB.exists(),
        "julia_exists": JULIA.is_file() and JULIA_ONLY in JULIA.read_bytes(),
        "login_exists": LOGIN.exists(),
        "package_cache_exists": PACKAGE_CACHE.exists(),
        "power_saving_exists": POWER_SAVING.exists(),
        "power_asleep": asleep() if POWER_SAVING.exists() else [],
        "router_exists": ROUTER.exists(),
        "quiet_exists": QUIET.exists(),
        "sandbox_exists": SANDBOX.exists(),
        "slurmd_enabled": SLURMD.is_symlink(),
        "sshd_penalizes": sshd.penalizes(),
        "vpn_exists": VPN.exists(),
    }
    wanted = module.params["share"]
    found = share.found(wanted["source"], wanted["path"]) if wanted else {}
    queue = {
        "has_queue": CONTROLLER.is_symlink() or any(path.exists() for path in QUEUES),
        "jobs": sorted(running.here(), key=int),
    }
    module.exit_json(changed=False, problems=problems, share=found, ansible_facts=facts, **queue)


if __name__ == "__main__":
    main()
