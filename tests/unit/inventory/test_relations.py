"""Rules between values: each fires with its variable, its value and what to do, and is silent on what is right."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from ansible.module_utils.slurmstead.inventory import relations
from ansible.module_utils.slurmstead.inventory.model import Specs
from ansible.module_utils.slurmstead.inventory.relations.cluster import CLUSTER_WIDE, ON_CONTROL
from ansible.module_utils.slurmstead.inventory.variables import COMPARED_CONNECTION_VARIABLES

Said = Callable[..., list[str]]

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUS1U0Gem7W8bORJv7qYZ3aa49ZquCEoOWoAJGi4CqP alice@home"


LAB = {"lab_number": 1, "lab_name": "test", "lab_directory": "/lab"}
"""What every machine of a lab has."""

JULIA = {"version": "1.10.5", "architecture": "aarch64", "sha256": "0" * 64}


def user(name: str, uid: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "uid": uid, **more}


GOOD = {
    "users": {
        "accounts_groups": [{"name": "lab", "gid": 3000}],
        "accounts_users": [user("alice", 2001, group="lab", keys=[KEY]), user("bob", 2002), user("_x-1", 70000)],
    },
    "disks": {
        "scratch_disks": ["/dev/disk/by-id/nvme-a-part1", "/dev/mapper/fast"],
        "nfs_server_disks": ["/dev/disk/by-id/nvme-a-part2"],
    },
    "keys of slurm.conf": {
        "slurm_config": {
            "SlurmdTimeout": 60,
            "MaxArraySize": "20001",
            "KillOnBadExit": None,
            "SlurmctldParameters": ["enable_configless", "idle_on_node_suspend"],
            "PreemptMode": "OFF",
            "TrackWCKey": True,
            "InactiveLimit": "UNLIMITED",
            "SuspendExcStates": "DOWN",
        },
        "slurm_cgroup_config": {"ConstrainDevices": True, "AllowedRAMSpace": 95.5},
        "slurm_nodes": {"node1": {"Feature": ["arm64", "rk3588"], "Weight": 10}},
        "slurm_partitions": {
            "main": {"Nodes": "node[1-2],node4", "Default": True},
            "small": {"Nodes": ["node1", "node2"], "MaxTime": "1:00:00"},
            "all": {"Nodes": "ALL", "Default": False},
            "DEFAULT": {"State": "UP"},
        },
    },
    "profiles that are read": {"slurm_config": {"GetEnvTimeout": 5, "SchedulerParameters": "no_env_cache"}},
    "jobs that contain their processes": {"login_only_with_jobs": True, "slurm_config": {"PrologFlags": "Alloc,X11"}},
    "no accounts and no limits": {
        "accounting_enabled": False,
        "shares_template": "home",
        "shares_low": "none",
        "shares_users": {},
        "shares_half_life": None,
        "sandbox_accounts": [],
    },
    "accounts of a slurmdbd of the site's own": {
        "accounting_enabled": False,
        "slurm_config": {"AccountingStorageHost": "db.example.org"},
        "sandbox_accounts": ["cs"],
        "sandbox_enabled": True,
    },
    "packages": {"packages_extra": ["g++", "libpfm4", "python3.11-venv"]},
    "the broker and Julia": {
        "accounts_users": [user("alice", 2001)],
        "celery_broker_users": ["alice"],
        "julia_archives": [JULIA, {**JULIA, "version": "1.12.0-rc1"}, {**JULIA, "architecture": "x86_64"}],
    },
    "a machine behind a BMC": {
        "power_method": "redfish",
        "power_address": "[fd00::9]:443",
        "power_user": "u",
        "power_password": "p",
    },
    "a machine with commands": {"power_method": "command", "power_commands": {"on": ["/on"], "off": ["/off"]}},
    "a key of the lab's release": {
        **LAB,
        "lab_release": "trixie",
        "slurm_config": {"HashPlugin": "hash/sha3"},
    },
}


@pytest.mark.parametrize("variables", GOOD.values(), ids=GOOD)
def test_what_is_right_is_accepted(said: Said, variables: dict[str, Any]) -> None:
    assert said(**split(variables)) == []


def case(variable: str, value: Any, expected: str, **more: Any) -> tuple[dict[str, Any], str]:
    """Variables, and what is said of them; those of the whole cluster are set for all hosts, the others for one."""
    variables = {**more, variable: value}
    # Only the lab's machines tell the version of Slurm in advance.
    hosts = "node[1-4]" if variable in CLUSTER_WIDE and "lab_number" not in more else _host(variables)
    return variables, f"{variable} ({hosts}): {expected}"


def _host(variables: dict[str, Any]) -> str:
    return "node3" if variables.keys() & set(ON_CONTROL) else "node1"


def split(variables: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The variables as arguments of `said`."""
    everywhere = {name: value for name, value in variables.items() if name in CLUSTER_WIDE}
    own = {key: variables[key] for key in variables if key not in everywhere}
    return {"everywhere": everywhere, _host(variables): own}


ADDRESS_CASES = {
    "no address": case(
        "os_address", "node1.lan", 'is "node1.lan", which is not an IPv4 address. Write it as in 192.168.1.11.'
    ),
    "a network": case(
        "os_address", "10.0.0.1/24", 'is "10.0.0.1/24", which is not an IPv4 address. Write it as in 192.168.1.11.'
    ),
    "a host key in the place of its fingerprint": case(
        "os_host_key",
        "ssh-ed25519 AAAA",
        'is "ssh-ed25519 AAAA", which is not a fingerprint. Write the second word that '
        "`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` prints there, or remove it.",
    ),
    "Debian's own": case(
        "os_address",
        "127.0.1.1",
        "is 127.0.1.1, which other nodes cannot reach. Write its address in the cluster's network.",
    ),
    "IPv6": case("os_address", "fd00::77", 'is "fd00::77", which is not an IPv4 address. Write it as in 192.168.1.11.'),
    "multicast": case(
        "os_address",
        "224.0.0.1",
        "is 224.0.0.1, which cannot be a node's address. Write its address in the cluster's network.",
    ),
    "unspecified": case(
        "os_address",
        "0.0.0.0",
        "is 0.0.0.0, which cannot be a node's address. Write its address in the cluster's network.",
    ),
    "broadcast": case(
        "os_address",
        "255.255.255.255",
        "is 255.255.255.255, which cannot be a node's address. Write its address in the cluster's network.",
    ),
    "link-local": case(
        "os_address",
        "169.254.1.1",
        "is 169.254.1.1, which cannot be a node's address. Write its address in the cluster's network.",
    ),
}

