"""What runs on a node, started as Slurm starts it: by python3 from one file."""

import concurrent.futures
import json
import os
import pathlib
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from slurmstead.client import bundle
from slurmstead.client.remote import arrays, library, manifest, store
from slurmstead.client.remote.store import Store

Start = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def start(store: Store, tmp_path: pathlib.Path) -> Start:
    """Return a function that makes a run of files and starts its job, or a task of it."""
    program = tmp_path / "program.pyz"
    program.write_bytes(library.compiled(bundle.program()))

    def run(
        files: Mapping[str, str], task: int | None = None, job: str = "7", restarts: int = 0, **request: Any
    ) -> Any:
        place = store.run("r1")
        for path, text in files.items():
            (place / "input" / path).parent.mkdir(parents=True, exist_ok=True)
            (place / "input" / path).write_text(textwrap.dedent(text))
            (place / "input" / path).chmod(0o755)
        for name in ("log", "done", "started"):
            (place / name).mkdir(exist_ok=True)
        write_request(place, {"entry": "main.py", "args": [], **request})
        parts = arrays.chunks(arrays.parse(request["tasks"])[0], 10) if request.get("tasks") else [None]
        chunk = next((n for n, part in enumerate(parts) if part and task is not None and part.offset + 9 >= task), 0)
        array = {"SLURM_ARRAY_TASK_ID": str(task - parts[chunk].offset), "SLURM_ARRAY_JOB_ID": "6"} if parts[0] else {}
        if restarts:
            array["SLURM_RESTART_COUNT"] = str(restarts)
        return subprocess.run(
            [
                sys.executable,
                "-I",
                program,
                store.root,
                "r1",
                str(chunk),
                str(parts[chunk].offset) if parts[0] else "-",
            ],
            env={"PATH": os.environ["PATH"], "SLURM_JOB_ID": job, "SLURMD_NODENAME": "n1", **array},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def write_request(place: pathlib.Path, request: Mapping[str, Any]) -> None:
    store.write_json(place / "request.json", {"id": "r1", "name": "x", **request})


def result(place: pathlib.Path) -> Any:
    return json.loads((place / "result.json").read_text())


def test_a_job_works_in_its_own_copy_and_leaves_a_result(store: Store, start: Start) -> None:
    main = """
        import os, sys
        print(os.path.basename(os.getcwd()), *sys.argv[1:], os.environ["STEAD_RUN"], os.environ["X"])
        open("data.txt", "a").write("more")
        open("new", "w").write("new")
        """
    done = start({"main.py": main, "data.txt": "given", "same.txt": ""}, args=["-x", "a b"], env={"X": "set"})
    place = store.run("r1")

    assert (done.returncode, done.stderr) == (0, "")
    assert (place / "stdout").read_text() == "work -x a b r1 set\n"
    assert (place / "input/data.txt").read_text() == "given"
    manifest = json.loads((place / "manifest.json").read_text())
    assert [entry["path"] for entry in manifest] == ["stdout", "stderr", "result.json", "work/data.txt", "work/new"]
    found = result(place)
    assert (found["state"], found["exit_code"], found["node"], found["job"]) == ("completed", 0, "n1", "7")
    assert found["memory_bytes"] > 2**20
    assert json.loads((place / "done/0").read_text()) == found


@pytest.mark.parametrize(
    ("program", "state", "code", "reason"),
    [
        ("raise SystemExit(3)", "failed", 3, None),
        ("import os; os.kill(os.getpid(), 11)", "failed", 139, "killed by SIGSEGV"),
        ("import os; os.kill(os.getpid(), 40)", "failed", 168, "killed by signal 40"),
    ],
)
def test_the_end_of_a_program_is_that_of_its_job(
    store: Store, start: Start, program: str, state: str, code: int, reason: str | None
) -> None:
    done = start({"main.py": program})
    found = result(store.run("r1"))

    assert done.returncode == code
    assert (found["state"], found["exit_code"], found.get("reason")) == (state, code, reason)


def test_a_program_that_is_not_there_says_so(store: Store, start: Start) -> None:
    done = start({"go": "#!/no/such/shell\n"}, entry="go")

    assert done.returncode == 1
    assert "No such file" in (store.run("r1") / "stderr").read_text()
    assert result(store.run("r1"))["state"] == "failed"


def test_a_task_has_its_number_its_place_and_its_item(store: Store, start: Start) -> None:
    main = "import os, sys; print(os.environ['STEAD_TASK'], os.environ['SLURM_ARRAY_TASK_ID'], *sys.argv[1:])"
    items = [[f"item {number}"] for number in range(25)]
    start({"main.py": main}, task=14, tasks="0-24", items=items, args=["first"])
    place = store.run("r1") / "tasks" / "14"

    assert (place / "stdout").read_text() == "14 14 first item 14\n"
    assert (result(place)["task"], result(place)["job"]) == (14, "6_4")
    assert [path.name for path in (store.run("r1") / "done").iterdir()] == ["14"]


def test_a_second_job_of_the_same_run_does_nothing(store: Store, start: Start) -> None:
    count = "open('../count', 'a').write('x')"
    start({"main.py": count}, job="7")
    again = start({"main.py": count}, job="8")

    assert "job 7 already runs r1; job 8 exits" in again.stdout
    assert (store.run("r1") / "count").read_text() == "x"


@pytest.mark.parametrize(("mark", "task"), [("cancelled", None), ("cancelled-3", 3), ("withdrawn", None)])
def test_what_was_cancelled_does_not_start(store: Store, start: Start, mark: str, task: int | None) -> None:
    store.run("r1").mkdir(parents=True)
    (store.run("r1") / mark).touch()
    done = start({"main.py": "print(1)"}, task, **({"tasks": "0-5"} if task else {}))
    place = store.run("r1") / (f"tasks/{task}" if task else "")

    assert (done.returncode, result(place)["state"]) == (1, "cancelled")
    assert not (place / "stdout").exists()


def test_a_job_that_slurm_restarts_begins_from_nothing(store: Store, start: Start) -> None:
    main = "import os; assert not os.path.exists('made'); open('made', 'w'); print(os.listdir('../done'))"
    done = [start({"main.py": main}), start({"main.py": main})]

    assert [one.returncode for one in done] == [0, 0], done[1].stderr
    assert (store.run("r1") / "stdout").read_text() == "[]\n"


def test_a_start_that_slurm_gave_up_does_not_speak_for_the_next_one(store: Store, start: Start) -> None:
    """As on a worker without network, which ends its program when the job runs elsewhere."""
    main = """
        import os, pathlib, sys, time
        again = "SLURM_RESTART_COUNT" in os.environ
        pathlib.Path("..", "second" if again else "first").touch()
        while again and not pathlib.Path("../over").exists() or not pathlib.Path("../second").exists():
            time.sleep(0.01)
        sys.exit(0 if again else 3)
        """
    place = store.run("r1")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(start, {"main.py": main})
        while not (place / "first").exists():
            assert not first.done(), first.result().stderr
        second = pool.submit(start, {}, restarts=1)
        code = first.result().returncode
        left = [name for name in ("result.json", "manifest.json", "done/0") if (place / name).exists()]
        (place / "over").touch()

    assert (code, left) == (3, [])
    assert second.result().returncode == 0, second.result().stderr
    assert (result(place)["state"], result(place)["restarts"]) == ("completed", 1)


def test_a_program_gets_the_signal_that_its_job_gets(store: Store, start: Start) -> None:
    start({"main.py": "import os, time; os.kill(os.getppid(), 15); time.sleep(60)"})
    found = result(store.run("r1"))

    assert (found["state"], found["signalled"], found["exit_code"]) == ("cancelled", True, 143)


def test_a_signal_reaches_what_the_program_started(store: Store, start: Start) -> None:
    main = """
        import os, signal, subprocess, sys
        command = "trap 'echo saved; exit' TERM; echo; while :; do sleep 0.1; done"
        child = subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(print(child.communicate(timeout=20)[0])))
        os.kill(os.getppid(), 15)
        signal.pause()
        """
    start({"main.py": main})

    assert (store.run("r1") / "stdout").read_text() == "saved\n\n"


def test_what_a_program_leaves_in_the_background_changes_no_result(store: Store, start: Start) -> None:
    main = """
        import subprocess
        subprocess.Popen(["sh", "-c", "echo $$ >pid; while :; do echo more; done"])
        open("big", "wb").write(bytes(30_000_000))
        """
    start({"main.py": main})
    place = store.run("r1")
    listed = json.loads((place / "manifest.json").read_text())
    sizes = {entry["path"]: entry.get("size") for entry in listed}

    assert result(place)["state"] == "completed"
    assert (place / "stdout").stat().st_size == sizes["stdout"] > 0


def test_the_python_of_an_image_runs_its_programs(
    store: Store, start: Start, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image has its packages in /opt/venv, which comes first in PATH."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    monkeypatch.setenv("PATH", f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}")
    start({"main.py": "import sys; print(sys.prefix)"})

    assert (store.run("r1") / "stdout").read_text() == f"{tmp_path / 'venv'}\n"


def test_a_program_that_ends_well_when_it_is_told_to_is_completed(store: Store, start: Start) -> None:
    main = """
        import os, signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(print("saved")))
        os.kill(os.getppid(), 15)
        time.sleep(60)
        """
    start({"main.py": main})
    found = result(store.run("r1"))

    assert (found["state"], found["signalled"]) == ("completed", True)
    assert (store.run("r1") / "stdout").read_text() == "saved\n"


@pytest.mark.slow
def test_a_build_that_is_to_end_leaves_no_environment(store: Store, start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as index, concurrent.futures.ThreadPoolExecutor(1) as pool:

        def strike() -> None:
            asked, _ = index.accept()
            with asked:
                subprocess.run(["pkill", "--full", f"program.pyz {store.root} r1"], check=True)

        struck = pool.submit(strike)
        address = f"http://127.0.0.1:{index.getsockname()[1]}/simple"
        done = start({"main.py": ""}, environment={"requirements": "alpha==1.0\n", "index": address})
        struck.result(60)

    assert (done.returncode, result(store.run("r1"))["state"]) == (143, "cancelled")
    assert [path.suffix for path in store.environments.iterdir()] == [".lock"]


def test_links_and_pipes_are_left_as_they_are(store: Store, start: Start) -> None:
    main = "import os; os.symlink('nowhere', 'link'); os.mkfifo('pipe'); open('é\\udcff', 'w').write('x')"
    start({"main.py": main})
    entries = {entry["path"]: entry for entry in json.loads((store.run("r1") / "manifest.json").read_text())}

    assert entries["work/link"] == {"path": "work/link", "link": "nowhere"}
    assert entries["work/é\udcff"]["size"] == 1
    assert "work/pipe" not in entries


def test_data_is_a_link_to_the_input_and_no_result(store: Store, start: Start) -> None:
    main = """
        import os
        print(*(int(os.path.islink(path)) for path in ("big", "a", "a/b", "a/b/one", "a/c", "main.py")))
        print(open("big/x/y").read(), open("a/b/one").read(), open("a/c").read())
        """
    files = {"main.py": main, "big/x/y": "data", "a/b/one": "one", "a/b/two": "two", "a/c": "c", "-rf": ""}
    done = [start(files, task=1, tasks="0-1", data=["big", "a/b/one"]) for _ in range(2)]
    place = store.run("r1")
    task = place / "tasks" / "1"

    assert [(one.returncode, one.stderr) for one in done] == [(0, "")] * 2
    assert (task / "stdout").read_text() == "1 0 0 1 0 0\ndata one c\n"
    assert os.readlink(task / "work" / "big") == str(place / "input" / "big")
    paths = [entry["path"] for entry in json.loads((task / "manifest.json").read_text())]
    assert paths == ["stdout", "stderr", "result.json"]
    assert (place / "input" / "big" / "x" / "y").read_text() == "data", "the second start removed only the links"


def test_what_a_program_closed_to_itself_is_among_its_results_and_no_obstacle_to_the_next_start(
    store: Store, start: Start
) -> None:
    main = """
        import os
        os.makedirs("closed/in"), open("closed/in/file", "w"), os.chmod("closed/in/file", 0), os.chmod("closed", 0)
        """
    done = [start({"main.py": main}), start({"main.py": main})]
    place = store.run("r1")
    modes = [(place / "work/closed" / path).stat().st_mode & 0o777 for path in ("", "in/file")]

    assert [(one.returncode, one.stderr) for one in done] == [(0, "")] * 2
    assert "work/closed/in/file" in [entry["path"] for entry in json.loads((place / "manifest.json").read_text())]
    assert modes == [0o700, 0o400], "other users can read them"


def test_what_goes_while_it_is_listed_is_no_result(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "walk", lambda _: iter(["gone"]))
    (tmp_path / "work").mkdir()

    assert manifest.make(tmp_path, tmp_path / "input") == []


def test_a_task_that_cannot_be_started_leaves_a_result(store: Store, start: Start) -> None:
    done = start({"main.py": ""}, args=["a\0b"])

    assert (done.returncode, done.stderr) == (1, "")
    assert result(store.run("r1"))["reason"] == "embedded null byte"
