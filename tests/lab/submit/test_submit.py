"""From a folder to results, as a user goes that way."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

MAIN = """
import os, pathlib, sys
number = int(os.environ.get("STEAD_TASK", 0))
pathlib.Path("out").mkdir()
pathlib.Path("out", "square.txt").write_text(f"{number * number}\\n")
print(number, *sys.argv[1:])
"""


def test_a_run_leaves_its_results_on_the_laptop(cluster: Any) -> None:
    given = {"data/in.txt": "given", ".gitignore": "secret\n", "secret": ""}
    folder = cluster.project("squares", {"main.py": MAIN, **given})
    run = cluster.run_of(cluster.stead("submit", folder, "--wait", "--cpus", 2, "--mem", "100M", "--", "-x", "a b"))
    cluster.stead("fetch", run)

    place = cluster.directory / "stead-results" / run
    found = sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())
    assert found == [".stead.json", "result.json", "stderr", "stdout", "work/out/square.txt"]
    assert (place / "stdout").read_text() == "0 -x a b\n"
    result = json.loads((place / "result.json").read_text())
    assert (result["state"], result["exit_code"], result["again"]) == ("completed", 0, f"stead rerun {run}")
    assert result["node"]
    assert result["start"] <= result["end"]
    assert result["memory_bytes"] > 2**20
    assert result["cpu_seconds"] > 0
    assert cluster.stead("logs", run) == "0 -x a b\n"


def test_only_the_changed_file_is_copied_again(cluster: Any) -> None:
    files = {f"data/{number}.txt": str(number) * 1000 for number in range(50)}
    folder = cluster.project("many", {"main.py": "print(open('data/1.txt').read())", **files})
    first = cluster.run_of(cluster.stead("submit", folder, "--wait"))
    (folder / "main.py").write_text("print(2)")
    second = cluster.run_of(cluster.stead("submit", folder, "--wait"))

    below = f"{cluster.variables['STEAD_DIRECTORY']}/runs"
    own = cluster.user(f"find {below}/{second}/input -type f -links 1 -printf '%P\\n'")
    assert own == "main.py"
    assert cluster.user(f"cat {below}/{first}/stdout").startswith("1111")
    assert cluster.user(f"cat {below}/{second}/stdout") == "2"


def test_an_array_has_a_place_for_each_task(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": MAIN})
    run = cluster.run_of(cluster.stead("submit", folder, "--array", "3,5-6", "--wait"))
    cluster.stead("fetch", run)

    tasks = cluster.directory / "stead-results" / run / "tasks"
    squares = {path.name: (path / "work/out/square.txt").read_text() for path in tasks.iterdir()}
    assert squares == {"3": "9\n", "5": "25\n", "6": "36\n"}
    assert cluster.stead("logs", run, "--task", 5) == "5\n"


def test_nothing_is_fetched_twice(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": MAIN})
    run = cluster.run_of(cluster.stead("submit", folder, "--wait"))
    assert "4 files fetched" in cluster.stead("fetch", run)
    place = cluster.directory / "stead-results" / run

    assert "0 files fetched" in cluster.stead("fetch", run)
    (place / "stdout").unlink()
    (place / "work/out/square.txt").write_text("mine now")
    assert "1 file fetched" in cluster.stead("fetch", run)
    assert (place / "work/out/square.txt").read_text() == "mine now"
    assert "the results of 1 run are already in" in cluster.stead("fetch", "--all")


def test_a_failed_run_ends_with_4_and_says_why(cluster: Any) -> None:
    folder = cluster.project("bad", {"main.py": "import sys; sys.exit('no such luck')"})
    said = cluster.stead("submit", folder, "--wait", code=4)

    assert "failed with exit code 1" in said
    assert "no such luck" in said


def test_a_run_follows_another_only_if_that_ended_well(cluster: Any) -> None:
    good = cluster.project("good", {"main.py": "import time; time.sleep(3)"})
    bad = cluster.project("bad", {"main.py": "raise SystemExit(3)"})
    first = cluster.run_of(cluster.stead("submit", good))
    second = cluster.run_of(cluster.stead("submit", bad, "--after", first, "--wait", code=4))
    assert cluster.jobs()[second]["start"] >= cluster.jobs()[first]["end"]
    assert "failed, so no run can start after its success" in cluster.stead("submit", good, "--after", second, code=2)
    assert len(cluster.jobs()) == 2


def test_a_cancelled_run_says_so(cluster: Any) -> None:
    folder = cluster.project("long", {"main.py": "import time; print('here', flush=True); time.sleep(600)"})
    run = cluster.run_of(cluster.stead("submit", folder))
    with cluster.start("logs", "-f", run) as logs:
        assert logs.stdout.readline() == "here\n"
        assert "cancelled" in cluster.stead("cancel", run)
        logs.communicate(timeout=120)
        assert logs.returncode == 0
    assert cluster.wait(run)["state"] == "cancelled"
    assert "had already ended" in cluster.stead("cancel", run)


def test_one_task_of_an_array_is_cancelled(cluster: Any) -> None:
    main = "import os, time; time.sleep(600 if os.environ['STEAD_TASK'] == '1' else 1)"
    folder = cluster.project("long", {"main.py": main})
    run = cluster.run_of(cluster.stead("submit", folder, "--array", "0-2", "--mem", "100M"))
    (job,) = cluster.jobs()[run]["jobs"]
    assert f"{job}_1: cancelled" in cluster.stead("cancel", f"{job}_1")

    assert cluster.wait(run)["counts"] == {"completed": 2, "cancelled": 1}


def test_a_job_that_slurm_starts_again_is_waited_for(cluster: Any) -> None:
    main = "import time; print('here', flush=True); time.sleep(10); open('made', 'w').close()"
    folder = cluster.project("long", {"main.py": main})
    with cluster.start("submit", folder, "--wait") as client:
        run = cluster.run_of(client.stdout.readline())
        (job,) = cluster.jobs()[run]["jobs"]
        with cluster.start("logs", "-f", run) as logs:
            assert logs.stdout.readline() == "here\n"
            logs.kill()
        cluster.user(f"scontrol requeue {job}")
        # Slurm would wait for two minutes.
        cluster.user(f"until scontrol update jobid={job} starttime=now; do sleep 1; done")
        out, words = client.communicate(timeout=300)
    assert client.returncode == 0, f"{out}{words}"
    assert cluster.jobs()[run]["state"] == "completed"


@pytest.mark.slow
def test_a_run_over_its_time_says_so(cluster: Any) -> None:
    folder = cluster.project("long", {"main.py": "import time; time.sleep(600)"})
    assert "timeout" in cluster.stead("submit", folder, "--time", "0:05", "--wait", code=4, seconds=400)


def test_a_run_can_be_made_again_after_its_folder_changed(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": MAIN})
    first = cluster.run_of(cluster.stead("submit", folder, "--array", "0-1", "--wait", "--", "old"))
    (folder / "main.py").write_text("print('new')")
    again = cluster.run_of(cluster.stead("rerun", first))
    cluster.wait(again)

    assert again != first
    assert cluster.stead("logs", again, "--task", 1) == "1 old\n"


def test_any_program_that_can_be_executed_runs(cluster: Any) -> None:
    folder = cluster.project("shell", {"go": "#!/bin/sh\necho $0 $1 $SLURM_CPUS_PER_TASK; exit 7\n"})
    assert "chmod +x" in cluster.stead("submit", folder, "--entry", "go", code=2)
    (folder / "go").chmod(0o755)
    assert "exit code 7" in cluster.stead("submit", folder, "--entry", "go", "--cpus", 2, "--wait", "--", "x", code=4)
    (run,) = cluster.jobs()
    assert cluster.stead("logs", run) == "./go x 2\n"


def test_what_slurm_refuses_leaves_nothing(cluster: Any) -> None:
    folder = cluster.project("squares", {"main.py": MAIN})
    said = cluster.stead("submit", folder, "--mem", "900T", code=2)

    assert "Slurm refused: Memory specification can not be satisfied" in said
    assert cluster.user(f"ls {cluster.variables['STEAD_DIRECTORY']}/runs") == ""
    assert cluster.jobs() == {}


ODD = ["-rf", "a b", "new\nline", "quote'\"", "back\\slash", "#hash", "*", "ü", ":x", "é\udcff\udc80", "%j", " lead"]


def test_odd_names_come_and_go_unharmed(cluster: Any) -> None:
    copy = "import os, shutil\nfor name in os.listdir('in'): shutil.copyfile(f'in/{name}', f'out {name}')\n"
    folder = cluster.project("odd", {"main.py": copy})
    (folder / "in").mkdir()
    for name in ODD:
        (folder / "in" / name).write_text(name, errors="surrogateescape")
    run = cluster.run_of(cluster.stead("submit", folder, "--wait"))
    cluster.stead("fetch", run)

    work = cluster.directory / "stead-results" / run / "work"
    found = {path.name: path.read_text(errors="surrogateescape") for path in work.iterdir()}
    assert found == {f"out {name}": name for name in ODD}


def test_links_stay_links(cluster: Any) -> None:
    look = "print(sorted((entry.name, os.readlink(entry)) for entry in os.scandir() if entry.is_symlink()))"
    folder = cluster.project("links", {"main.py": f"import os\n{look}\nos.symlink('x', 'made')", "real.txt": "here"})
    links = {"inside": "real.txt", "dangling": "nothing", "outside": "/etc/hostname", "up": "../elsewhere"}
    for name, target in links.items():
        (folder / name).symlink_to(target)
    said = cluster.stead("submit", folder, "--wait")
    run = cluster.run_of(said)
    cluster.stead("fetch", run)

    assert "'outside' links to" in said
    assert cluster.stead("logs", run) == f"{sorted(links.items())}\n"
    assert os.readlink(cluster.directory / "stead-results" / run / "work" / "made") == "x"