ACCOUNT_CASES = {
    "a name twice": case(
        "accounts_users", [user("alice", 2001), user("alice", 2002)], "has alice 2 times. Remove all entries but one."
    ),
    "a uid twice": case(
        "accounts_users",
        [user("alice", 2001), user("bob", 2001)],
        "gives the uid 2001 to alice and bob. Give each its own uid.",
    ),
    "a uid of the system": case(
        "accounts_users",
        [user("alice", 999)],
        "the uid 999 of alice is below 1000, which is reserved for the system. Choose one from 1000 to 59999.",
    ),
    "the uid of slurm": case(
        "accounts_users",
        [user("alice", 64030)],
        "the uid 64030 of alice is the user slurm's. Choose one from 1000 to 59999.",
    ),
    "the uid of nobody": case(
        "accounts_users",
        [user("alice", 65534)],
        "the uid 65534 of alice is the user nobody's. Choose one from 1000 to 59999.",
    ),
    "a reserved uid": case(
        "accounts_users",
        [user("alice", 61000)],
        "the uid 61000 of alice is reserved by Debian. Choose one from 1000 to 59999.",
    ),
    "a uid that means none": case(
        "accounts_users",
        [user("alice", 2**32 - 1)],
        "the uid 4294967295 of alice is too large. Choose one from 1000 to 59999.",
    ),
    "a day of expiry that is no date": case(
        "accounts_users",
        [user("alice", 2001, expires="28.02.2027")],
        'alice expires on "28.02.2027", which is not a date.'
        ' Write year, month and day, in quotes, such as "2027-02-28".',
    ),
    "a comment that is two fields": case(
        "accounts_users",
        [user("alice", 2001, comment="Alice: physics")],
        'the comment "Alice: physics" of alice contains a colon or a control character. Remove it (passwd(5)).',
    ),
    "a shell without its path": case(
        "accounts_users",
        [user("alice", 2001, shell="bash")],
        'the shell of alice is "bash". Write its path, as in /bin/bash.',
    ),
    "a name of the system": case(
        "accounts_users", [user("slurm", 2001)], "slurm belongs to the system. Choose another name."
    ),
    "an invalid name": case(
        "accounts_users",
        [user("Alice B", 2001)],
        '"Alice B" is not a valid name. Use at most 32 lower-case letters, digits, - and _, and begin with a letter.',
    ),
    "an unknown group": case(
        "accounts_users",
        [user("alice", 2001, group="labs")],
        "alice has the group labs, which is not in accounts_groups. Did you mean lab?",
        accounts_groups=[{"name": "lab", "gid": 3000}],
    ),
    "an unlikely group": case(
        "accounts_users",
        [user("alice", 2001, group="math")],
        "alice has the group math, which is not in accounts_groups. Add math with its gid to accounts_groups.",
    ),
    "a group in the place of a user's own": case(
        "accounts_users",
        [user("alice", 2001)],
        "alice needs a group alice with the gid 2001, but accounts_groups has lab with 2001. "
        "Set group of alice, or change accounts_groups.",
        accounts_groups=[{"name": "lab", "gid": 2001}],
    ),
    "a group twice": case(
        "accounts_groups",
        [{"name": "lab", "gid": 3000}, {"name": "lab", "gid": 3001}],
        "has lab 2 times. Remove all entries but one.",
    ),
    "a gid twice": case(
        "accounts_groups",
        [{"name": "lab", "gid": 3000}, {"name": "staff2", "gid": 3000}],
        "gives the gid 3000 to lab and staff2. Give each its own gid.",
    ),
    "a gid of the system": case(
        "accounts_groups",
        [{"name": "lab", "gid": 100}],
        "the gid 100 of lab is below 1000, which is reserved for the system. Choose one from 1000 to 59999.",
    ),
    "a group of the system": case(
        "accounts_groups", [{"name": "munge", "gid": 3000}], "munge belongs to the system. Choose another name."
    ),
    "an account of the inventory and by hand": case(
        "accounts_by_hand",
        ["alice", "ubuntu"],
        "has alice, who is in accounts_users. Remove one of them.",
        accounts_users=[user("alice", 2001)],
    ),
    "Ansible's account": (
        {"accounts_users": [user("alice", 2001), user("ansible", 2002)], "ansible_user": "ansible"},
        "accounts_users (node1): has ansible, the account with which Ansible logs in (ansible_user). "
        "Choose another name.",
    ),
    "an account that sudo would ignore": case(
        "bootstrap_user",
        "ann.b",
        "is ann.b, but sudo ignores files with a dot in their names, so it could not become root. "
        "Choose a name without a dot.",
        bootstrap_authorized_keys=[KEY],
    ),
    "half a key": case(
        "accounts_users",
        [user("alice", 2001, keys=[KEY, "alice@home"])],
        "key 2 of alice is not a complete public key. Write one line such as: ssh-ed25519 AAAA… comment.",
    ),
    "a truncated key": case(
        "accounts_users",
        [user("alice", 2001, keys=[KEY[:40]])],
        "key 1 of alice is not a complete public key. Write one line such as: ssh-ed25519 AAAA… comment.",
    ),
    "a private key": case(
        "accounts_users",
        [user("alice", 2001, keys=["-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk"])],
        "key 1 of alice is a private key. "
        "Write the public key, which is in the file that ends in .pub, and replace the private key.",
    ),
}

UNSTABLE = (
    "which can name a different disk after a reboot. "
    "Write its name below /dev/disk/by-id, which `ls -l /dev/disk/by-id` on the machine shows."
)
STORAGE_CASES = {
    "an unstable scratch disk": case("scratch_disks", ["/dev/sda"], f'has "/dev/sda", {UNSTABLE}'),
    "a size without a unit": case(
        "nfs_server_size", "200", 'is "200". Write auto, or a number with M, G or T, such as 200G.'
    ),
    "an unstable NFS disk": case("nfs_server_disks", ["/dev/nvme0n1p2"], f'has "/dev/nvme0n1p2", {UNSTABLE}'),
    "a disk twice": case(
        "scratch_disks",
        ["/dev/disk/by-id/a", "/dev/disk/by-id/a"],
        "names /dev/disk/by-id/a twice. Name each disk once.",
    ),
    "a disk for both": case(
        "scratch_disks",
        ["/dev/disk/by-id/a"],
        "names /dev/disk/by-id/a, and so does nfs_server_disks. Name each disk once.",
        nfs_server_disks=["/dev/disk/by-id/a"],
    ),
    "a disk and its partition": case(
        "scratch_disks",
        ["/dev/disk/by-id/a-part1"],
        "names /dev/disk/by-id/a-part1, and nfs_server_disks names /dev/disk/by-id/a, which is the same disk. "
        "Name each disk once.",
        nfs_server_disks=["/dev/disk/by-id/a"],
    ),
    "a relative path": case("scratch_path", "scratch", 'is "scratch", which is not absolute. Begin it with /.'),
    "a long path": case(
        "scratch_path", "/scratch/", 'is "/scratch/", which is not in its shortest form. Write /scratch.'
    ),
    "the root": case(
        "scratch_path", "/", "is /, which belongs to the system. Choose a directory of its own, such as /scratch."
    ),
    "a directory of the system": case(
        "scratch_path", "/var", "is /var, which belongs to the system. Choose a directory of its own, such as /scratch."
    ),
    "the homes of the machine": case(
        "nfs_client_path",
        "/home",
        "is /home, where the account of Ansible has its key, which the share would hide. "
        "Choose a directory of its own, such as /share.",
        accounts_home_root="/home/people",
    ),
    "a directory of all programs": case(
        "scratch_path",
        "/var/tmp",
        "is /var/tmp, which belongs to the system. Choose a directory of its own, such as /scratch.",
    ),
    "memory of all programs": case(
        "scratch_path",
        "/dev/shm",
        "is /dev/shm, which belongs to the system. Choose a directory of its own, such as /scratch.",
    ),
    "a path with a space": case(
        "scratch_path",
        "/my scratch",
        'is "/my scratch", which contains a space. Choose a name without one: fstab needs none.',
    ),
    "scratch on the share": case(
        "scratch_path",
        "/share/scratch",
        "is /share/scratch, which is below nfs_client_path, /share. Put neither below the other.",
    ),
    "scratch in the place of the share": case(
        "nfs_client_path",
        "/scratch",
        "is /scratch, as is scratch_path. Give each its own directory.",
        accounts_home_root="/scratch/home",
    ),
    "a name of a volume group": case("scratch_volume_group", "my-vg", 'is "my-vg". Use letters, digits and _.'),
    "one volume group for both": case(
        "scratch_volume_group",
        "share",
        "is share, as is nfs_server_volume_group. Rename one of them.",
        scratch_disks=["/dev/disk/by-id/a"],
        nfs_server_disks=["/dev/disk/by-id/b"],
    ),
    "homes beside the share": case(
        "accounts_home_root",
        "/home",
        "is /home, which is not below the share, /share. Write a directory such as /share/home.",
    ),
    "homes in the root of the share": case(
        "accounts_home_root",
        "/share/",
        "is /share/, which is not below the share, /share. Write a directory such as /share/home.",
    ),
}

