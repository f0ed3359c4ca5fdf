"""A head node, a controller, a disk or a home that is not there: it is said, and what was submitted stays."""

from __future__ import annotations

import os
import time
from typing import Any

SQUARE = "print(7 ** 2)\n"


def refusal(cluster: Any, *arguments: object, code: int, **variables: str) -> tuple[str, float]:
    """Return what a command ends with, and after how many seconds.

    The start of Python is left out: this computer emulates four others, and needs seconds for it.
    """
    started = time.monotonic()
    cluster.stead("--help")
    began = time.monotonic()
    said = cluster.stead(*arguments, code=code, **variables)
    took = time.monotonic() - began
    print(f"said after {took:.1f} s, of which {began - started:.1f} s are the start of Python: {said}")
    return said, took - (began - started)


def test_a_head_node_that_is_off_is_named_within_ten_seconds(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": SQUARE})
    config = cluster.directory / "ssh_config"
    # 192.0.2.0/24 is for documentation (RFC 5737): nobody answers there. Port 9 of loopback is closed.
    config.write_text("Host off\n  HostName 192.0.2.1\nHost closed\n  HostName 127.0.0.1\n  Port 9\n")
    for host in ("off", "closed"):
        said, took = refusal(cluster, "submit", folder, "--head", host, "--ssh-config", config, code=3)
        assert took < 10
        assert f"{host} did not answer" in said


def test_a_user_without_a_home_is_told_so_and_nothing_is_submitted(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": SQUARE})
    before = set(cluster.submissions())
    cluster.root("sed -i 's#:/share/home/alice:#:/share/home/nobodys:#' /etc/passwd")
    try:
        said, took = refusal(cluster, "submit", folder, code=4, STEAD_DIRECTORY="")
    finally:
        cluster.root("sed -i 's#:/share/home/nobodys:#:/share/home/alice:#' /etc/passwd")
    assert took < 30
    assert "alice has no home" in said
    assert "/share/home/nobodys does not exist" in said
    assert set(cluster.submissions()) <= before


def test_a_full_disk_is_said_and_nothing_is_left(cluster: Any) -> None:
    folder = cluster.project("big", {"main.py": SQUARE})
    (folder / "big").write_bytes(os.urandom(24 * 2**20))
    small = f"/var/tmp/stead-{time.time_ns()}"
    before = set(cluster.submissions())
    owner = "uid=$(id -u alice),gid=$(id -g alice)"
    cluster.root(f"mkdir {small} && mount -t tmpfs -o size=16m,mode=0700,{owner} none {small}")
    try:
        said = cluster.stead("submit", folder, code=4, STEAD_DIRECTORY=small)
        assert "the disk is full" in said
        assert cluster.user(f"ls {small}/runs") == ""
        assert set(cluster.submissions()) <= before
        # To the last block, so that not even what the head node writes for itself has room.
        (folder / "big").unlink()
        cluster.user(f"dd if=/dev/zero of={small}/fill bs=4k 2>/dev/null || true")
        said = cluster.stead("submit", folder, code=4, STEAD_DIRECTORY=small)
        assert "the disk is full" in said
        assert set(cluster.submissions()) <= before
    finally:
        cluster.root(f"umount {small} && rmdir {small}")


def test_a_controller_that_is_down_is_named_within_ten_seconds_and_the_command_carries_on(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": SQUARE})
    done = cluster.run_of(cluster.stead("submit", folder, "--wait"))
    cluster.root(cluster.stop_controller)
    try:
        said, took = refusal(cluster, "submit", folder, code=3)
        assert took < 10
        assert "slurmctld does not answer" in said
        # Results are on the share, and need no controller.
        cluster.stead("fetch", done)
    finally:
        cluster.root(cluster.start_controller)
    cluster.user("until scontrol ping | grep -q 'is UP'; do sleep 1; done")
    run = cluster.run_of(cluster.stead("submit", folder, "--wait"))
    assert cluster.stead("logs", run) == "49\n"


def test_a_head_node_that_loses_its_power_loses_no_job(cluster: Any) -> None:
    """Tasks run, others wait, and a client waits for both: it needs no hand."""
    main = "import os, time\ntime.sleep(20)\nprint(os.environ['STEAD_TASK'])\n"
    folder = cluster.project("slow", {"main.py": main})
    with cluster.start("submit", folder, "--array", "0-11", "--mem", "100M", "--wait") as client:
        try:
            run = cluster.run_of(client.stdout.readline())
            cluster.user("until squeue --me --noheader --states=running | grep -q .; do sleep 1; done")
            # Slurm writes down within 5 s that a job has started.
            time.sleep(10)
            cluster.cut_power()
            cut = time.monotonic()
            cluster.boot()
            print(f"booted {time.monotonic() - cut:.0f} s after the cut")
            out, words = client.communicate(timeout=900)
        finally:
            client.kill()
    print(f"ended {time.monotonic() - cut:.0f} s after the cut with {client.returncode}:\n{out}{words}")
    assert client.returncode == 0
    assert "retrying" in words
    cluster.stead("fetch", run)

    tasks = cluster.results(run) / "tasks"
    assert [(tasks / str(task) / "stdout").read_text() for task in range(12)] == [f"{task}\n" for task in range(12)]
    cluster.check_single(run)
