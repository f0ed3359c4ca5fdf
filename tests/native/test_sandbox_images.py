"""Archives become images, with the real skopeo and umoci, and jobs run in them."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

from ansible.module_utils.slurmstead.reach import remote_call
from tests.native import root
from tests.native.cluster import Cluster
from tests.native.sandbox import BUNDLE, HOME, inside, started

pytestmark = pytest.mark.slow

STORE = "/share/images"

LAYER = """
mkdir -p /tmp/layer && cd /tmp/layer
for path in bin lib lib64; do mkdir -p usr/$path && ln -s usr/$path $path; done
for file in /usr/bin/dash /usr/bin/id /usr/bin/cat $(ldd /usr/bin/id /usr/bin/dash | grep -o '/[^ :]*'); do
    cp --parents -L "$(realpath -m "$file")" . && cp -L "$file" ".$file"
done
ln -s dash usr/bin/sh
mkdir -p etc home/own && echo 'root:x:0:0::/:/bin/sh' >etc/passwd
cp usr/bin/id usr/bin/setuid && chmod 4755 usr/bin/setuid
echo open >home/own/file && chmod 0666 home/own/file && chown -R 2001:2001 home/own
"""
"""A layer with a shell, a setuid program, and a file that would belong to alice."""

ARCHIVE = """
import gzip, hashlib, io, json, subprocess, tarfile

blobs = {}
def blob(content, kind):
    digest = hashlib.sha256(content).hexdigest()
    blobs[digest] = content
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

layer = subprocess.run(["tar", "--create", "--directory=/tmp/layer", "."], capture_output=True, check=True).stdout
second = io.BytesIO()
with tarfile.open(fileobj=second, mode="w") as packed:
    packed.addfile(tarfile.TarInfo("usr/bin/.wh.cat"))
layers = [layer, second.getvalue()]
architecture = {"x86_64": "amd64", "aarch64": "arm64"}[__import__("platform").machine()]
config = blob(json.dumps({
    "architecture": architecture, "os": "linux",
    "config": {"Env": ["PATH=/usr/bin:/bin", "FROM_ARCHIVE=yes", "HOME=/root"], "Cmd": ["sh"]},
    "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(one).hexdigest() for one in layers]},
}).encode(), "config.v1+json")
manifest = blob(json.dumps({
    "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
    "layers": [blob(gzip.compress(one), "layer.v1.tar+gzip") for one in layers],
}).encode(), "manifest.v1+json")
index = json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()
files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": index}
files |= {f"blobs/sha256/{digest}": content for digest, content in blobs.items()}

def pack(path, files):
    with tarfile.open(path, "w") as packed:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))

pack("/tmp/archive.tar", files)
pack("/tmp/given.tar", {"archive.tar": open("/tmp/archive.tar", "rb").read()})
"""


def call(cluster: Cluster, module: str, function: str, **arguments: Any) -> Any:
    """Call a function of the room on control, and return what it returns."""
    program = remote_call.program(f"sandbox.{module}", function, arguments)
    return json.loads(cluster.run("python3", "-IS", "-", text=program).splitlines()[-1])


@pytest.fixture(scope="module")
def imported(release: str) -> Iterator[Cluster]:
    """A cluster with the image `small`, from an archive."""
    with started(release, (*root.SANDBOX, "skopeo", "umoci")) as cluster:
        cluster.run("sh", "-euc", LAYER)
        cluster.run("python3", "-", text=textwrap.dedent(ARCHIVE))
        call(cluster, "building", "build", directory=STORE, name="small", given="/tmp/given.tar", archive="small.tar")
        yield cluster


def test_a_job_runs_in_an_imported_archive(imported: Cluster) -> None:
    done = inside(imported, "echo $FROM_ARCHIVE $HOME; id -un; command -v cat || echo removed", "small")

    assert done.stdout.splitlines() == [f"yes {HOME}", "alice", "removed"], done.stderr


def test_its_files_are_roots_and_no_program_is_setuid(imported: Cluster) -> None:
    words = ("(", "-perm", "/6022", "-o", "!", "-user", "0", ")", "!", "-type", "l")
    wrong = imported.run("find", f"{STORE}/small", *words)

    assert wrong == ""
    assert imported.tried("sh", "-c", f"echo x >{STORE}/small/rootfs/home/own/file", user="alice").returncode != 0
    assert imported.run("ls", "-A", STORE, user="alice").split() == [".lock", "online", "plain", "small"]


def test_running_and_waiting_jobs_use_their_image(imported: Cluster) -> None:
    submit = ("sbatch", "--parsable", "--mem=100", "--output=/dev/null")
    running = imported.run(*submit, f"--container={STORE}/plain", "--wrap=sleep 300", user="alice")
    waiting = imported.run(*submit, "--hold", "--container=../../images/small", "--wrap=true", user="alice")
    imported.run("mkdir", "bundle", user="alice")
    imported.run("tee", "bundle/config.json", text=BUNDLE.replace("rootfs", f"{STORE}/plain/rootfs"), user="alice")
    own = imported.run(*submit, "--container=bundle", "--wrap=sleep 300", user="alice")
    imported.wait_for(lambda: imported.run("squeue", "-h", "-t", "R", "-o", "%i").split() == [running, own], 60, "run")

    shown = {f"{kind}s": imported.run("scontrol", "--oneliner", "show", kind) for kind in ("job", "step")}
    used = call(imported, "images", "users", **shown, images=STORE)
    imported.run("scancel", running, waiting, own)
    imported.wait_for(lambda: not imported.run("squeue", "--noheader"), 60, "the jobs have ended")
    after = {f"{kind}s": imported.run("scontrol", "--oneliner", "show", kind) for kind in ("job", "step")}

    assert used == {"*": [own], "plain": [running], "small": [waiting]}
    assert call(imported, "images", "users", **after, images=STORE) == {}