FIREWALL_CASES = {
    "a name for ssh": case(
        "firewall_ssh_from",
        ["laptop.lan"],
        'has "laptop.lan", which is not an address or a network '
        "('laptop.lan' does not appear to be an IPv4 or IPv6 network). Write it as in 192.168.1.11 or 192.168.1.0/24.",
    ),
    "an address with a length": case(
        "firewall_ssh_from",
        ["192.168.1.7/24"],
        'has "192.168.1.7/24", which is not an address or a network (192.168.1.7/24 has host bits set). '
        "Write it as in 192.168.1.11 or 192.168.1.0/24.",
    ),
    "no TCP port": case("os_open_ports", [70000], "has 70000, which is not a port. Write a number from 1 to 65535."),
    "no UDP port": case("firewall_open_udp_ports", [0], "has 0, which is not a port. Write a number from 1 to 65535."),
    "all interfaces": case(
        "firewall_open_interfaces",
        ["*"],
        'has "*", which is not the name of an interface. '
        "Write one as in docker0, or the beginning of several, as in virbr*.",
    ),
    "a short deadline": case(
        "firewall_deadline",
        5,
        "is 5, too short for a new connection to a slow machine. Write at least 30 (seconds).",
    ),
    "a login cannot succeed so soon": case(
        "login_deadline", 5, "is 5, too short for a login to a slow machine. Write at least 30 (seconds)."
    ),
    "a user's memory has no unit": case(
        "login_user_memory",
        "4096",
        'is "4096", which is not a size. Write a percentage of the machine\'s memory, as in 25%, or a size, as in 4G.',
    ),
    "a user's memory is too small for a login": case(
        "login_user_memory",
        "4M",
        "is 4M, with which no user could log in, nor Ansible. Write at least 5% or 256M.",
    ),
    "a user's share of the memory is too small for a login": case(
        "login_user_memory",
        "4%",
        "is 4%, with which no user could log in, nor Ansible. Write at least 5% or 256M.",
    ),
    "fewer CPUs than none": case("login_user_cpus", -1, "is -1. Write a number of CPUs; 0 does not limit them."),
    "jobs without a container": case(
        "slurm_config",
        {"PrologFlags": "Alloc"},
        'PrologFlags is "Alloc", but login_only_with_jobs is true. Add Contain to it.',
        login_only_with_jobs=True,
    ),
    "processes outlive their jobs": case(
        "slurm_config",
        {"ProctrackType": "proctrack/linuxproc"},
        'ProctrackType is "proctrack/linuxproc", but login_only_with_jobs is true. '
        "Remove it: only proctrack/cgroup ends all processes of a job.",
        login_only_with_jobs=True,
    ),
    "profiles outside jobs": case(
        "slurm_config",
        {"GetEnvTimeout": None},
        "GetEnvTimeout is null, but login_only_with_jobs is true. "
        "Remove it: slurmd would run users' profiles outside their jobs.",
        login_only_with_jobs=True,
    ),
}

BMC = {"power_method": "redfish", "power_user": "u", "power_password": "p", "power_address": "192.168.2.11"}
SWITCH = {"on": ["/bin/true"], "off": ["/bin/true"]}

POWER_CASES = {
    "no address": case(
        "power_address",
        "",
        "is empty, but power_method is ipmi. Write the address of its BMC or plug.",
        **{**BMC, "power_method": "ipmi", "power_address": ""},
    ),
    "a URL": case(
        "power_address",
        "https://bmc1",
        'is "https://bmc1", which is not an address. Write it as in 192.168.2.11, [fd00::9] or 192.168.2.11:8443.',
        **{**BMC, "power_address": "https://bmc1"},
    ),
    "a name that cannot be one": case(
        "power_address",
        "10.0.0..1",
        'is "10.0.0..1", which is not an address. Write it as in 192.168.2.11, [fd00::9] or 192.168.2.11:8443.',
        **{**BMC, "power_address": "10.0.0..1"},
    ),
    "a port that no BMC has": case(
        "power_address",
        "10.0.0.1:99999",
        'is "10.0.0.1:99999", which is not an address. Write it as in 192.168.2.11, [fd00::9] or 192.168.2.11:8443.',
        **{**BMC, "power_address": "10.0.0.1:99999"},
    ),
    "a broadcast to a name": case(
        "power_broadcast",
        "lan",
        'is "lan", which is not an IPv4 address. Write it as in 192.168.1.255 or 192.168.1.255:7.',
    ),
    "a broadcast to a port that does not exist": case(
        "power_broadcast",
        "192.168.1.255:0",
        'is "192.168.1.255:0", which is not an IPv4 address. Write it as in 192.168.1.255 or 192.168.1.255:7.',
    ),
    "a cipher suite that BMCs do not share": case("power_cipher", 5, "is 5. Write one of: 0, 3, 17."),
    "no user": case(
        "power_user",
        "",
        "is empty, but power_method is redfish. Write it; keep a password in a vault.",
        **{**BMC, "power_user": ""},
    ),
    "a fifth slot": case(
        "power_slot",
        5,
        "is 5. Write a number from 1 (on a Turing Pi, to 4).",
        **{**BMC, "power_method": "turing_pi"},
    ),
    "no card": case(
        "power_mac",
        "",
        'is "", which is not a MAC address. Write it in quotes, as in "52:54:00:12:34:56"; without them, YAML reads '
        "some addresses as numbers.",
        power_method="wake_on_lan",
    ),
    "a plug of no kind": case(
        "power_plug",
        "",
        "is empty, but power_method is plug. Write tasmota, shelly_1 or shelly_2.",
        power_method="plug",
        power_address="192.168.2.12",
    ),
    "no command": case(
        "power_commands",
        {"on": ["/bin/true"]},
        'has no off. Add one, as in "off": [/usr/local/bin/switch, "off"].',
        power_method="command",
    ),
    "commands whose names YAML reads otherwise": case(
        "power_commands",
        {True: ["/bin/true"], False: ["/bin/true"]},
        "has true or false as a name, because YAML reads on and off so. "
        'Write "on" and "off" in quotes, as words of the commands too.',
        power_method="command",
    ),
    "a command for a shell": case(
        "power_commands",
        {**SWITCH, "status": "test -e x"},
        'has "test -e x" as status. Write a list of words, the program first.',
        power_method="command",
    ),
    "a short hash": case(
        "power_certificate",
        "abcd",
        'is "abcd", which is not a SHA-256. '
        "Write what `openssl x509 -noout -fingerprint -sha256` prints after the equals sign.",
        **BMC,
    ),
}

CARD = "52:54:00:12:34:56"

SLEEP_CASES = {
    "a time without a unit": case(
        "power_idle",
        "20",
        'is "20", which is not a time. Write it as in 20min or 2h.',
        power_method="turing_pi",
        power_address="bmc",
        power_user="u",
        power_password="p",
    ),
    "a time that is a number": case(
        "power_idle",
        20,
        'is "20", which is not a time. Write it as in 20min or 2h.',
        power_method="wake_on_lan",
        power_mac=CARD,
    ),
    "sleep without a method": case(
        "power_idle", "20min", "is set, but the machine has no power_method. Set power_method, or remove power_idle."
    ),
    "watts below zero": case("power_watts", -1, "is -1. Write 0 or more."),
    "keep below zero": case("power_keep", -1, "is -1. Write 0 or more."),
    "price below zero": case("power_price", -0.3, "is -0.3. Write 0 or more."),
}

