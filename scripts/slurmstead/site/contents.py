"""The files of a new site, by name."""

import dataclasses
import json
import re
from collections.abc import Iterable, Sequence

import yaml

from slurmstead.site.find import HOSTS, MARKER

FIRST_UID = 2001
"""First uid of the cluster's users: 1000 belongs to an image's first user, the next ones to a machine's own users."""

CLUSTER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


@dataclasses.dataclass(frozen=True)
class Site:
    """An operator's description of a new cluster; a machine is a name and an address."""

    name: str
    control: Sequence[tuple[str, str]]
    workers: Sequence[tuple[str, str]]
    users: Sequence[str]
    keys: Sequence[str]
    template: str | None = None
    """of roles/shares"""

    @property
    def is_example(self) -> bool:
        """Whether no machine was given, so that the operator must fill in hosts.yml."""
        return not self.control and not self.workers

    @property
    def cluster_name(self) -> str:
        """The name of the directory if Slurm accepts it."""
        return self.name.lower() if CLUSTER_NAME.fullmatch(self.name.lower()) else "slurmstead"


def files(site: Site) -> dict[str, str]:
    """Return the text of each file of a site by its path; the site has no mistakes."""
    return {
        MARKER: "scripts/stead takes the directory of this file as the description of a cluster. Keep it.\n",
        ".gitignore": GITIGNORE,
        "README.md": README.format(name=site.cluster_name),
        HOSTS: _hosts(site),
        "group_vars/all.yml": GROUP_VARS + _shares(site.template),
        "hardware/.gitkeep": "",
        "files/README.md": FILES,
    }


def _shares(template: str | None) -> str:
    if not template:
        return ""
    return SHARES.format(template=template) + (COURSE if template == "course" else "")


def _quiet(workers: Sequence[tuple[str, str]], control: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Return the last worker that is not control; None if notebooks would have no other."""
    found = [machine for machine in workers if machine not in control]
    return found[-1] if found and len(workers) > 1 else None


def _hosts(site: Site) -> str:
    control, workers = site.control, site.workers
    if site.is_example:
        # Without addresses, so that validate-inventory refuses each machine until its address is filled in.
        control = [("head", "ADDRESS-OF-HEAD")]
        workers = [("node1", "ADDRESS-OF-NODE1"), ("node2", "ADDRESS-OF-NODE2")]
    quiet = _quiet(workers, control) if site.template == "course" else None
    hosts = []
    for name, address in sorted({*control, *workers}):
        note = "  # such as 192.168.1.101" if site.is_example else ""
        hosts += [f"    {_scalar(name)}:", f"      os_address: {_scalar(address)}{note}"]
        if (name, address) in control:
            hosts.append(f"      nfs_server_disks: []  # blank disks for the share, such as {DISKS['share']}")
        if (name, address) in workers:
            hosts.append(f"      scratch_disks: []  # blank disks for scratch, such as {DISKS['scratch']}")
        if (name, address) == quiet:
            hosts.append("      slurm_quiet: true  # one experiment at a time; set it for more workers: docs/quiet.md")
    users = []
    for uid, name in enumerate(site.users, FIRST_UID):
        keys = '"{{ bootstrap_authorized_keys }}"'
        users += [f"      - name: {_scalar(name)}", f"        uid: {uid}", f"        keys: {keys}"]
    return HOSTS_YML.format(
        example=EXAMPLE if site.is_example else "",
        cluster=_scalar(site.cluster_name),
        keys="\n".join(f"      - {json.dumps(key, ensure_ascii=False)}" for key in site.keys),
        users="\n".join(users),
        hosts="\n".join(hosts),
        control=_members(control),
        workers=_members(workers),
    )


def _members(machines: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"    {_scalar(name)}:" for name, _ in machines)


def _scalar(text: str) -> str:
    """Return a YAML scalar for a string: names such as 1 and no need quotes."""
    try:
        return text if yaml.safe_load(text) == text else json.dumps(text)
    except yaml.YAMLError:
        return json.dumps(text)


DISKS = {
    "share": "/dev/disk/by-id/ata-CT1000MX500SSD1_2117E5A0B123",
    "scratch": "/dev/disk/by-id/nvme-Samsung_SSD_980_500GB_S64DNX0T123456",
}

EXAMPLE = """\
# An example: give each machine its address, rename, add and remove machines, here and in the groups below.
"""

HOSTS_YML = """\
---
# The whole cluster: its machines, their disks, its users. All other variables have defaults (READMEs of the roles).
{example}all:
  vars:
    slurm_cluster_name: {cluster}
    # Public keys that may log in to the account `ansible`, which playbooks/bootstrap-hosts.yml creates on each machine.
    bootstrap_authorized_keys:
{keys}
    # Users who submit jobs; a user has the same uid on all machines.
    accounts_users:
{users}
  hosts:
{hosts}

# One machine runs slurmctld, and users log in to it.
control:
  hosts:
{control}

# One machine exports the share.
nfs_server:
  hosts:
{control}

# These run jobs.
workers:
  hosts:
{workers}
"""

GROUP_VARS = """\
---
# How the machines are reached after playbooks/bootstrap-hosts.yml.
ansible_host: "{{ os_address }}"
ansible_user: ansible
"""

SHARES = """
# Accounts, limits and shares of the users: docs/shares.md.
shares_template: {template}
"""

COURSE = """
# An experiment counts with all CPUs of its quiet node, and the notebook with its own. With a limit below their sum it
# would wait without end (QOSMaxCpuPerUserLimit). Add mem=..., such as cpu=20,mem=64G: otherwise a job with
# one CPU can take all memory of a node.
shares_qos:
  course: {MaxTRESPerUser: cpu=20}

# Notebooks in the browser; give the name under which browsers open control, if it has one: docs/notebooks.md.
jupyterhub_enabled: true
jupyterhub_names: []  # such as [course.example.org]

# Jobs can run in images, and experiments on quiet nodes must: docs/sandbox.md.
sandbox_enabled: true
sandbox_partitions: [quiet]

# Students can log in to a worker only while they have a job there, and each gets at most this much of control:
# docs/login.md.
login_only_with_jobs: true
login_user_memory: 25%
login_user_cpus: 2
"""

GITIGNORE = """\
# A backup holds the MUNGE key.
/*.tar.gz
*~
*.swp
"""

README = """\
# {name}

One Slurm cluster, described for Slurmstead. Commit every change; store no passwords here.

- `hosts.yml`: machines, disks, users
- `group_vars/`: variables of all machines or of a group
- `hardware/`: the hardware that `up` measured; commit it: it keeps machines that are off in the cluster
- `files/`: your own programs on the workers

In this directory, `scripts/stead up` of your clone of Slurmstead applies this description to the cluster.
Elsewhere, add `-i` and this path.
"""

FILES = """\
# Your programs on the workers

Put your own programs for the workers into `health.d/`, `prolog.d/` and `epilog.d/`. The README of `files/` in the
clone of Slurmstead describes them.
"""
