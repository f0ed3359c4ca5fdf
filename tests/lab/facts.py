"""Prints as JSON what tests want to know of a machine. Runs there, as root, with its own Python and nothing else."""

import grp
import hashlib
import json
import os
import pathlib
import pwd
import stat
import subprocess

UNITS = "chrony munge ssh slurmctld slurmd nfs-server unattended-upgrades share.automount scratch.mount".split()
SECONDS = 60


def output(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS, text=True)
    return done.stdout.strip()


def describe(path):
    """Mode, owner and group of a path, or None."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    owner, group = pwd.getpwuid(status.st_uid).pw_name, grp.getgrgid(status.st_gid).gr_name
    return f"{stat.S_IMODE(status.st_mode):04o} {owner}:{group}"


def mounts(target):
    """What is mounted there, from the outermost to the one that is seen."""
    with open("/proc/self/mounts") as file:
        entries = [line.split() for line in file]
    return [
        {"source": source, "type": kind, "options": options.split(",")}
        for source, where, kind, options, *_ in entries
        if where == target
    ]


def units():
    shown = output("systemctl", "show", "--property=Id,ActiveState,UnitFileState,MainPID", *UNITS)
    blocks = (dict(line.split("=", 1) for line in block.splitlines()) for block in shown.split("\n\n"))
    return {block["Id"].replace(".service", ""): block for block in blocks}


def limits(pid):
    if pid == "0":
        return {}
    lines = pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines()[1:]
    return {line[:26].strip(): line[26:].split()[0] for line in lines}


def accounts():
    with open("/etc/shadow") as file:
        locked = {fields[0]: fields[1][:1] in "!*" for fields in (line.split(":") for line in file)}
    return {
        user.pw_name: {"uid": user.pw_uid, "gid": user.pw_gid, "home": user.pw_dir, "locked": locked.get(user.pw_name)}
        for user in pwd.getpwall()
    }


os.stat("/share/.")  # the automount mounts it
known_units = units()
key = pathlib.Path("/etc/munge/munge.key")
print(
    json.dumps(
        {
            "name": os.uname().nodename,
            "hostname": pathlib.Path("/etc/hostname").read_text().strip(),
            "hosts": pathlib.Path("/etc/hosts").read_text(),
            "units": known_units,
            "failed": output("systemctl", "list-units", "--state=failed", "--plain", "--no-legend").splitlines(),
            "limits": limits(known_units["slurmd"]["MainPID"]),
            "time_sources": [line.split(",") for line in output("chronyc", "-n", "-c", "sources").splitlines()],
            "sshd": {
                line.partition(" ")[0]: line.partition(" ")[2] for line in output("/usr/sbin/sshd", "-T").splitlines()
            },
            "apt": output("apt-config", "dump").splitlines(),
            "key": {
                "mode": describe(key),
                "directory": describe(key.parent),
                "sha256": hashlib.sha256(key.read_bytes()).hexdigest(),
            },
            "share": mounts("/share"),
            "store": mounts("/srv/share"),
            "scratch": mounts("/scratch"),
            "cgroup": mounts("/sys/fs/cgroup"),
            "modes": {
                path: describe(path)
                for path in (
                    "/scratch",
                    "/share",
                    "/share/home",
                    "/var/log/slurm",
                    "/etc/slurm/slurm.conf",
                    "/run/slurm/conf/slurm.conf",
                    "/var/lib/slurm/slurmctld",
                )
            },
            "accounts": accounts(),
        }
    )
)