ROUTER_CASES = {
    "no inside network": case(
        "router_network",
        "10.77.0.1/24",
        'is "10.77.0.1/24", which is not an IPv4 network. '
        "Write the network behind router_interface, as in 10.77.0.0/24.",
        router_interface="enp2s0",
    ),
    "a router elsewhere": case(
        "router_network",
        "10.77.0.0/24",
        "is 10.77.0.0/24, which does not contain os_address (192.168.1.3). "
        "Give node3 its address on router_interface as os_address.",
        router_interface="enp2s0",
    ),
    "a router for one address": case(
        "router_network",
        "10.77.0.1",
        'is "10.77.0.1", which is not an IPv4 network. Write the network behind router_interface, as in 10.77.0.0/24.',
        router_interface="enp2s0",
    ),
    "no interface": case(
        "router_interface",
        "enp2s0; reboot",
        'is "enp2s0; reboot", which is not the name of an interface. '
        "Write one that `ip link` shows on control, as in enp2s0.",
        router_network="192.168.1.0/24",
    ),
    "no domain": case(
        "router_domain",
        "my home",
        'is "my home", which is not the name of a domain. '
        "Write letters, digits, - and dots, as in cluster or home.arpa.",
    ),
    "a pool elsewhere": case(
        "router_pool",
        ["10.78.0.1", "10.78.0.9"],
        'is ["10.78.0.1", "10.78.0.9"], which is not the first and the last address of a part of 10.77.0.0/24. '
        "Write two addresses, as in [10.77.0.1, 10.77.0.254].",
        router_network="10.77.0.0/24",
    ),
    "an image without its own /etc": case(
        "sandbox_paths",
        ["/share/data", "/etc/"],
        'has "/etc/", which an image has itself or which is not a full path. '
        "Name a directory of data, as in /share/data.",
    ),
    "an image without processes": case("sandbox_processes", 1, "is 1, too few for a program. Write at least 64."),
    "an image that no image can be": case(
        "sandbox_network_images",
        ["../python"],
        'has "../python", which cannot be the name of an image. Write a name that `stead image list` shows.',
    ),
    "a partition that does not exist demands images": case(
        "sandbox_partitions",
        ["curse"],
        'has "curse", which is not a partition. Write one of course, quiet.',
        sandbox_enabled=True,
        slurm_partitions={"course": {"Nodes": "ALL"}},
    ),
    "images that no job can have are demanded": case(
        "sandbox_accounts",
        ["students"],
        "is set, but no job can run in an image. Set sandbox_enabled too, or remove it.",
    ),
    "two job_submit plugins": case(
        "sandbox_partitions",
        ["main"],
        "needs its own job_submit.lua, but slurm_config has JobSubmitPlugins=partition. Remove one of both.",
        sandbox_enabled=True,
        slurm_config={"JobSubmitPlugins": "partition"},
    ),
    "a VPN without a network": case(
        "vpn_network",
        "10.79.0.1/24",
        'is "10.79.0.1/24", which is not an IPv4 network with addresses for peers. Write it as in 10.79.0.0/24.',
        vpn_enabled=True,
    ),
    "a VPN on the inside": case(
        "vpn_network",
        "10.77.0.128/25",
        "is 10.77.0.128/25, which overlaps router_network (10.77.0.0/24). Give the VPN a network of its own.",
        vpn_enabled=True,
        router_network="10.77.0.0/24",
    ),
    "a VPN in no place": case(
        "vpn_endpoint",
        "home example",
        'is "home example", which is not an address or name. Write it as in home.example.org or 198.51.100.7, and '
        ":PORT after it if the house forwards another port.",
    ),
    "the hub's own port": case(
        "jupyterhub_port", 481, "is 481, which is the hub's own port. Choose another one.", jupyterhub_enabled=True
    ),
    "the port of ssh": case(
        "jupyterhub_port", "22", "is 22, which is sshd's port. Choose another one.", jupyterhub_enabled=True
    ),
    "a port on which users can listen": case(
        "jupyterhub_port",
        8443,
        "is 8443, where any user of control could listen for passwords while the proxy is down. "
        "Write a port below 1024, such as 443.",
        jupyterhub_enabled=True,
    ),
    "a hub at a place that depends": case(
        "jupyterhub_directory", "opt/hub", 'is "opt/hub", which is not absolute. Begin it with /.'
    ),
    "a certificate without its key": case(
        "jupyterhub_key",
        "",
        "is empty, but jupyterhub_certificate is set. Set both, or delete jupyterhub_certificate.",
        jupyterhub_certificate="/etc/ssl/hub.crt",
    ),
    "a certificate that is elsewhere": case(
        "jupyterhub_certificate",
        "hub.crt",
        'is "hub.crt", which is not an absolute path. Write the path of the file on control.',
        jupyterhub_key="/etc/ssl/hub.key",
    ),
    "an address of the hub with a scheme": case(
        "jupyterhub_names",
        ["https://hub.lan"],
        'has "https://hub.lan", which is not a name of a host. Write no scheme and no port.',
    ),
    "notebooks that end before they begin": case(
        "jupyterhub_idle_minutes", -1, "is -1. Write minutes, or 0 to end no notebook."
    ),
    "notebooks that never wait": case("jupyterhub_start_minutes", 0, "is 0. Write at least 1."),
    "notebooks beside the share": (
        {"jupyterhub_kernel_directory": "/opt/notebooks", "jupyterhub_enabled": True},
        "jupyterhub_kernel_directory (node3): is /opt/notebooks, which is not on the share. "
        "Choose a directory below /share.",
    ),
    "no profile": case("jupyterhub_profiles", {}, "is empty. Declare one profile or more, or delete the variable."),
    "a profile with a strange name": case(
        "jupyterhub_profiles",
        {"Very large": {}},
        'has "Very large", which cannot be the name of a profile. '
        "Begin with a small letter; small letters, digits, _ and - may follow.",
    ),
    "a profile that is a number": case(
        "jupyterhub_profiles", {"small": 1}, "has small, which is not a mapping. Write it as in {cpus: 1}."
    ),
    "a profile with an unknown key": case(
        "jupyterhub_profiles",
        {"small": {"cpu": 1}},
        'has small with the unknown key "cpu". Did you mean cpus?',
    ),
    "a profile without a CPU": case(
        "jupyterhub_profiles", {"small": {"cpus": 0}}, "has small with cpus 0. Write a number, at least 1."
    ),
    "a profile with a word as a size": case(
        "jupyterhub_profiles", {"small": {"memory": "lots"}}, 'has small with memory "lots". Write it as in 4G.'
    ),
    "a profile with a time that YAML reads as a number": case(
        "jupyterhub_profiles",
        {"small": {"time": 28800}},
        'has small with time 28800, because YAML reads 8:00:00 as a number. Write it in quotes, as in "8:00:00".',
    ),
    "a profile in a partition that does not exist": case(
        "jupyterhub_profiles",
        {"small": {"partition": "mian"}},
        'has small with the partition "mian", which does not exist. Did you mean main?',
    ),
    "a profile with a command": case(
        "jupyterhub_profiles",
        {"small": {"options": ["--qos=low; rm"]}},
        'has small with the option "--qos=low; rm". '
        "Write a long option of sbatch, as in --qos=low, without spaces and quotes.",
    ),
    "a profile that sets what the hub sets": case(
        "jupyterhub_profiles",
        {"small": {"options": ["--export=ALL"]}},
        'has small with the option "--export=ALL". Remove it, because the hub sets it.',
    ),
    "notebooks where an image is demanded": case(
        "jupyterhub_profiles",
        {"alone": {"partition": "quiet"}},
        "has alone with the partition quiet, which is in sandbox_partitions. Choose a partition that demands no image.",
        jupyterhub_enabled=True,
        sandbox_enabled=True,
        sandbox_partitions=["quiet"],
        slurm_partitions={"quiet": {"Nodes": "node1"}},
    ),
    "notebooks in the default partition, where an image is demanded": case(
        "jupyterhub_profiles",
        {"small": {"cpus": 1}},
        "has small with the partition main, which is in sandbox_partitions. Choose a partition that demands no image.",
        jupyterhub_enabled=True,
        sandbox_enabled=True,
        sandbox_partitions=["main"],
    ),
    "notebooks on quiet nodes that do not exist": case(
        "jupyterhub_profiles",
        {"alone": {"partition": "quiet"}},
        "has alone with the partition quiet, but no worker is quiet. "
        "Set slurm_quiet for a worker, or name another partition.",
        jupyterhub_enabled=True,
    ),
    "notebooks in a partition that has keys and no nodes": case(
        "jupyterhub_profiles",
        {"alone": {"partition": "quiet"}},
        "has alone with the partition quiet, but no worker is quiet. "
        "Set slurm_quiet for a worker, or name another partition.",
        jupyterhub_enabled=True,
        slurm_partitions={"quiet": {"MaxTime": 60}},
    ),
    "no port of a VPN": case("vpn_port", 0, "has 0, which is not a port. Write a number from 1 to 65535."),
    "a disk for the system without a stable name": case(
        "install_disk",
        "/dev/sda",
        'is "/dev/sda", which can be another disk after the next boot. '
        "Write the serial of the disk, or its name in /dev/disk/by-id.",
    ),
    "BMCs without a network": case(
        "router_bmc_network", "ilo", 'is "ilo", which is not an IPv4 network. Write it as in 10.78.0.0/24.'
    ),
    "BMCs on the inside": case(
        "router_bmc_network",
        "10.77.0.128/25",
        "is 10.77.0.128/25, which overlaps router_network (10.77.0.0/24). Give the BMCs a network of their own.",
        router_network="10.77.0.0/24",
    ),
    "no MAC": case(
        "router_mac",
        "52:54:00",
        'is "52:54:00", which is not a MAC. '
        'Write it as in "52:54:00:12:34:56", with the quotes: YAML reads some as numbers.',
    ),
}

