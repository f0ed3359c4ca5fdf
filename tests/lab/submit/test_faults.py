"""Killed clients and cut connections: no job is lost or doubled."""

from __future__ import annotations

import os
import random
import time
from typing import Any

SEED = int(os.environ.get("STEAD_SEED") or time.time())
"""Decides when clients are killed; STEAD_SEED repeats a run."""

SQUARE = "import os\nprint(int(os.environ.get('STEAD_TASK', 7)) ** 2)\n"

WRITE = """
import random, sys
chosen = random.Random(1)
with open("big", "wb") as file:
    for _ in range(int(sys.argv[1])):
        file.write(chosen.randbytes(2**20))
"""

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
    for number in range(5):
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
    assert cluster.settled() == dict.fromkeys(runs, "completed")


def test_a_client_killed_while_it_waits_finds_its_run_again(cluster: Any) -> None:
    folder = cluster.project("slow", {"main.py": "import time; time.sleep(8)"})
    with cluster.start("submit", folder, "--wait") as client:
        assert client.stdout.readline().startswith("job ")
        client.kill()
        client.communicate()
    said = cluster.stead("submit", folder, "--wait")

    assert "already submitted by an interrupted call" in said
    assert "completed" in said
    assert [*cluster.jobs()] == [cluster.run_of(said)]


def test_a_laptop_that_never_comes_back_costs_nothing(cluster: Any) -> None:
    folder = cluster.project("slow", {"main.py": "import time; time.sleep(5); print('done')"})
    with cluster.start("submit", folder, "--wait") as client:
        run = cluster.run_of(client.stdout.readline())
        client.kill()
        client.communicate()
    # Another laptop, which knows nothing of the first.
    other = {name: str(cluster.directory / "other") for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")}
    assert cluster.wait(run)["state"] == "completed"
    assert run in cluster.stead("jobs", COLUMNS="120", **other)
    cluster.stead("fetch", "--all", "--to", "other-results", **other)

    assert (cluster.directory / "other-results" / run / "stdout").read_text() == "done\n"


def test_a_copy_that_was_cut_goes_on(cluster: Any) -> None:
    folder = big_project(cluster, "big")
    with cluster.start("submit", folder) as client:
        cluster.cut(f"ls -A {cluster.variables['STEAD_DIRECTORY']}/.stead-incoming | grep big")
        _, words = client.communicate(timeout=120)
    assert client.returncode == 3, f"was the copy too fast for the cut? {words}"
    assert "Repeat the same command to continue" in words
    run = cluster.run_of(cluster.stead("submit", folder, "--wait"))

    assert cluster.stead("logs", run) == f"{BIG}\n"
    assert [*cluster.jobs()] == [run]


def test_a_cut_while_slurm_is_asked_doubles_nothing(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": SQUARE})
    with cluster.start("submit", folder) as client:
        cluster.cut(f"ls {cluster.variables['STEAD_DIRECTORY']}/runs/*/ledger.json")
        out, words = client.communicate(timeout=120)
    print(f"ended with {client.returncode}: {out}{words}")
    assert client.returncode in (0, 3)
    before = {cluster.run_of(out)} if client.returncode == 0 else set()
    runs = {*before, cluster.run_of(cluster.stead("submit", folder, "--wait"))}

    cluster.check_single(*runs)
    assert {*cluster.jobs()} == runs


def test_a_fetch_that_was_cut_goes_on_and_is_verified(cluster: Any) -> None:
    folder = cluster.project("writes", {"main.py": WRITE})
    run = cluster.run_of(cluster.stead("submit", folder, "--wait", "--mem", "100M", "--", BIG >> 20))
    place = cluster.results(run)
    with cluster.start("fetch", run) as client:
        deadline = time.monotonic() + 120
        while not list(place.rglob(".big*")) + list(place.rglob("big")):
            assert time.monotonic() < deadline, "the copy did not begin"
            time.sleep(0.01)
        cluster.cut("true")
        _, words = client.communicate(timeout=120)
    print(f"ended with {client.returncode}: {words}")
    assert client.returncode in (0, 3), words
    cluster.stead("fetch", run)

    chosen = random.Random(1)
    assert (place / "work/big").read_bytes() == b"".join(chosen.randbytes(2**20) for _ in range(BIG >> 20))
    assert "0 files fetched" in cluster.stead("fetch", run)


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

    assert "the folder has changed since" in said
    assert cluster.stead("logs", cluster.run_of(said)) == "new\n"
    assert cluster.wait(first)["state"] == "completed"
    assert cluster.stead("logs", first) == "old\n"
