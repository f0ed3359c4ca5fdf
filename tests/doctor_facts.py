"""What is seen on the machines of a healthy cluster, as doctor_facts returns it."""

from __future__ import annotations

import copy
from typing import Any

NAMES = ("node1", "node2", "node3")
ADDRESSES = {name: f"10.0.0.{number}" for number, name in enumerate(NAMES, start=1)}
CONTROL = "node3"
WORKERS = ("node1", "node2")
KEY = "ssh-ed25519 AAAA alice@laptop"
CONF = """\
# Ansible managed
ClusterName=c
MaxJobCount=25000
ProctrackType=proctrack/cgroup
NodeName=node1 NodeAddr=10.0.0.1 CPUs=4 RealMemory=900
NodeName=node2 NodeAddr=10.0.0.2 CPUs=4 RealMemory=900
PartitionName=main Default=YES Nodes=ALL State=UP
"""
FILES = {"slurm.conf": CONF, "cgroup.conf": "ConstrainCores=yes\n", "gres.conf": ""}
FOUND = {name: text for name, text in FILES.items() if text}
SPACE = {"error": "", "source": "/dev/sda1", "type": "ext4", "readonly": False, "size": 30000, "free": 20000}
UNIT = {"load": "loaded", "active": "active", "sub": "running", "enabled": "enabled", "result": "success", "said": ""}


def unit(pid: int = 7) -> dict[str, Any]:
    return {**UNIT, "reload": False, "pid": pid, "started": 1000.0, "outdated": ""}


def machine(name: str) -> dict[str, Any]:
    """What is seen on a machine of a healthy cluster."""
    mine = ["slurmctld", "nfs-server"] if name == CONTROL else ["slurmd"]
    units = ["munge", "chrony", "share.automount", "slurmstead-firewall", *mine]
    paths = {"/": False, "/share": True, **({"/srv/share": True} if name == CONTROL else {"/scratch": True})}
    seen = {path: {**SPACE, "id": path, "inodes": 1000, "free_inodes": 900} for path in paths}
    listening = [{"address": "0.0.0.0", "port": 22, "process": "sshd", "pid": 9}]
    listening += [{"address": "::", "port": 6818, "process": word, "pid": 9} for word in mine if word.startswith("s")]
    slurm: dict[str, Any] = {"files": {}, "fetched": FOUND, "error": "", "version": "22.05.8", "match": True}
    if name == CONTROL:
        nodes = {worker: {"NodeName": worker, "State": "IDLE", "Version": "22.05.8"} for worker in WORKERS}
        slurm |= {"files": FOUND, "fetched": {}, "nodes": nodes, "partitions": {"main": "UP"}, "restarts": []}
        slurm |= {"jobs": ["7", "8"], "steps": {"7": {"nodes": ["node1"], "age": 99.0}}}
    return {
        "wanted": {"units": units, "paths": paths, "ports": {"tcp": [], "udp": []}},
        "release": "debian 12",
        "offset": [-2.1, 1.9],
        "name": name,
        "addresses": ["10.0.2.15", ADDRESSES[name]],
        "misresolved": {},
        "clock": {"offset": 0.0001, "error": ""},
        "accounts": {"alice": [2001, 2001], "slurm": [64030, 64030], "debian": [1000, 1000]},
        "groups": {"alice": 2001, "debian": 1000},
        "people": {
            "made": {"alice": {"left": False, "jobs": False, "groups": []}},
            "numbers": {"root": 0, "debian": 1000, "alice": 2001},
            "locked": [],
            "keys": {"alice": [KEY]},
            "own_keys": {"debian": 1, "alice": 1},
            "sudo": {"root": "", "debian": "sudo"},
        },
        "key": {"error": "", "digest": "d1", "mode": "0400 munge:munge", "written": 900.0},
        "credential": {"error": "", "text": "MUNGE:…"},
        "accounting": {"error": "", "waiting": 0} if name == CONTROL else {},
        "paths": seen,
        "units": {word: unit() for word in units},
        "failed": [],
        "tables": ["inet slurmstead"],
        "packages": {"munge": "0.5.15-2", **{word: "22.05.8-4" for word in mine if word.startswith("s")}},
        "listening": listening,
        "udp": [{"address": "0.0.0.0", "port": 123, "process": "chronyd", "pid": 9}],
        "unreached": {},
        "mtus": {"10.0.2.15": 65520, ADDRESSES[name]: 1500},
        "swap": 3,
        "exports": [{"path": "/srv/share", "client": "10.0.0.1", "readonly": False}] if name == CONTROL else [],
        "steps": {"7": 100.0} if name == "node1" else {},
        "pmix": False,
        "cgroup": {"mode": "v2", "controllers": ["cpu", "cpuset", "io", "memory", "pids"]},
        "slurm": copy.deepcopy(slurm),
    }


def healthy() -> dict[str, dict[str, Any]]:
    return {name: machine(name) for name in NAMES}