SLURM_CASES = {
    "jobs that drain their nodes": case(
        "slurm_config",
        {"SchedulerParameters": ["defer", "requeue_setup_env_fail"]},
        "SchedulerParameters has requeue_setup_env_fail, but GetEnvTimeout is 0. "
        "Remove it: each job with --export=NONE would drain its node.",
    ),
    "a cluster's name": case(
        "slurm_cluster_name",
        "My Cluster",
        'is "My Cluster". Use at most 40 lower-case letters, digits, - and _, and begin with a letter or digit.',
    ),
    "an unknown key": case(
        "slurm_config",
        {"SlurmdTimeuot": 60},
        "SlurmdTimeuot is not a key that Slurm knows. Did you mean SlurmdTimeout?",
    ),
    "a key in another case": case(
        "slurm_config",
        {"slurmdtimeout": 60},
        "slurmdtimeout is not a key that Slurm knows. Did you mean SlurmdTimeout?",
    ),
    "a key like no other": case(
        "slurm_config",
        {"Qqqqq": 60},
        "Qqqqq is not a key that Slurm knows. Its keys are in the manual page slurm.conf(5).",
    ),
    "a removed key": case(
        "slurm_config",
        {"FastSchedule": 2},
        "FastSchedule was removed from Slurm. Instead of FastSchedule: 2, write SlurmdParameters: config_overrides.",
    ),
    "the controller": case(
        "slurm_config",
        {"SlurmctldHost": "node9"},
        "SlurmctldHost is set by Slurmstead. The inventory's control group defines it: remove it.",
    ),
    "nodes in the wrong place": case(
        "slurm_config", {"NodeName": "node[1-4]"}, "NodeName is set by Slurmstead. Set slurm_nodes."
    ),
    "partitions in the wrong place": case(
        "slurm_config", {"PartitionName": "main"}, "PartitionName is set by Slurmstead. Set slurm_partitions."
    ),
    "a name in the wrong place": case(
        "slurm_config", {"ClusterName": "x"}, "ClusterName is set by Slurmstead. Set slurm_cluster_name."
    ),
    "a key of a newer release": case(
        "slurm_config",
        {"HashPlugin": "hash/sha3"},
        "HashPlugin is not known to Slurm 22.05, only to 24.11. Remove it, or choose another release.",
        **LAB,
        lab_release="bookworm",
    ),
    "a key of an older release": case(
        "slurm_config",
        {"SlurmctldPlugstack": "x"},
        "SlurmctldPlugstack is not known to Slurm 24.11, only to 21.08, 22.05. Remove it, or choose another release.",
        **LAB,
        lab_release="trixie",
    ),
    "text in the place of a number": case(
        "slurm_config",
        {"SlurmdTimeout": "5 minutes"},
        'SlurmdTimeout is "5 minutes". Write a whole number, or UNLIMITED.',
    ),
    "text in the place of true": case(
        "slurm_config", {"TrackWCKey": "maybe"}, 'TrackWCKey is "maybe". Write true or false.'
    ),
    "YAML's idea of OFF": case(
        "slurm_config",
        {"PreemptMode": False},
        "PreemptMode is a YAML boolean, but Slurm expects a word. Put the word into quotes, as in 'NO'.",
    ),
    "a mapping for a value": case(
        "slurm_config", {"Prolog": {"options": "x"}}, "Prolog is a mapping. Write a single value or a list."
    ),
    "a list of mappings": case("slurm_config", {"Prolog": [{"a": 1}]}, 'Prolog is [{"a": 1}]. Write one string.'),
    "a list of numbers": case("slurm_config", {"KillWait": [1, 2]}, "KillWait is [1, 2]. Write one integer."),
    "a comment in a value": case(
        "slurm_config",
        {"Prolog": "/x # mine"},
        'Prolog is "/x # mine": a line break or # ends a value. Write it without.',
    ),
    "workers without configuration": case(
        "slurm_config",
        {"SlurmctldParameters": "cloud_dns"},
        'SlurmctldParameters is "cloud_dns". Add enable_configless to it.',
    ),
    "an unknown key of cgroup.conf": case(
        "slurm_cgroup_config",
        {"ConstrainCore": True},
        "ConstrainCore is not a key that Slurm knows. Did you mean ConstrainCores?",
    ),
    "a number of cgroup.conf": case(
        "slurm_cgroup_config", {"MaxRAMPercent": "all"}, 'MaxRAMPercent is "all". Write a number.'
    ),
    "an unknown node": case(
        "slurm_nodes", {"noed1": {"Weight": 1}}, "noed1 is not a worker in the inventory. Did you mean node1?"
    ),
    "the controller as a node": case(
        "slurm_nodes", {"node3": {"Weight": 1}}, "node3 is not a worker in the inventory. Did you mean node4?"
    ),
    "nothing like a node": case(
        "slurm_nodes",
        {"gpu": {"Weight": 1}},
        "gpu is not a worker in the inventory. Name a worker of the inventory, or add this one to it.",
    ),
    "an unknown key of a node": case(
        "slurm_nodes",
        {"node1": {"RealMem": 1}},
        "node1: RealMem is not a key that Slurm knows. Did you mean RealMemory?",
    ),
    "an address in the wrong place": case(
        "slurm_nodes",
        {"node1": {"NodeAddr": "10.0.0.1"}},
        "node1: NodeAddr is set by Slurmstead. Set os_address of that host.",
    ),
    "a node without keys": case(
        "slurm_nodes",
        {"node1": "Weight=1"},
        'node1 is "Weight=1", which is not a mapping. Write its keys and values below it.',
    ),
    "an unknown key of a partition": case(
        "slurm_partitions", {"main": {"Node": "ALL"}}, "main: Node is not a key that Slurm knows. Did you mean Nodes?"
    ),
    "an unknown node in a partition": case(
        "slurm_partitions",
        {"main": {"Nodes": "node[1-3]"}},
        "main: Nodes: node3 is not a worker in the inventory. Did you mean node4?",
    ),
    "a broken range in a partition": case(
        "slurm_partitions",
        {"main": {"Nodes": "node[1-2"}},
        "main: Nodes: the brackets of 'node[1-2' do not match. Write names and ranges, as in node[1-4,7].",
    ),
    "a partition's name": case(
        "slurm_partitions",
        {"my part": {"Nodes": "ALL"}},
        '"my part" is not a partition name. Use letters, digits, - and _.',
    ),
    "a number as a partition's name": case(
        "slurm_partitions",
        {"main": {"Nodes": "ALL"}, 2024: {"Nodes": "ALL"}},
        '2024 is not text. Write the name of the partition as "2024".',
    ),
    "a partition called default": case(
        "slurm_partitions",
        {"default": {"Nodes": "ALL"}, "gpu": {"Nodes": "ALL"}},
        "default is not a partition: Slurm reads it as DEFAULT. Use another name.",
    ),
    "two defaults": case(
        "slurm_partitions",
        {"a": {"Default": True}, "b": {"Default": "YES"}},
        "a and b are all set as the default. Keep Default: true in one of them.",
    ),
}

