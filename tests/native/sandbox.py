"""A native cluster whose jobs can run in images."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence

import jinja2

from slurmstead.paths import ROOT
from tests.native import root
from tests.native.cluster import Cluster
from tests.native.conf import PARTITIONS

LIB = "/usr/local/lib/slurmstead"
PROGRAM = "/usr/local/libexec/slurmstead/sandbox"
BUNDLES = "/run/slurmstead-oci"
LOG = "/var/log/slurmd.log"
HOME = "/share/home/alice"
SETTINGS = """{"images": "/share/images", "scratch": "/scratch", "network": false, "network_images": ["online"],
"paths": ["/share/data"], "processes": 300}"""
BUNDLE = """{"ociVersion": "1.0.0", "root": {"path": "rootfs"},
"process": {"args": ["sh"], "cwd": "/", "env": ["PATH=/opt/image:/usr/bin:/bin", "FROM_IMAGE=yes"]}}"""

PREPARE = f"""
mkdir -p {LIB}/prolog.d {LIB}/epilog.d {PROGRAM.rpartition("/")[0]} /etc/slurmstead /scratch
mount -t tmpfs -o mode=0711,size=64m scratch /scratch
echo scratch_path=/scratch >/etc/default/slurmstead-scratch
echo scratch_is_mounted=yes >>/etc/default/slurmstead-scratch
for image in plain online; do mount -o bind,ro / /share/images/$image/rootfs; done
mknod -m 0666 /run/fuse c 10 229
mount --bind /run/fuse /dev/fuse
mount -t cgroup2 cgroup2 /sys/fs/cgroup
"""
"""A worker with scratch. crun wants to see control groups, and any user may open /dev/fuse of a machine with udev."""

SHARE = f"""
for image in plain online; do
    mkdir -p /share/images/$image/rootfs
    cp /dev/stdin /share/images/$image/config.json <<.
{BUNDLE}
.
done
mkdir -p /share/data
chmod 1777 /share/data
chmod 0700 /share/home/*
echo secret >/share/home/bob/secret
"""


def installed() -> str:
    """Return the program as the role installs it."""
    code = "import sys; sys.path.insert(0, 'plugins/filter'); import slurmstead as f; "
    code += "print(f.standalone_program('sandbox.program'), end='')"
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def oci_conf(version: str) -> str:
    """Return oci.conf as the role publishes it for a version of Slurm."""
    text = (ROOT / "roles/slurmctld/templates/oci.conf.j2").read_text().partition("\n")[2]
    return jinja2.Template(text).render(ansible_facts={"slurm_version": version})


def bundles() -> str:
    """Return the options with which the role mounts the directories of tasks."""
    text = (ROOT / "roles/sandbox/templates/bundles.mount.j2").read_text()
    return text.partition("Options=")[2].strip()


@contextlib.contextmanager
def started(release: str, packages: Sequence[str] = root.SANDBOX, partitions: str = PARTITIONS) -> Iterator[Cluster]:
    """A cluster of one worker that runs jobs in images."""
    keys = {"Prolog": f"{LIB}/prolog", "Epilog": f"{LIB}/epilog", "SlurmdLogFile": LOG}
    with Cluster(release, 1, keys, packages=packages, partitions=partitions) as cluster:
        cluster.run("sh", "-euc", SHARE)
        cluster.run("sh", "-euc", PREPARE, on="node1")
        cluster.run("mkdir", BUNDLES, on="node1")
        cluster.run("mount", "-t", "tmpfs", "-o", bundles(), "slurmstead-oci", BUNDLES, on="node1")
        for name, text in (
            (f"{LIB}/prolog", (ROOT / "roles/scratch/files/prolog").read_text()),
            (f"{LIB}/epilog", (ROOT / "roles/scratch/files/epilog").read_text()),
            (PROGRAM, installed()),
            ("/etc/slurmstead/sandbox.json", SETTINGS),
        ):
            cluster.run("tee", name, on="node1", text=text)
            cluster.run("chmod", "0755", name, on="node1")
        cluster.run("tee", "/etc/slurm/oci.conf", text=oci_conf(cluster.version))
        # No daemon is restarted for it (conf/needs.py).
        cluster.run("scontrol", "reconfigure")
        there = ("test", "-e", "/run/slurm/conf/oci.conf")
        cluster.wait_for(lambda: cluster.tried(*there, on="node1").returncode == 0, 60, "slurmd has oci.conf")
        cluster.wait_until_idle()
        yield cluster


def inside(
    cluster: Cluster, script: str, image: str = "plain", seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a script as alice in an image."""
    words = ("srun", "--mem=100", f"--container=/share/images/{image}", "sh", "-c", script)
    return cluster.tried(*words, user="alice", seconds=seconds)


def gone(cluster: Cluster) -> bool:
    """Say whether no job and no directory of one is left."""
    left = cluster.tried("find", "/scratch", BUNDLES, "-mindepth", "1", on="node1")
    return not cluster.run("squeue", "--noheader") and not left.stdout + left.stderr
