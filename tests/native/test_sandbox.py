"""Jobs in images: a root file system of their own, with the real slurmstepd, crun and fuse-overlayfs.

An image is the machine's own root file system, mounted again: all packages are in it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from slurmstead.paths import ROOT
from tests.native.cluster import ENVIRONMENT, Cluster
from tests.native.sandbox import BUNDLE, BUNDLES, HOME, LOG, gone, inside, started

SWAP = """
import glob, os, sys
while not (found := glob.glob(sys.argv[1])):
    pass
path = found[0].removesuffix(sys.argv[2])
os.rename(path, path + ".moved")
os.symlink(sys.argv[3], path)
"""
SWAPPED = {
    # Between write(2) and chmod(2) of slurmstepd, which is root.
    "bookworm": ("config.json", "", "/etc/private/config.json"),
    # Before slurmstepd removes the task's directory as root.
    "trixie": ("task-0/config.json", "/config.json", "/etc/private"),
}
"""What a user replaces by a symbolic link to what, while a task starts or runs."""


@pytest.fixture(scope="module")
def worker(release: str) -> Iterator[Cluster]:
    """A cluster of one worker that runs jobs in images; a test leaves it idle."""
    with started(release) as cluster:
        yield cluster


def test_a_job_has_a_root_file_system_of_its_own(worker: Cluster) -> None:
    done = inside(
        worker,
        "set -e; id -un; pwd; echo $FROM_IMAGE $PATH; ls /share/home; cat /proc/self/mountinfo | grep -c ' / / '; "
        "echo changed >/usr/share/mark; rm /usr/bin/rsync; cat /usr/share/mark; ! command -v rsync; "
        "echo kept >kept; touch /tmp/here $SCRATCH/here; exit 7",
    )

    assert done.stdout.splitlines() == ["alice", HOME, "yes /opt/image:/usr/bin:/bin", "alice", "1", "changed"]
    assert done.returncode == 7, done.stderr
    assert worker.run("cat", f"{HOME}/kept") == "kept"
    assert worker.tried("cat", "/usr/share/mark", on="node1").returncode == 1
    worker.run("test", "-e", "/usr/bin/rsync", on="node1")
    worker.wait_for(lambda: gone(worker), 60, "nothing is left on scratch")


def test_nothing_of_others_is_seen(worker: Cluster) -> None:
    done = inside(
        worker,
        "ls /share/home/bob /share/images /run/munge /sys/fs/cgroup/* /dev/fuse; ps -e -o comm= | grep slurm; "
        "ls /proc | grep -c '^[0-9]'; ls /sys/class/net /scratch; cat /proc/net/dev | grep -c eth; "
        "grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status",
    )

    assert "secret" not in done.stdout
    assert "slurm" not in done.stdout.partition("job-")[0]
    assert "CapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2" in done.stdout
    assert "No such file" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "attempt",
    [
        pytest.param("mount -t tmpfs x /mnt", id="mount"),
        pytest.param("unshare --user --map-root-user true", id="user namespace"),
        pytest.param("nsenter --target 1 --mount true", id="namespace of another"),
        pytest.param("cat /share/home/bob/secret", id="home of another"),
        pytest.param("ls /proc/1/root/share/home/bob", id="root of process 1"),
        pytest.param("munge -n", id="MUNGE"),
        pytest.param("sinfo", id="slurmctld"),
        pytest.param("python3 -c 'import socket; socket.create_connection((\"10.1.0.1\", 6817), 2)'", id="network"),
        pytest.param("python3 -c 'import socket; socket.socket(socket.AF_VSOCK)'", id="host of a virtual machine"),
        pytest.param("python3 -c 'import socket; socket.socket(socket.AF_ALG)'", id="cryptography of the kernel"),
        pytest.param("mknod /tmp/disk b 8 0", id="disk"),
        pytest.param("cat /dev/mem", id="memory"),
        pytest.param("cat /dev/kmsg", id="log of the kernel"),
        pytest.param("echo 1 >/proc/sys/kernel/panic", id="settings of the kernel"),
        pytest.param("echo b >/proc/sysrq-trigger", id="sysrq"),
        pytest.param("python3 -c 'import os; os.setuid(0)'", id="root"),
        pytest.param("/usr/sbin/chroot / true", id="chroot"),
        pytest.param("cat /scratch/job-*/.sandbox/*/config.json", id="own configuration"),
    ],
)
def test_a_way_out_is_closed(worker: Cluster, attempt: str) -> None:
    # The shell's own exit code, with which it would say that a program is missing, is no refusal.
    done = inside(worker, f"trap '' TERM; {attempt}; code=$?; test $code = 127 && echo missing; exit $code")

    assert done.returncode != 0
    assert "missing" not in done.stdout
    assert "secret" not in done.stdout


def test_a_bundle_of_the_users_own_is_refused(worker: Cluster) -> None:
    worker.run("sh", "-c", "mkdir -p own/rootfs && cat >own/config.json", text=BUNDLE, user="alice")

    done = worker.tried("srun", f"--container={HOME}/own", "id", user="alice")

    assert "own/rootfs is not an image. The images are the directories of /share/images." in done.stderr
    assert done.returncode != 0 and not done.stdout


def test_a_bundle_of_the_users_own_shows_nothing_of_the_machine(worker: Cluster) -> None:
    worker.run("srun", "--mem=10", "ln", "-sfn", "/", "/tmp/slurm_script", user="alice")
    sources = ("/", f"{HOME}/own", "/tmp/slurm_script")
    mounts = [{"destination": "/tmp/slurm/startup", "type": "bind", "source": source} for source in sources]
    own = {**json.loads(BUNDLE), "root": {"path": "/share/images/plain/rootfs"}, "mounts": mounts}
    worker.run("sh", "-c", "mkdir -p own && cat >own/config.json", text=json.dumps(own), user="alice")

    done = worker.tried("srun", "--mem=100", f"--container={HOME}/own", "ls", "/tmp/slurm/startup", user="alice")

    # Slurm 22.05 refuses the bundle.
    assert done.returncode != 0 and not done.stdout


def test_a_link_does_not_lead_slurmstepd_out_of_its_directory(worker: Cluster) -> None:
    worker.run("install", "-d", "-m", "0700", "/etc/private", on="node1")
    worker.run("install", "-m", "0600", "/dev/null", "/etc/private/config.json", on="node1")
    # Writing a large one takes milliseconds.
    large = {
        **json.loads(BUNDLE),
        "root": {"path": "/share/images/plain/rootfs"},
        "annotations": {"x": "y" * 8_000_000},
    }
    worker.run("sh", "-c", "mkdir -p own && cat >own/config.json", text=json.dumps(large), user="alice")
    name, *how = SWAPPED[worker.release]
    words = worker.command("python3", "-c", SWAP, f"{BUNDLES}/*/{name}", *how, user="alice", on="node1")

    # On a busy computer the link may come too late: then slurmstepd does not meet it.
    for _ in range(10):
        with subprocess.Popen(words, env=ENVIRONMENT) as swap:
            worker.tried("srun", "--mem=100", f"--container={HOME}/own", "sleep", "2", user="alice")
        worker.wait_for(lambda: gone(worker), 60, "nothing is left")
        if "Too many levels of symbolic links" in worker.run("cat", LOG, on="node1"):
            break

    assert swap.returncode == 0, "the link was there"
    assert worker.run("stat", "--format=%U %G %a", "/etc/private/config.json", on="node1") == "root root 600"
    assert "Too many levels of symbolic links" in worker.run("cat", LOG, on="node1")


def test_a_fifo_of_a_user_does_not_block_a_worker(worker: Cluster) -> None:
    text = (ROOT / "roles/slurmd/files/health_check.py").read_text()
    assert "\nSTUCK_SECONDS = 60\n" in text
    text = text.replace("STUCK_SECONDS = 60", "STUCK_SECONDS = 1").replace(
        "/sys/devices/system/cpu/online", "/tmp/online"
    )
    worker.run("tee", "/tmp/health-check", on="node1", text=text)
    # The node declares more CPUs than this computer may have.
    worker.run("tee", "/tmp/online", on="node1", text="0-3\n")
    worker.run("sh", "-c", "mkdir -p fifo && mkfifo fifo/config.json", user="alice")
    words = worker.command("srun", "--mem=100", f"--container={HOME}/fifo", "true", user="alice")
    with subprocess.Popen(words, env=ENVIRONMENT, stderr=subprocess.DEVNULL):
        begun = ("pgrep", "--full", r"^slurmstepd: \[[0-9]+\.0\]")
        worker.wait_for(lambda: worker.tried(*begun, on="node1").stdout, 60, "the step begins")
        worker.run("scancel", "--user=alice")
        worker.wait_for(lambda: worker.run("squeue", "--noheader", "--states=COMPLETING"), 60, "the job cannot end")

        def look() -> bool:
            check = ("env", "-i", "SLURMD_NODENAME=node1", "python3", "-IS", "/tmp/health-check")
            return "waits for a FIFO" in worker.tried(*check, on="node1").stdout

        worker.wait_for(look, 60, "the health check ends it")

    worker.wait_for(lambda: gone(worker), 60, "the job has ended")
    assert worker.run("srun", "--mem=100", "id", "-un", user="bob") == "bob"


@pytest.mark.slow
def test_the_network_is_there_where_it_is_allowed(worker: Cluster) -> None:
    done = inside(worker, "exec 3<>/dev/tcp/10.1.0.1/6817 || exit 1", "online")
    bash = worker.tried(
        *("srun", "--container=/share/images/online", "bash", "-c", "exec 3<>/dev/tcp/control/6817 && echo connected"),
        user="alice",
    )

    assert done.returncode != 0, "sh has no /dev/tcp"
    assert bash.stdout == "connected\n", bash.stderr


@pytest.mark.slow
def test_declared_directories_are_shown(worker: Cluster) -> None:
    done = inside(worker, "touch /share/data/from-job && ls /share")

    assert done.stdout.split() == ["data", "home"], done.stderr
    worker.run("test", "-O", "/share/data/from-job", user="alice")


@pytest.mark.slow
def test_a_batch_job_gets_its_signals(worker: Cluster) -> None:
    script = "#!/bin/sh\ntrap 'echo got it; exit 3' USR1\necho in $(cat /proc/1/comm)\nsleep 60 &\nwait\n"
    worker.run("tee", f"{HOME}/job.sh", text=script)

    number = worker.run(
        *("sbatch", "--parsable", "--mem=100", f"--output={HOME}/said", "--container=/share/images/plain", "job.sh"),
        user="alice",
    )
    worker.wait_for(lambda: "in " in worker.tried("cat", f"{HOME}/said").stdout, 60, "the job has started")
    worker.run("scancel", "--batch", "--signal=USR1", number)

    worker.wait_for(lambda: gone(worker), 60, "the job has ended")
    assert worker.run("cat", f"{HOME}/said").splitlines() == ["in startup", "got it"]


@pytest.mark.slow
def test_a_cancelled_job_leaves_no_process(worker: Cluster) -> None:
    number = worker.run(
        *("sbatch", "--parsable", "--mem=100", f"--output={HOME}/end", "--container=/share/images/plain"),
        *("--wrap", "setsid sleep 987 & trap '' TERM; echo up; sleep 987"),
        user="alice",
    )
    worker.wait_for(lambda: "up" in worker.tried("cat", f"{HOME}/end").stdout, 60, "the job has started")
    worker.run("scancel", number)

    worker.wait_for(lambda: gone(worker), 90, "the job has ended")
    left = worker.run("ps", "-e", "-o", "user=,args=", on="node1")
    assert "alice" not in left and "987" not in left and "fuse-overlayfs" not in left


@pytest.mark.slow
def test_no_file_of_slurmstepd_is_left_open(worker: Cluster) -> None:
    done = inside(worker, "python3 -c 'import os; print(*sorted(os.listdir(\"/proc/self/fd\")))'")

    assert done.stdout.split() == ["0", "1", "2", "3"], "3 is the directory that is listed"


@pytest.mark.slow
def test_a_full_disk_is_scratch_and_ends_with_the_job(worker: Cluster) -> None:
    script = "dd if=/dev/zero of=/var/full bs=1M 2>&1 | grep -o 'No space left'; echo full; sleep 300"
    number = worker.run(
        *("sbatch", "--parsable", "--mem=100", f"--output={HOME}/disk", "--container=/share/images/plain"),
        *("--wrap", script),
        user="alice",
    )
    worker.wait_for(lambda: "full" in worker.tried("cat", f"{HOME}/disk").stdout, 120, "scratch is full")
    other = worker.run(
        "srun", "--mem=100", "sh", "-c", "echo mine >/tmp/mine; cat /tmp/mine; df /tmp /scratch", user="bob"
    )
    worker.run("scancel", number)

    assert worker.run("cat", f"{HOME}/disk").startswith("No space left")
    assert other.startswith("mine\n") and " 100% /scratch" in other
    worker.wait_for(lambda: gone(worker), 60, "nothing is left on scratch")


@pytest.mark.slow
def test_a_fork_bomb_stays_in_its_task(worker: Cluster) -> None:
    done = inside(worker, "for i in $(seq 400); do sleep 5 & done; echo never", seconds=90)
    other = worker.run(
        "srun", "--mem=100", "sh", "-c", "for i in $(seq 50); do sleep 1 & done; wait; echo fine", user="bob"
    )

    assert "never" not in done.stdout and "fork" in done.stderr.lower()
    assert other == "fine"