QUIET_CASES = {
    "a timer without its kind": case(
        "quiet_keep", ["certbot"], 'has "certbot", which is not the name of a unit. End it with .timer or .service.'
    ),
    "a service that jobs need": case(
        "quiet_services", ["slurmd.service"], "has slurmd.service, but jobs or administrators need it. Remove it."
    ),
    "a service with which administrators log in": case(
        "quiet_services", ["systemd-logind"], "has systemd-logind, but jobs or administrators need it. Remove it."
    ),
}

NO_ACCOUNTS = "is set, but without accounting_enabled Slurm knows no accounts and limits. "
NO_ACCOUNTS += "Remove it, or set accounting_enabled: true."

SHARE_CASES = {
    "limits of a course without accounts": case("shares_template", "course", NO_ACCOUNTS, accounting_enabled=False),
    "jobs that give way without accounts": case("shares_low", "wait", NO_ACCOUNTS, accounting_enabled=False),
    "a limit without accounts": case("shares_users", {"ann": {"MaxJobs": 2}}, NO_ACCOUNTS, accounting_enabled=False),
    "an account that demands images without accounts": case(
        "sandbox_accounts", ["cs"], NO_ACCOUNTS, accounting_enabled=False, sandbox_enabled=True
    ),
    "limits for the slurmdbd of a site": case(
        "shares_template",
        "lab",
        "is set, but slurm_config has AccountingStorageHost, and Slurmstead changes only a slurmdbd of its own. "
        "Remove it, and use sacctmgr, or remove that key.",
        slurm_config={"AccountingStorageHost": "db.example.org"},
        sandbox_accounts=["cs"],
        sandbox_enabled=True,
    ),
    "a port of slurmdbd": case(
        "slurm_config",
        {"AccountingStoragePort": 7031},
        "has AccountingStoragePort: 7031, but the slurmdbd of Slurmstead listens on 6819. "
        "Remove it, or name a slurmdbd of yours with AccountingStorageHost.",
    ),
    "an unknown key of an account": case(
        "shares_accounts",
        {"bio": {"Fairshares": 2}},
        'has the key "Fairshares" of bio, which Slurmstead does not know. Did you mean Fairshare?',
    ),
    "an account in capitals": case(
        "shares_accounts", {"Bio": {}}, 'has the name "Bio". Use lower case, digits, and . _ -.'
    ),
    "accounts in a circle": case(
        "shares_accounts", {"a": {"Parent": "a"}}, "has a circle: a below a. Correct a Parent."
    ),
    "a time without quotes": case(
        "shares_users",
        {"ann": {"MaxWall": 14400}},
        "has MaxWall: 14400 of ann, which is not a text: YAML reads 4:00:00 as a number; write it in quotes. "
        "See sacctmgr(1).",
    ),
    "a QOS without keys": case(
        "shares_qos", {"course": 5}, "has 5 for course. Write keys and values, such as {Fairshare: 2}."
    ),
    "a limit that is no number": case(
        "shares_qos",
        {"course": {"MaxJobsPerUser": "few"}},
        'has MaxJobsPerUser: "few" of course, which is neither a whole number nor null. See sacctmgr(1).',
    ),
    "a limit of a resource that does not exist": case(
        "shares_qos",
        {"course": {"MaxTRESPerUser": "cup=8"}},
        'has MaxTRESPerUser: "cup=8" of course, which is not a list such as cpu=8,mem=4G. See sacctmgr(1).',
    ),
    "a time with seconds": case(
        "shares_qos",
        {"course": {"MaxWall": "1:30"}},
        'has MaxWall: "1:30" of course, which has seconds, but Slurm counts whole minutes. See sacctmgr(1).',
    ),
    "a user's account in capitals": case(
        "shares_users",
        {"ann": {"Account": "Bio"}},
        'has Account: "Bio" of ann, which is not a name in lower case, with digits, and . _ -. See sacctmgr(1).',
    ),
    "a user to remove": case(
        "shares_remove_users",
        ["alice"],
        "has alice, who is in accounts_users. Remove alice from one of the two.",
        accounts_users=[user("alice", 2001)],
    ),
    "a half life": case(
        "shares_half_life",
        "soon",
        "is \"soon\", which is not a time such as '4:00:00', '1-00:00:00' or '240' (minutes). "
        "Write a time such as '7-0'.",
    ),
}

ENGINE_CASES = {
    "a user of the broker twice": case(
        "celery_broker_users",
        ["alice", "alice"],
        "has alice 2 times. Name each user once.",
        accounts_users=[user("alice", 2001)],
    ),
    "a broker without memory": case(
        "celery_broker_memory", 64, "is 64 MiB, but RabbitMQ needs 130 for itself. Give it at least 192."
    ),
    "results without memory": case(
        "celery_broker_results_memory", 8, "is 8 MiB, and Redis would refuse the first results. Give it at least 16."
    ),
    "tasks without time": case("celery_broker_longest_task", 0, "is 0. Write at least 1 (an hour)."),
    "half a version of Julia": case(
        "julia_archives", [{**JULIA, "version": "1.10"}], 'has the version "1.10". Write all of it, as in 1.10.5.'
    ),
    "half a checksum of Julia": case(
        "julia_archives",
        [{**JULIA, "sha256": "0123"}],
        'has the sha256 "0123" for 1.10.5, which is not 64 hexadecimal digits. '
        "Copy it from the list of checksums that julialang.org has for each version.",
    ),
    "a version of Julia twice": case(
        "julia_archives", [JULIA, JULIA], "has 1.10.5 for aarch64 2 times. Keep one of them."
    ),
    "Julia beside the share": case(
        "julia_directory",
        "/opt/julia",
        "is /opt/julia, which is not below the share, /share. Write a directory such as /share/julia.",
        julia_archives=[JULIA],
    ),
}

PACKAGE_CASES = {
    "a version": case(
        "packages_extra",
        ["make", "g++=4:12.2.0-3"],
        'has "g++=4:12.2.0-3", which is not a package\'s name. Write names such as g++ or make.',
    ),
    "a removal": case(
        "packages_extra", ["nano-"], 'has "nano-", which is not a package\'s name. Write names such as g++ or make.'
    ),
}

