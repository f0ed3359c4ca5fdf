"""JupyterHub, its proxy and notebooks in a native cluster, from the files of the role."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import inspect
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
from typing import Any

import jinja2
import yaml

from ansible.module_utils.slurmstead.jupyterhub import environment, profiles
from slurmstead.paths import ROOT
from tests.native import root
from tests.native.cluster import CONTROL, Cluster
from tests.native.program import program

ROLE = ROOT / "roles/jupyterhub"
PYTHONS = {"bookworm": "3.11.2", "trixie": "3.13.5"}
OWN = yaml.safe_load((ROLE / "vars/packages.yml").read_text())["__jupyterhub_packages"]
PACKAGES = tuple(name for name in OWN if name not in root.PACKAGES)

PLACES = {"hub": "/opt/slurmstead-jupyterhub", "kernel": "/opt/notebooks"}
"""Directories by lock; a native cluster has no share that outlives it."""

PROGRAMS = ("slurmstead_hub.py", "slurmstead_notebook.py")
SETTINGS = "/etc/slurmstead/jupyterhub"
STATE = "/var/lib/slurmstead-jupyterhub"

INSTALL = """
import pathlib
from ansible.module_utils.slurmstead.jupyterhub.environment import Environments
for name, (directory, digest) in {given!r}.items():
    wheels = pathlib.Path(directory, "wheels") if name == "kernel" else None
    one = Environments(pathlib.Path(directory), digest, wheels)
    one.install(pathlib.Path("/mnt", name + ".tar"), pathlib.Path("/mnt", name + ".txt").read_text())
    one.switch()
    if wheels:
        one.publish()
    assert not one.differences()
