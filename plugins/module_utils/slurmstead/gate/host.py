# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Requirements of a configuration on this machine that the gate cannot test: plugins, directories, names and ports."""

from __future__ import annotations

import grp
import ipaddress
import os
import pathlib
import pwd
import re
import socket
import stat
from collections.abc import Iterator, Mapping

from ansible.module_utils.slurmstead.conf import finding as conf_finding
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.conf.finding import Finding
from ansible.module_utils.slurmstead.conf.model import Model

PLUGIN_DIRECTORIES = ("/usr/lib/*/slurm-wlm", "/usr/lib/*/slurm", "/usr/lib64/slurm")
"""Plugin directories of Debian and other distributions."""

PLUGIN = re.compile(r"([a-z_]+)/([a-z0-9_]+)")
PLUGIN_KEY = re.compile(r"(?:type|types|plugin|plugins)$")


def check(files: Mapping[str, str], live: Mapping[str, str]) -> list[Finding]:
    """Return what this machine lacks for a set of files; `live` is the active set."""
    model, before = conf_model.read(files.get("slurm.conf", "")), conf_model.read(live.get("slurm.conf", ""))
    problems = (*_plugins(model), *directories(model), *_names(model), *_port(model, before))
    return [conf_finding.at(files, "slurm.conf", line, what, advice) for line, what, advice in problems]


def _plugins(model: Model) -> Iterator[tuple[int, str, str]]:
    """The gate replaces authentication, and slurmctld loads no plugins of slurmd."""
    own = model.value("PluginDir")
    directories = [pathlib.Path(part) for part in own.split(":") if part] or [
        path for pattern in PLUGIN_DIRECTORIES for path in pathlib.Path("/").glob(pattern.lstrip("/"))
    ]
    known = {path.name for directory in directories if directory.is_dir() for path in directory.glob("*.so")}
    if not known:
        return
    for key, pair in model.settings.items():
        for word in pair.value.split(",") if PLUGIN_KEY.search(key) else ():
            match = PLUGIN.fullmatch(word.strip())
            # In newer versions, plugins named `none` have no file.
            if match and match[2] != "none" and f"{match[1]}_{match[2]}.so" not in known:
                advice = "correct the name, or install the package that contains it"
                yield pair.line, f"Slurm has no plugin {word.strip()} on this machine", advice


def directories(model: Model) -> Iterator[tuple[int, str, str]]:
    """Yield line, cause and advice for each directory that slurmctld cannot write to."""
    user = model.value("SlurmUser", "root")
    state, log = model.settings.get("statesavelocation"), model.settings.get("slurmctldlogfile")
    if state:
        why = not_writable(pathlib.Path(state.value), user)
        if why:
            yield state.line, why, f"create it for {user}, with mode 0700"
    if log:
        why = not_writable(pathlib.Path(log.value).parent, user)
        if why:
            yield log.line, why, f"create it for {user}"


def not_writable(path: pathlib.Path, user: str) -> str:
    """Return why a user cannot write to a directory, or nothing; the gate reports a user that does not exist."""
    try:
        seen, entry = path.stat(), pwd.getpwnam(user)
    except OSError as error:
        return f"{path}: {error.strerror}"
    except KeyError:
        return ""
    if not stat.S_ISDIR(seen.st_mode):
        return f"{path} is not a directory"
    groups = {entry.pw_gid, *(group.gr_gid for group in grp.getgrall() if user in group.gr_mem)}
    shift = 6 if seen.st_uid == entry.pw_uid else 3 if seen.st_gid in groups else 0
    allowed = entry.pw_uid == 0 or (seen.st_mode >> shift) & 0o3 == 0o3
    if not allowed or os.statvfs(path).f_flag & os.ST_RDONLY or str(path).startswith(("/proc/", "/sys/")):
        return f"{user} cannot write to {path}"
    return ""


def _names(model: Model) -> Iterator[tuple[int, str, str]]:
    """In each command, Debian's Slurm tries ten times, once a second, to resolve an unknown name."""
    for name, keys in model.nodes.items():
        pair = keys.get("nodeaddr", keys[""])
        if "state" in keys and keys["state"].value.upper() in ("CLOUD", "FUTURE"):
            continue
        try:
            ipaddress.ip_address(pair.value)
        except ValueError:
            try:
                socket.getaddrinfo(pair.value, None)
            except OSError as error:
                yield pair.line, f"{pair.value}, the address of {name}: {error.strerror}", "write its IP address"


def _port(model: Model, before: Model) -> Iterator[tuple[int, str, str]]:
    pair = model.settings.get("slurmctldport")
    if pair is None or pair.value == before.value("SlurmctldPort"):
        return
    for port in pair.value.split("-")[:1]:
        if port.isdigit() and int(port) in listeners():
            yield pair.line, f"another program listens on port {port}", "`ss -ltnp` shows which; use another port"


def listeners() -> frozenset[int]:
    """Return the TCP ports with a listener (proc(5): state 0A)."""
    found = set()
    for table in ("tcp", "tcp6"):
        path = pathlib.Path("/proc/net") / table
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        found |= {int(line.split()[1].rpartition(":")[2], 16) for line in lines if line.split()[3] == "0A"}
    return frozenset(found)
