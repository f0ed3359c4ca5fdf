"""What the tests of the doctor break in a lab, and what the doctor has to say of it.

The machines are those of inventory/lab.
"""

from __future__ import annotations

import dataclasses

FAKES = "/var/tmp/slurmstead-doctor"
"""Not below /run, which is mounted noexec."""
LIVE = "/etc/slurm/slurmstead/live/slurm.conf"
KEY = "/etc/munge/munge.key"


@dataclasses.dataclass(frozen=True)
class Fault:
    """Shell commands that break something on a machine and fix it, and the finding: what it is about, and its text."""

    machine: str
    inject: str
    remove: str
    about: str
    seen: str


def over(machine: str, path: str, content: str, about: str, seen: str) -> Fault:
    """Another content of a file, which a command prints; the file itself stays as it is."""
    fake = f"{FAKES}{path.replace('/', '-')}"
    put = f"{content} > {fake} && chmod --reference={path} {fake} && mount --bind {fake} {path}"
    return Fault(machine, put, f"umount {path}; rm -f {fake}", about, seen)


QUIET = [
    Fault("node1", "hostname node2", "hostname node1", "name", "its host name is node2"),
    over(
        "node4",
        "/etc/hosts",
        "sed -e 's/.* node2$/10.77.0.99 node2/' -e '/ node1$/d' /etc/hosts",
        "resolution",
        r"resolves node2 to 10\.77\.0\.99 and cannot resolve node1",
    ),
    Fault(
        "node2",
        "systemd-run --quiet --unit=doctor-port python3 -m http.server 8888",
        "systemctl stop doctor-port",
        "port",
        r"port 8888 listens on all networks \(python3, process \d+\)",
    ),
    Fault(
        "node4",
        "systemd-run --quiet --unit=doctor-udp python3 -c "
        "'import socket, time; s = socket.socket(type=2); s.bind((\"\", 5353)); time.sleep(3600)'; sleep 2",
        "systemctl stop doctor-udp",
        "port",
        r"UDP port 5353 listens on all networks \(python3, process \d+\)",
    ),
    Fault(
        "node2",
        "ip route add unreachable 10.77.0.4/32",
        "ip route del unreachable 10.77.0.4/32",
        "firewall",
        r"it does not reach node4 on TCP port 6818 \(No route to host\) and 60001 \(No route to host\)",
    ),
    over(
        "node2",
        "/proc/meminfo",
        "sed -e 's/^SwapTotal:.*/SwapTotal: 2097152 kB/' -e 's/^SwapFree:.*/SwapFree: 1048576 kB/' /proc/meminfo",
        "swap",
        "1024 MiB of swap are in use",
    ),
    over(
        "node2",
        "/etc/passwd",
        "sed 's/^alice:x:2001:/alice:x:2999:/' /etc/passwd",
        "accounts",
        "alice has the IDs 2999:2001, but 2001:2001 in the inventory",
    ),
    over("node4", "/etc/passwd", "sed '/^alice:/d' /etc/passwd", "accounts", "the user alice is missing"),
    over(
        "node1",
        "/etc/group",
        "sed 's/^alice:x:2001:/alice:x:2999:/' /etc/group",
        "groups",
        "the group alice has the ID 2999, but 2001 in the inventory",
    ),
    Fault("node1", f"chmod 0444 {KEY}", f"chmod 0400 {KEY}", "key", "its MUNGE key is 0444 munge:munge"),
    Fault(
        "node2",
        "systemctl --quiet disable munge",
        "systemctl --quiet enable munge",
        "boot",
        "munge is not enabled at boot",
    ),
    Fault(
        "node2",
        "systemctl --quiet --runtime mask slurmd",
        "systemctl --quiet --runtime unmask slurmd",
        "service slurmd",
        "slurmd is masked",
    ),
    Fault(
        "node3",
        "chown root /var/lib/slurm/slurmctld",
        "chown slurm /var/lib/slurm/slurmctld",
        "state",
        "slurm cannot write to /var/lib/slurm/slurmctld",
    ),
    Fault(
        "node4",
        "systemctl stop chrony",
        "systemctl start chrony",
        "service chrony",
        r"chrony is not running \(inactive\)",
    ),
    Fault(
        "node1",
        "systemd-run --quiet --unit=doctor-failed false; sleep 2",
        "systemctl reset-failed doctor-failed",
        "failed",
        "doctor-failed.service failed",
    ),
    Fault(
        "node1",
        "mkdir -p /run/systemd/system/slurmd.service.d && "
        "printf '[Service]\\nNice=1\\n' > /run/systemd/system/slurmd.service.d/doctor.conf",
        "rm -r /run/systemd/system/slurmd.service.d; systemctl daemon-reload",
        "reload",
        "the unit file of slurmd was changed",
    ),
    Fault(
        "node4",
        "cp -a /usr/sbin/munged /usr/sbin/munged.new && mv /usr/sbin/munged.new /usr/sbin/munged",
        "systemctl restart munge",
        "outdated",
        "munge is older than its package: /usr/sbin/munged was replaced",
    ),
    over(
        "node1",
        "/var/lib/dpkg/status",
        "sed '/^Package: munge$/,/^Version:/s/^Version: .*/Version: 0.5.14-1/' /var/lib/dpkg/status",
        "version",
        r"munge 0.5.14-1 is installed here, but .* on node\[2-4\]",
    ),
    Fault(
        "node3",
        "systemctl stop share.automount share.mount",
        "systemctl start share.automount",
        "mount",
        "nothing is mounted on /share",
    ),
    Fault(
        "node3",
        "fallocate -l $(( $(stat -f -c %a /) * $(stat -f -c %S /) / 100 * 97 )) /var/tmp/slurmstead-full",
        "rm -f /var/tmp/slurmstead-full",
        "space",
        "/ is nearly full",
    ),
    over(
        "node1",
        "/sys/fs/cgroup/cgroup.controllers",
        "echo cpuset cpu io pids",
        "cgroup",
        "no cgroup controller memory",
    ),
    Fault(
        "node3",
        "scontrol update nodename=node2 state=drain reason=fan",
        "scontrol update nodename=node2 state=resume",
        "node",
        r"slurmctld gives it no jobs: .*DRAIN.*, fan \[",
    ),
    Fault(
        "node3",
        "scontrol update partition=main state=down",
        "scontrol update partition=main state=up",
        "partition",
        "the partition main is DOWN, but UP in the inventory",
    ),
    Fault(
        "node4",
        "cp /run/slurm/conf/slurm.conf /etc/slurm/slurm.conf",
        "rm /etc/slurm/slurm.conf",
        "own",
        "/etc/slurm has its own slurm.conf, which hides that of node3",
    ),
    over(
        "node1",
        "/run/slurm/conf/slurm.conf",
        "sed 's/^MaxJobCount=.*/MaxJobCount=7/' /run/slurm/conf/slurm.conf",
        "fetched",
        "differs from that of node3: MaxJobCount: 7 → 1000000",
    ),
]
"""Faults that disturb nobody."""