"""

SECRETS = """
import pathlib, sys
from ansible.module_utils.slurmstead.jupyterhub.certificate import Secrets
one = Secrets(pathlib.Path(sys.argv[1]), sys.argv[2:])
one.make()
assert not one.missing()
"""

SYSTEMD_RUN = """#!/bin/sh
slices=/run/slices
test -e $slices || { touch $slices; echo "Failed to start transient scope unit: as while a slice stops" >&2; exit 1; }
while test "${1#--}" != "$1"; do
    case $1 in --slice=*) slice=${1#*=} ;; esac
    shift
done
echo "$slice $*" >>$slices
exec "$@"
"""
"""In place of the real one, because a native cluster has no systemd: it writes down the slice; its first call fails."""

ANSWERS = """
import ssl, sys, urllib.request
urllib.request.urlopen(sys.argv[1], context=ssl.create_default_context(cafile=sys.argv[2]))
"""

FOUND = {
    "__jupyterhub_key": f"{SETTINGS}/hub.pem",
    "__jupyterhub_certificate": f"{SETTINGS}/hub.pem",
    "__jupyterhub_environment": {"path": f"{PLACES['hub']}/current"},
    "__jupyterhub_secrets": {"digest": "0123456789abcdef"},
}


def action() -> Any:
    """The action plugin, which fetches packages."""
    spec = importlib.util.spec_from_file_location(
        "jupyterhub_action", ROOT / "plugins/action/jupyterhub_environment.py"
    )
    assert spec and spec.loader
    module = sys.modules.setdefault(spec.name, importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    return module


def run(cluster: Cluster, text: str, *arguments: str, seconds: float = 120) -> str:
    """Run a program that imports our modules on control; return what it prints."""
    with tempfile.TemporaryDirectory() as place:
        main = pathlib.Path(place, "main_of_test.py")
        main.write_text(text)
        return cluster.run("python3", "-", *arguments, text=program(main), seconds=seconds)


CHROOT = """
set -e
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/layer,workdir=$2/work" "$2/root"
mount --bind "$2/given" "$2/root/mnt"
mount --rbind /dev "$2/root/dev"
chroot "$2/root" python3 - <"$2/given/program"
"""


def layer(release: str) -> pathlib.Path:
    """Return a directory with hub and notebooks for a release, as the role installs them; made once."""
    plugin = action()
    machine = plugin.locks.Machine(PYTHONS[release], os.uname().machine)
    wanted = {
        name: plugin.wanted((ROLE / f"files/{name}.txt").read_text(), machine, with_client=name == "kernel")
        for name in PLACES
    }
    packages = root.root(release, (*root.PACKAGES, *PACKAGES))
    recipe = "".join((packages.name, INSTALL, inspect.getsource(environment), *(one.digest for one in wanted.values())))
    name = f"notebooks-{release}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    directory = packages.parent / name
    with (packages.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            work = pathlib.Path(tempfile.mkdtemp(prefix=f".{name}.", dir=packages.parent))
            for one in ("layer", "work", "root", "given"):
                (work / one).mkdir()
            for one, packed in wanted.items():
                problem = packed.pack(work / "given" / f"{one}.tar")
                assert not problem, problem
                (work / "given" / f"{one}.txt").write_text(packed.text)
            given = {one: (PLACES[one], packed.digest) for one, packed in wanted.items()}
            (work / "given/main.py").write_text(INSTALL.format(given=given))
            (work / "given/program").write_text(program(work / "given/main.py"))
            private = ["unshare", *root.AS_ROOT[1:], "--mount"]
            subprocess.run([*private, "sh", "-c", CHROOT, "sh", str(packages), str(work)], check=True)
            (work / "layer").rename(directory)
            subprocess.run([*root.AS_ROOT, "rm", "-rf", str(work)], check=True)
    return directory


def rendered(name: str, **variables: Any) -> str:
    """Return a template of the role with these variables, others by their defaults."""
    environment = jinja2.Environment(keep_trailing_newline=True, trim_blocks=True)
    environment.filters |= {
        "comment": "# {}".format,
        "to_json": json.dumps,
        "notebook_profiles": lambda found, quiet: profiles.for_hub(found, quiet=quiet),
    }
    known: dict[str, Any] = {"ansible_managed": "managed"}
    for path in ("defaults/main.yml", "vars/main.yml"):
        known |= yaml.safe_load((ROLE / path).read_text())
    return environment.from_string((ROLE / "templates" / name).read_text()).render(**{**known, **variables})


def unit(text: str) -> tuple[list[str], list[str]]:
    """Return the environment and the command of a unit of systemd."""
    lines = [line.partition("=") for line in text.replace("\\\n", "").splitlines()]
    found = {key: value for key, _, value in lines}
    return shlex.split(found.get("Environment", "")), shlex.split(found["ExecStart"])


class Hub:
    """The hub and its proxy on control, as the units of the role run them; `variables` are those of the role."""

    def __init__(self, cluster: Cluster, **variables: Any) -> None:
        self.cluster = cluster
        self.address = cluster.addresses[CONTROL]
        self.url = f"https://{self.address}"
        known = {"jupyterhub_address": self.address, "jupyterhub_kernel_directory": PLACES["kernel"]}
        self.variables = {**known, **variables}

    def configure(self) -> None:
        """Write the files of the role."""
        pam = rendered("pam.j2", **self.variables)
        files = {
            f"{SETTINGS}/config.py": rendered("config.py.j2", **self.variables),
            **{f"{SETTINGS}/{name}": (ROLE / f"files/{name}").read_text() for name in PROGRAMS},
            f"{SETTINGS}/templates/invitation.html": (ROLE / "files/templates/invitation.html").read_text(),
            "/etc/pam.d/slurmstead-jupyterhub": pam,
            "/usr/local/bin/systemd-run": SYSTEMD_RUN,
        }
        for path, text in files.items():
            self.cluster.run("sh", "-c", 'mkdir -p "${0%/*}" && cat >"$0"', path, text=text)
        self.cluster.run("chmod", "755", "/usr/local/bin/systemd-run")
        self.cluster.run("install", "-d", "-m", "700", STATE, f"{STATE}/invitations")
        run(self.cluster, SECRETS, SETTINGS, CONTROL, self.address)

    def start_proxy(self) -> None:
        """Start the proxy."""
        self._start("proxy.service.j2", "proxy")

    def start(self) -> None:
        """Start the hub; returns when it answers."""
        self._start("hub.service.j2", "hub")
        ask = ("python3", "-c", ANSWERS, f"{self.url}/hub/health", f"{SETTINGS}/authority.crt")
        self.cluster.wait_for(lambda: self.cluster.tried(*ask).returncode == 0, 300, "the hub answers")

    def stop(self, signal: str = "TERM") -> None:
        """End the hub, not its proxy."""
        self.cluster.run("pkill", f"-{signal}", "-f", "bin/jupyterhu[b] --config")
        self.cluster.wait_for(
            lambda: not self.cluster.tried("pgrep", "-f", "bin/jupyterhu[b] --config").stdout, 60, "ends"
        )

    def log(self) -> str:
        """Return the end of the hub's log."""
        return self.cluster.tried("tail", "-n", "40", "/var/log/hub", "/var/log/proxy").stdout

    def _start(self, template: str, name: str) -> None:
        """Start a unit as systemd does, with its environment and its credentials."""
        environment, command = unit(rendered(template, **self.variables, **FOUND))
        line = shlex.join(
            word.replace("${CREDENTIALS_DIRECTORY}", "/run/credentials") for word in ("env", *environment, *command)
        )
        script = f"""
            mkdir -p /run/credentials
            for file in key certificate; do ln -sf {SETTINGS}/hub.pem /run/credentials/$file; done
            set -a; . {SETTINGS}/proxy.env; set +a
            cd /; setsid {line} >>/var/log/{name} 2>&1 </dev/null &
        """
        self.cluster.run("sh", "-c", script)