LAB_CASES = {
    "too little memory": case("lab_memory", 256, "is 256 MiB. Write at least 512.", **LAB),
    "no CPU": case("lab_cpus", 0, "is 0. Write at least 1.", **LAB),
    "a name": case(
        "lab_name",
        "My Lab/1",
        'is "My Lab/1". Use at most 32 lower-case letters, digits and inner hyphens.',
        lab_number=1,
        lab_directory="/lab",
    ),
    "a serial twice": case(
        "lab_disks",
        [{"serial": "a", "size": 1}, {"serial": "a", "size": 1}],
        "has the serial a 2 times. Give each disk its own serial.",
        **LAB,
    ),
    "a long serial": case(
        "lab_disks",
        [{"serial": "a" * 21, "size": 1}],
        f'has the serial "{"a" * 21}". Use at most 20 letters, digits, - and _.',
        **LAB,
    ),
    "no size": case("lab_disks", [{"serial": "a", "size": 0}], "a has the size 0 GiB. Write at least 1.", **LAB),
}

CASES = {
    **ADDRESS_CASES,
    **ACCOUNT_CASES,
    **STORAGE_CASES,
    **FIREWALL_CASES,
    **POWER_CASES,
    **SLEEP_CASES,
    **ROUTER_CASES,
    **SLURM_CASES,
    **ENGINE_CASES,
    **QUIET_CASES,
    **SHARE_CASES,
    **PACKAGE_CASES,
    **LAB_CASES,
}


@pytest.mark.parametrize(("variables", "expected"), CASES.values(), ids=CASES)
def test_a_wrong_value_is_named(said: Said, variables: dict[str, Any], expected: str) -> None:
    assert said(**split(variables)) == [expected]


def test_an_address_used_twice_is_named_with_its_hosts(said: Said) -> None:
    found = said(node2={"os_address": "192.168.1.9"}, node4={"os_address": "192.168.1.9"})

    assert found == ["os_address (node[2,4]): is 192.168.1.9 on 2 hosts. Give each host its own address."]


def test_a_serial_and_a_host_key_are_those_of_one_machine(said: Said) -> None:
    key = f"SHA256:{'k' * 43}"
    found = said(node1={"os_serial": "S1", "os_host_key": key}, node2={"os_serial": "S1", "os_host_key": key})

    assert found == [
        f"os_host_key (node[1-2]): is {key} on 2 hosts. Give each host its own, or remove one host.",
        "os_serial (node[1-2]): is S1 on 2 hosts. Give each host its own, or remove one host.",
    ]


@pytest.mark.parametrize("variable", ["power_mac", "router_mac"])
def test_a_card_that_two_machines_have_is_named(said: Said, variable: str) -> None:
    found = said(node1={variable: CARD}, node2={variable: CARD.replace(":", "-")})

    assert found == [f"{variable} (node[1-2]): is {CARD} on 2 hosts. Give each host that of its own network card."]


def test_a_disk_of_two_machines_is_named(said: Said) -> None:
    shared, own = "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_disk1"

    wrong = f"has {shared} on 2 hosts, but that is one disk, which both would mount and so destroy its files. "
    advice = "Declare it for one host."

    assert said(node1={"scratch_disks": [shared, own]}, node2={"scratch_disks": [own, shared]}) == [
        f"scratch_disks (node[1-2]): {wrong}{advice}"
    ]
    assert said(node1={"scratch_disks": [shared]}, node3={"nfs_server_disks": [shared]}) == [
        f"scratch_disks (node[1,3]): {wrong}{advice}"
    ]
    assert said(everywhere={"nfs_server_disks": [shared]}) == []


def test_an_address_that_the_pool_would_give_to_others_is_named(said: Said) -> None:
    router = {"router_interface": "enp2s0", "router_network": "192.168.1.0/24"}

    assert said(node3={**router, "router_pool": ["192.168.1.100", "192.168.1.200"]}) == []
    assert said(node3={**router, "router_pool": ["192.168.1.4", "192.168.1.200"]}) == [
        "router_pool (node3): is 192.168.1.4 to 192.168.1.200, which contains the os_address of node4. "
        "Choose addresses that no machine of the inventory has."
    ]


def test_a_card_whose_address_the_router_cannot_give_is_named(said: Said) -> None:
    router = {"router_interface": "enp2s0", "router_network": "192.168.1.0/24"}
    card = {"router_mac": CARD, "os_address": "10.0.0.7"}

    assert said(node1=card, node3={**router, "router_interface": ""}) == []
    assert said(node1=card, node2={"router_mac": CARD[::-1]}, node3=router) == [
        "router_mac (node1): is set, but os_address (10.0.0.7) is not in router_network (192.168.1.0/24) of node3. "
        "Correct os_address, or remove router_mac."
    ]


def test_a_setting_of_control_that_another_machine_has_is_named(said: Said) -> None:
    assert said(everywhere={"vpn_enabled": True, "power_keep": 1}) == []
    assert said(node1={"vpn_enabled": True, "power_keep": 1}, node3={"package_cache_enabled": True}) == [
        "power_keep (node1): is set, but only the value of control counts. Set it for node3 instead.",
        "vpn_enabled (node1): is set, but only the value of control counts. Set it for node3 instead.",
    ]


def test_a_machine_with_two_names_is_named(said: Said) -> None:
    found = said(node1={"ansible_host": "10.0.0.1"}, node2={"ansible_host": "10.0.0.1", "ansible_port": 22})

    assert found == ["ansible_host (node[1-2]): is 10.0.0.1 port 22 on 2 hosts. Give each host its own address."]


def test_machines_behind_one_address_are_told_apart_by_port(said: Said) -> None:
    local = {"ansible_host": "127.0.0.1"}

    assert said(node1={**local, "ansible_port": 2201}, node2={**local, "ansible_port": 2202}) == []


@pytest.mark.parametrize("variable", CLUSTER_WIDE)
def test_a_value_of_the_whole_cluster_that_one_host_has_alone_is_named(said: Said, specs: Specs, variable: str) -> None:
    empty: dict[str, object] = {"bool": True, "dict": {}, "list": []}
    option = specs.options[variable]
    own = empty.get(option["type"], option.get("choices", ["/share/other"])[-1])
    everywhere = {"slurm_config": {"SlurmdTimeout": 60}, "slurm_cgroup_config": {"ConstrainDevices": True}}
    everywhere |= {"slurm_nodes": {"node1": {"Weight": 1}}, "slurm_partitions": {"main": {"Nodes": "ALL"}}}
    everywhere |= {"accounts_users": [user("alice", 2001)], "accounts_groups": [{"name": "lab", "gid": 3000}]}
    everywhere |= {"accounts_by_hand": ["ubuntu"], "slurm_private_jobs": False, "accounting_enabled": False}
    everywhere |= {"shares_accounts": {"bio": {}}, "shares_qos": {"gpu": {}}, "shares_users": {"ann": {}}}
    everywhere |= {"shares_remove_accounts": ["old"], "shares_remove_users": ["eve"]}
    everywhere |= {"slurm_config_overrides": False, "celery_broker_users": ["alice"], "julia_archives": [JULIA]}
    everywhere |= {"celery_broker_groups": ["lab"], "sandbox_accounts": ["lab"], "sandbox_partitions": ["main"]}

    found = said(everywhere=everywhere, node4={variable: own})

    assert (
        f"{variable} (node4): is not the same as on node3, but describes the whole cluster. "
        "Set it once, for all hosts." in found
    )


def test_clients_that_look_for_the_share_elsewhere_are_named(said: Said) -> None:
    found = said(node3={"nfs_server_path": "/data/share"})

    assert found == [
        "nfs_client_source (node[1-4]): is /srv/share, but node3 has the share in its nfs_server_path, /data/share. "
        "Set nfs_client_source to /data/share for all hosts."
    ]


