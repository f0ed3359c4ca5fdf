"""Killed clients, cut connections, a controller that is down, a full disk: no job is lost or doubled."""

from __future__ import annotations

import os
import random
import time
from typing import Any

import pytest

SEED = int(os.environ.get("STEAD_SEED") or time.time())
"""Decides when clients are killed; STEAD_SEED repeats a run."""

SQUARE = "import os\nprint(int(os.environ.get('STEAD_TASK', 7)) ** 2)\n"

BIG = 64 * 2**20
"""Bytes of a file whose transfer can be met half-way."""


def big_project(cluster: Any, name: str) -> Any:
    folder = cluster.project(name, {"main.py": "import os\nprint(os.path.getsize('big'))\n"})
    (folder / "big").write_bytes(random.Random(SEED).randbytes(BIG))
    return folder


def test_a_client_killed_at_any_moment_loses_and_doubles_nothing(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": SQUARE})
    cluster.stead("submit", folder, "--wait")
    chosen = random.Random(SEED)
    started = time.monotonic()
    first = cluster.run_of(cluster.stead("submit", folder))
    takes = time.monotonic() - started
    runs = [*cluster.jobs()]
    assert first in runs
    for number in range(12):
        moment = chosen.uniform(0.2, takes)
        with cluster.start("submit", folder, "--name", f"killed{number}") as client:
            time.sleep(moment)
            client.kill()
            out, _ = client.communicate()
        print(f"STEAD_SEED={SEED}: killed after {moment:.2f} s of {takes:.2f}, it had said {out!r}")
        # One whose line was printed had ended its work but for its own exit: what follows is then a run of its own.
        before = {cluster.run_of(out)} if "results:" in out else set()
        after = cluster.run_of(cluster.stead("submit", folder, "--name", f"killed{number}"))
        cluster.check_single(after, *before)
        runs += sorted({after, *before})
    for run in runs:
        assert cluster.wait(run)["state"] == "completed"
    assert sorted(cluster.jobs()) == sorted(runs)


def test_a_client_killed_while_it_waits_finds_its_run_again(cluster: Any) -> None:
    folder = cluster.project("slow", {"main.py": "import time; time.sleep(8)"})
    with cluster.start("submit", folder, "--wait") as client:
        assert client.stdout.readline().startswith("job ")
        client.kill()
        client.communicate()
    said = cluster.stead("submit", folder, "--wait")

    assert "submitted before this call" in said
    assert "completed" in said
    assert [*cluster.jobs()] == [cluster.run_of(said)]


def test_an_array_of_five_hundred_is_single_although_its_client_is_killed(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": SQUARE})
    command = ("submit", folder, "--array", "0-499", "--mem", "50M", "--wait")
    with cluster.start(*command) as client:
        for line in client.stdout:
            if "completed" in line:
                break
        client.kill()
        client.communicate()
    run = cluster.run_of(cluster.stead(*command, seconds=1500))
    with cluster.start("fetch", run) as fetching:
        time.sleep(2)
        fetching.kill()
        fetching.communicate()
    cluster.stead("fetch", run)

    tasks = cluster.directory / "stead-results" / run / "tasks"
    assert [(tasks / str(n) / "stdout").read_text() for n in range(500)] == [f"{n * n}\n" for n in range(500)]
    cluster.check_single(run)


def test_a_copy_that_was_cut_goes_on(cluster: Any) -> None:
    folder = big_project(cluster, "big")
    target = f"{cluster.variables['STEAD_DIRECTORY']}/runs/*/input"
    with cluster.start("submit", folder) as client:
        deadline = time.monotonic() + 60
        while "big" not in cluster.user(f"ls -A {target} 2>/dev/null || true"):
            assert time.monotonic() < deadline, "the copy did not begin"
            time.sleep(0.02)
        cluster.cut()
        _, words = client.communicate(timeout=60)
    if client.returncode == 0:
        pytest.fail("the cut came too late: the copy is too fast for this test")
    assert client.returncode == 3, words
    assert "The same command carries on" in words
    run = cluster.run_of(cluster.stead("submit", folder, "--wait"))

    assert cluster.stead("logs", run) == f"{BIG}\n"
    assert [*cluster.jobs()] == [run]


def test_a_fetch_that_was_cut_goes_on_and_is_verified(cluster: Any) -> None:
    write = (
        f"import random\nopen('big', 'wb').write(random.Random(1).randbytes({BIG}))\nopen('small', 'w').write('x')\n"
    )
    folder = cluster.project("writes", {"main.py": write})
    run = cluster.run_of(cluster.stead("submit", folder, "--wait"))
    place = cluster.directory / "stead-results" / run
    with cluster.start("fetch", run) as client:
        deadline = time.monotonic() + 60
        while not list(place.rglob(".big*")) + list(place.rglob("big")):
            assert time.monotonic() < deadline, "the copy did not begin"
            time.sleep(0.01)
        cluster.cut()
        _, words = client.communicate(timeout=60)
    assert client.returncode in (0, 3), words
    cluster.stead("fetch", run)

    assert (place / "work/big").read_bytes() == random.Random(1).randbytes(BIG)
    assert "0 files fetched" in cluster.stead("fetch", run)


def test_a_controller_that_is_down_is_named_within_ten_seconds_and_the_command_carries_on(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": SQUARE})
    done = cluster.run_of(cluster.stead("submit", folder, "--wait"))
    cluster.root(cluster.stop_controller)
    try:
        started = time.monotonic()
        said = cluster.stead("submit", folder, code=3)
        assert time.monotonic() - started < 10
        assert "slurmctld does not answer" in said
        # Results are on the share, and need no controller.
        cluster.stead("fetch", done)
    finally:
        cluster.root(cluster.start_controller)
    time.sleep(5)
    run = cluster.run_of(cluster.stead("submit", folder, "--wait"))
    assert cluster.stead("logs", run) == "49\n"


def test_a_head_node_that_is_off_is_named_within_ten_seconds(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": SQUARE})
    config = cluster.directory / "ssh_config"
    # 192.0.2.0/24 is for documentation (RFC 5737): nobody answers there. Port 9 of loopback is closed.
    config.write_text("Host off\n  HostName 192.0.2.1\nHost closed\n  HostName 127.0.0.1\n  Port 9\n")
    for host in ("off", "closed"):
        started = time.monotonic()
        said = cluster.stead("submit", folder, "--head", host, "--ssh-config", config, code=3)
        assert time.monotonic() - started < 10
        assert f"{host} did not answer" in said


def test_a_full_disk_is_said_and_nothing_is_left(cluster: Any) -> None:
    folder = big_project(cluster, "big")
    small = f"/var/tmp/stead-{time.time_ns()}"
    before = cluster.submissions()
    owner = "uid=$(id -u alice),gid=$(id -g alice)"
    cluster.root(f"mkdir {small} && mount -t tmpfs -o size=16m,mode=0700,{owner} none {small}")
    try:
        said = cluster.stead("submit", folder, code=4, STEAD_DIRECTORY=small)
        assert "the disk is full" in said
        assert cluster.user(f"ls {small}/runs") == ""
        assert cluster.submissions() == before
        # To the last block, so that not even what the head node writes for itself has room.
        (folder / "big").unlink()
        cluster.user(f"dd if=/dev/zero of={small}/fill bs=4k 2>/dev/null || true")
        said = cluster.stead("submit", folder, code=4, STEAD_DIRECTORY=small)
        assert "the disk is full" in said
        assert cluster.submissions() == before
    finally:
        cluster.root(f"umount {small} && rmdir {small}")


def test_two_clients_at_once_make_two_runs(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": SQUARE})
    clients = [cluster.start("submit", folder, "--wait") for _ in range(4)]
    runs = []
    for client in clients:
        with client:
            out, words = client.communicate(timeout=300)
        assert client.returncode == 0, words
        runs.append(cluster.run_of(out))
    assert len(set(runs)) == 4
    cluster.check_single(*runs)


def test_two_clients_with_one_id_make_one_run(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": SQUARE})
    clients = [cluster.start("submit", folder, "--id", "only", "--wait") for _ in range(3)]
    for client in clients:
        with client:
            out, words = client.communicate(timeout=300)
        assert client.returncode == 0, words
        assert cluster.run_of(out) == "only"
    cluster.check_single("only")


def test_a_folder_that_changed_after_a_lost_answer_is_a_run_of_its_own(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": "import time\ntime.sleep(4)\nprint('old')"})
    with cluster.start("submit", folder, "--wait") as client:
        first = cluster.run_of(client.stdout.readline())
        client.kill()
        client.communicate()
    (folder / "main.py").write_text("print('new')")
    said = cluster.stead("submit", folder, "--wait")

    assert "the folder was changed since" in said
    assert cluster.stead("logs", cluster.run_of(said)) == "new\n"
    assert cluster.wait(first)["state"] == "completed"
    assert cluster.stead("logs", first) == "old\n"


def test_a_user_without_a_home_is_told_so(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": SQUARE})
    cluster.root("sed -i 's#:/share/home/alice:#:/share/home/nobodys:#' /etc/passwd")
    try:
        said = cluster.stead("submit", folder, code=4, STEAD_DIRECTORY="")
    finally:
        cluster.root("sed -i 's#:/share/home/nobodys:#:/share/home/alice:#' /etc/passwd")
    assert "alice has no home" in said
    assert "/share/home/nobodys does not exist" in said
