# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What a system gets before its first boot: an account with keys, no passwords, and nothing that two machines share."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator, Mapping, Sequence

PASSWORDS = ("/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow")
READ = (*PASSWORDS, "/etc/ssh/sshd_config", "/etc/sudoers", "/etc/default/armbian-firstrun")
"""Files of the system that `changes` must see; those that do not exist are empty."""

STARTED = ("/etc/systemd/system/multi-user.target.wants", "/etc/systemd/system/sockets.target.wants")
LISTED = ("/etc/ssh", "/etc/cloud", "/usr/bin", "/usr/sbin", *STARTED)
"""Directories of the system whose names `changes` must see."""

PROGRAMS = {"ssh server": "/usr/sbin/sshd", "sudo": "/usr/bin/sudo", "python3": "/usr/bin/python3"}

HOST_KEYS = """\
[Service]
# The image has no host keys: each machine makes its own at its first boot, and shows its fingerprint on the console.
ExecStartPre=
ExecStartPre=/usr/bin/ssh-keygen -A
ExecStartPre=-/bin/sh -c "/usr/bin/ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub > /dev/console"
ExecStartPre=/usr/sbin/sshd -t
"""

# cloud-init would otherwise read the image's own partition CIDATA, which creates a user with a known password.
CLOUD = "datasource_list: [NoCloud]\ndatasource: {NoCloud: {fs_label: null}}\n"
CLOUD_USER = "#cloud-config\nusers: []\nssh_pwauth: false\nssh_deletekeys: false\npreserve_hostname: true\n"

ARMBIAN = (
    *("/root/.not_logged_in_yet", "/etc/systemd/system/getty@.service.d/override.conf"),
    "/etc/systemd/system/serial-getty@.service.d/override.conf",
)
"""They log root in on the consoles and ask for a password (armbian/build, armbian-check-first-login)."""


class UnsuitableError(Exception):
    """A system lacks what Ansible needs; the message says what."""


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What the roles bootstrap and os write: the account, its public keys, and the text of their files."""

    user: str
    keys: Sequence[str]
    sudoers: str
    sshd: str


@dataclasses.dataclass(frozen=True)
class File:
    """A file that is written; a directory if it has no content."""

    content: str | None
    mode: int = 0o644
    uid: int = 0
    gid: int = 0


@dataclasses.dataclass(frozen=True)
class Changes:
    """Files by their path, in the order in which they are written, and paths that are removed if they exist."""

    files: Mapping[str, File]
    removed: Sequence[str]


def changes(wanted: Wanted, texts: Mapping[str, str], names: Mapping[str, Sequence[str]]) -> Changes:
    """Return what to change in a system.

    :param texts: the files READ
    :param names: the names in the directories LISTED
    :raises UnsuitableError: it lacks what Ansible needs
    """
    for what, path in PROGRAMS.items():
        directory, _, name = path.rpartition("/")
        if name not in names[directory]:
            raise UnsuitableError(f"its system has no {what} ({path}); Ansible needs it")
    if not {"ssh.service", "ssh.socket"} & {name for directory in STARTED for name in names[directory]}:
        raise UnsuitableError("its ssh server does not start at boot; use another image")
    for path, directory in (("/etc/ssh/sshd_config", "sshd_config.d"), ("/etc/sudoers", "sudoers.d")):
        if directory not in texts[path]:
            raise UnsuitableError(f"{path} of its system does not include {directory}; use a newer image")
    (home, uid, gid), files = _passwords(wanted.user, texts)
    files |= {
        home: File(None, 0o750, uid, gid),
        f"{home}/.ssh": File(None, 0o700, uid, gid),
        f"{home}/.ssh/authorized_keys": File("".join(f"{key.strip()}\n" for key in wanted.keys), 0o600, uid, gid),
        f"/etc/sudoers.d/{wanted.user}": File(wanted.sudoers, 0o440),
        "/etc/ssh/sshd_config.d/10-slurmstead.conf": File(wanted.sshd),
        "/etc/systemd/system/ssh.service.d": File(None, 0o755),
        "/etc/systemd/system/ssh.service.d/slurmstead-host-keys.conf": File(HOST_KEYS),
        "/etc/machine-id": File("", 0o444),
    }
    if "cloud.cfg.d" in names["/etc/cloud"]:
        files |= {
            "/etc/cloud/cloud.cfg.d/zz-slurmstead.cfg": File(CLOUD),
            "/var/lib/cloud": File(None, 0o755),
            "/var/lib/cloud/seed": File(None, 0o755),
            "/var/lib/cloud/seed/nocloud": File(None, 0o755),
            "/var/lib/cloud/seed/nocloud/meta-data": File(f"instance-id: stead-{uuid.uuid4()}\n"),
            "/var/lib/cloud/seed/nocloud/user-data": File(CLOUD_USER),
        }
    if armbian := texts["/etc/default/armbian-firstrun"]:
        # It would replace the host key that was seen first.
        files["/etc/default/armbian-firstrun"] = File(f"{armbian.rstrip()}\nOPENSSHD_REGENERATE_HOST_KEYS=false\n")
    keys = [f"/etc/ssh/{name}" for name in names["/etc/ssh"] if name.startswith("ssh_host_")]
    return Changes(files, [*keys, "/var/lib/dbus/machine-id", "/var/lib/systemd/random-seed", *ARMBIAN])


def _passwords(user: str, texts: Mapping[str, str]) -> tuple[tuple[str, int, int], dict[str, File]]:
    """Return home, uid and gid of the account, and the files that declare it; no account keeps a password.

    An account of this name in the image is used as it is.
    """
    lines = {path: texts[path].splitlines() for path in PASSWORDS}
    known = [line.split(":") for line in lines["/etc/passwd"]]
    mine = next((line for line in known if line[0] == user), None)
    if mine is None:
        used = {int(line[2]) for line in known} | {int(line.split(":")[2]) for line in lines["/etc/group"]}
        number = next(number for number in range(1000, 60000) if number not in used)
        mine = [user, "x", str(number), str(number), "", f"/home/{user}", "/bin/bash"]
        lines["/etc/passwd"].append(":".join(mine))
        lines["/etc/shadow"].append(f"{user}:!:::::::")
        lines["/etc/group"].append(f"{user}:x:{number}:")
        lines["/etc/gshadow"].append(f"{user}:!::")
    lines["/etc/shadow"] = list(_locked(lines["/etc/shadow"]))
    readers = next((int(line.split(":")[2]) for line in lines["/etc/group"] if line.startswith("shadow:")), 0)
    files = {
        path: File("".join(f"{line}\n" for line in lines[path]), *((0o640, 0, readers) if "shadow" in path else ()))
        for path in PASSWORDS
    }
    return (mine[5], int(mine[2]), int(mine[3])), files


def _locked(shadow: Sequence[str]) -> Iterator[str]:
    """Yield the lines of /etc/shadow without a usable password, as `usermod --lock` writes them (shadow(5)).

    >>> list(_locked(["root:$y$hash:1::::::", "pi::1::::::", "daemon:*:1::::::"]))
    ['root:!$y$hash:1::::::', 'pi:!:1::::::', 'daemon:*:1::::::']
    """
    for line in shadow:
        name, password, rest = line.split(":", 2)
        yield line if password.startswith(("!", "*")) else f"{name}:!{password}:{rest}"