def test_a_quiet_node_that_has_other_work_is_named(said: Said) -> None:
    assert said(node3={"slurm_quiet": True}, node4={"slurm_quiet": True}) == [
        "slurm_quiet (node3): is true, but slurmctld would disturb jobs here. Remove it from this host.",
        "slurm_quiet (node3): is true, but the NFS server would disturb jobs here. Remove it from this host.",
    ]


@pytest.mark.parametrize(
    ("one", "other", "device"),
    [
        ({"power_method": "turing_pi", "power_slot": 2}, {"power_slot": 3}, ""),
        ({"power_method": "turing_pi"}, {"power_address": "192.168.2.11:443"}, "192.168.2.11 port 443 slot 1"),
        ({"power_method": "plug", "power_plug": "tasmota"}, {}, "192.168.2.11 port 80 slot 1"),
        ({"power_method": "ipmi"}, {"power_slot": 2}, "192.168.2.11 port 623"),
        ({"power_method": "command", "power_commands": SWITCH}, {}, ""),
    ],
)
def test_a_device_that_two_machines_have_is_named(
    said: Said, one: dict[str, Any], other: dict[str, Any], device: str
) -> None:
    expected = (
        f"power_address (node[1-2]): is {device} on 2 hosts. "
        "Give each host its own power_address, or on a shared device its own power_slot."
    )

    assert said(node1={**BMC, **one}, node2={**BMC, **one, **other}) == ([expected] if device else [])


def test_a_machine_that_must_not_sleep_is_named(said: Said) -> None:
    idle = {"power_method": "command", "power_commands": SWITCH, "power_idle": "20min"}
    groups = {"nfs_server": ("node1",), "workers": ("node2", "node3", "node4"), "login": ("node4",)}
    advice = 'must stay available here while no job runs. Set power_idle: "" for this host.'

    assert said(groups=groups, node2=idle) == []
    assert said(groups=groups, everywhere=idle) == [
        f"power_idle (node4): is 20min, but logins {advice}",
        f"power_idle (node3): is 20min, but slurmctld {advice}",
    ]
    assert said(groups={**groups, "workers": ("node1", "node2")}, everywhere=idle) == [
        f"power_idle (node1): is 20min, but the share {advice}"
    ]


def test_cores_for_the_system_that_are_no_number_of_cores_are_named(said: Said) -> None:
    assert said(node1={"slurm_system_cores": 1}, node2={"slurm_system_cores": -1}) == [
        "slurm_system_cores (node2): is less than 0. Set the number of cores that no job gets, or 0."
    ]


def test_gpus_and_fast_cores_exclude_each_other(said: Said) -> None:
    gpus = {
        "slurm_config": {"GresTypes": "core,gpu"},
        "slurm_nodes": {"node1": {"Gres": ["gpu:a100:2"]}, "node2": None},
    }
    others = {"slurm_config": {"GresTypes": ["core", "tape"]}, "slurm_nodes": {"node1": {"Gres": "tape:1"}}}
    wrong = "but slurm_core_gres is true, with which Slurmstead replaces gres.conf"
    advice = "Remove slurm_core_gres, and write gres.conf on control yourself, or remove the devices."

    assert said(everywhere={**gpus, "slurm_core_gres": True}) == [
        f'slurm_config (node3): GresTypes is "core,gpu", {wrong}. {advice}',
        f'slurm_nodes (node3): node1: Gres is ["gpu:a100:2"], {wrong}. {advice}',
    ]
    assert said(everywhere=gpus) == []
    assert said(everywhere={**others, "slurm_core_gres": True}) == []
    assert said(everywhere={"slurm_config": {"GresTypes": None}, "slurm_core_gres": True}) == []


@pytest.mark.parametrize(
    ("quiet", "own", "refused"),
    [
        (["node1", "node2", "node4"], {}, True),
        (["node1", "node2", "node4"], {"quiet": {"MaxTime": 60}}, True),
        (["node1", "node2", "node4"], {"quiet": {"Default": "NO"}}, False),
        (["node1", "node2", "node4"], {"small": {"Nodes": "node1", "Default": True}}, False),
        (["node1", "node2"], {}, False),
        ([], {}, False),
    ],
)
def test_notebooks_of_a_cluster_of_quiet_nodes_start_in_their_partition(
    said: Said, quiet: list[str], own: dict[str, Any], refused: bool
) -> None:
    everywhere = {"sandbox_enabled": True, "sandbox_partitions": ["quiet"], "slurm_partitions": own}
    hosts = {name: {"slurm_quiet": True} for name in quiet}
    hub = {"jupyterhub_enabled": True, "jupyterhub_profiles": {"small": {"cpus": 1}}}
    expected = (
        "jupyterhub_profiles (node3): has small with the partition quiet, which is in sandbox_partitions. "
        "Choose a partition that demands no image."
    )

    assert said(everywhere=everywhere, node3=hub, **hosts) == ([expected] if refused else [])


PARTITIONS = {"main": {"Nodes": "node[1-2]"}, "quiet": {"MaxTime": 60}, "spare": {"Nodes": "node4"}, "none": None}


def test_a_partition_may_name_quiet_nodes(said: Said) -> None:
    assert said(everywhere={"slurm_partitions": PARTITIONS}, node4={"slurm_quiet": True}) == []


def test_a_partition_that_gets_quiet_nodes_unnoticed_is_named(said: Said) -> None:
    all_nodes = {**PARTITIONS, "main": {"Nodes": "ALL"}, "quiet": {"Nodes": "node1"}}

    assert said(everywhere={"slurm_partitions": all_nodes}) == []
    assert said(everywhere={"slurm_partitions": all_nodes}, node4={"slurm_quiet": True}) == [
        "slurm_partitions (node3): main: Nodes: ALL includes node4, whose slurm_quiet is true. "
        "Name its nodes; a job of it on a quiet node keeps jobs of quiet waiting.",
        "slurm_partitions (node3): quiet: Nodes is set, but slurm_quiet says which nodes are in it. Remove Nodes.",
    ]


def test_a_number_of_the_lab_used_twice_is_named(said: Said) -> None:
    found = said(node1=LAB, node2=LAB, node4={**LAB, "lab_number": 255})

    assert found == [
        "lab_number (node[1-2]): is 1 on 2 hosts. Give each host its own number.",
        "lab_number (node4): is 255. Write a number from 1 to 254.",
    ]


@pytest.mark.parametrize("relation", relations.RELATIONS, ids=lambda rule: rule.__name__)
def test_a_relation_fires_in_one_of_the_cases(relation: Callable[..., Any], specs: Specs) -> None:
    """A relation that no case violates is not tested."""
    defaults = {name: option.get("default") for name, option in specs.options.items()}
    defaults |= dict.fromkeys(COMPARED_CONNECTION_VARIABLES)
    context = {
        "control_names": ["node3"],
        "nfs_server_names": ["node3"],
        "worker_names": ["node1"],
        "login_names": [],
        "slurm_version": None,
    }
    names = inspect.signature(relation).parameters
    relevant = [{**defaults, **context, **variables} for variables, _ in CASES.values() if names & variables.keys()]

    assert any(list(relation(**{name: values[name] for name in names})) for values in relevant)


@pytest.mark.parametrize("relation", relations.RELATIONS + relations.CLUSTER_RELATIONS, ids=lambda rule: rule.__name__)
def test_a_relation_reads_only_variables_that_exist(relation: Callable[..., object], specs: Specs) -> None:
    """A relation of a variable that no spec has would never run."""
    known = {*specs.options, *COMPARED_CONNECTION_VARIABLES, *relations.CONTEXT}

    assert set(inspect.signature(relation).parameters) <= known
    assert relation.__doc__, "A relation's docstring says why the rule is one"