KEEP = f"cp -a {KEY} {FAKES}.key"
BACK = f"cp -a {FAKES}.key {KEY}"
OTHER = f"head -c 128 /dev/urandom > {KEY}"

TRUST = [
    Fault(
        "node1",
        f"{KEEP} && {OTHER} && systemctl restart munge",
        f"{BACK}; rm {FAKES}.key; systemctl restart munge slurmd",
        "key",
        "its MUNGE key differs from that of node3",
    ),
    Fault(
        "node2",
        f"{KEEP} && {OTHER} && systemctl restart munge && sleep 5 && cat {FAKES}.key > {KEY}",
        f"{BACK}; rm {FAKES}.key; systemctl restart munge slurmd",
        "munge",
        "munge still uses the previous key",
    ),
    Fault(
        "node4",
        "systemctl stop chrony && date -s '+10 minutes'",
        "date -s '-10 minutes'; systemctl start chrony",
        "clock",
        r"its clock is at least [56]\d\d s ahead of that of node3",
    ),
    Fault(
        "node4",
        "systemctl stop slurmd",
        "systemctl start slurmd",
        "service slurmd",
        r"slurmd is not running \(inactive\)",
    ),
    Fault(
        "node3",
        f"cp -a {LIVE} {FAKES}.conf && sed -i 's/^MaxJobCount=.*/MaxJobCount=7/' {LIVE}",
        f"cp -a {FAKES}.conf {LIVE}; rm {FAKES}.conf",
        "configuration",
        "/etc/slurm differs from the inventory: MaxJobCount: 7 → 1000000",
    ),
]
"""Faults by which machines no longer believe each other."""

SILENCE = [
    Fault(
        "node3",
        "systemctl stop slurmctld",
        "systemctl start slurmctld",
        "service slurmctld",
        r"slurmctld is not running \(inactive\)",
    ),
    Fault(
        "node4",
        "systemd-run --quiet --unit=doctor-ssh --on-active=75 --timer-property=AccuracySec=1s systemctl start ssh; "
        "systemctl stop ssh",
        # Over the connection that is open, or once the timer has opened the door again.
        "systemctl start ssh; systemctl stop doctor-ssh.timer",
        "ssh",
        "it cannot be checked",
    ),
]
"""Faults after which a machine or daemon does not answer at all."""

CONSEQUENCES = {
    # The health check may come while its fault is there.
    "node": "slurmctld gives it no jobs: .*slurmstead: ",
    "service share.automount": "share.automount is not running",
    "service chrony": "chrony is not running",
    "loaded": "slurmctld has not loaded the current /etc/slurm/slurm.conf",
}
"""What may be found besides, by what it is about."""
