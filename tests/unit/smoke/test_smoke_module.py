"""The module on a cluster of small programs that act as Slurm's commands."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import slurm_smoke

from ansible.module_utils.slurmstead.smoke import verdicts
from ansible.module_utils.slurmstead.smoke.findings import Findings
from ansible.module_utils.slurmstead.smoke.report import Check

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).resolve().parents[3]

CLIENT = """\
#!/bin/sh
# sinfo, squeue, scancel, munge and unmunge of a cluster that is described by files.
cd '{state}'
name=${{0##*/}}
case $name in
    munge) echo MUNGE:credential: ;;
    unmunge)
        read -r given
        [ "$given" = MUNGE:credential: ] || {{ echo "unmunge: Error: Invalid credential" >&2; exit 1; }}
        echo "STATUS:          Success (0)" ;;
    *)
        [ ! -e slurmctld-hangs ] || exec sleep 60
        [ ! -e slurmctld-is-off ] || {{ echo "$name: error: Unable to contact slurm controller" >&2; exit 1; }}
        case "$name $*" in
            sinfo*) cat sinfo ;;
            squeue*--nodelist*) cat others ;;
            squeue*) cat jobs/* 2>/dev/null || true ;;
            scancel*) echo "$*" >cancelled/by-number ;;
        esac ;;
esac
"""

JOBS = """\
#!{python} -IS
# srun and sbatch of that cluster. Jobs run here, at once; a job on a busy node waits, and on a dead one nothing starts.
import os, pathlib, signal, subprocess, sys, time
sys.path.insert(0, "{root}/plugins/module_utils/slurmstead/slurm")
import hostlist

here, words = pathlib.Path("{state}"), sys.argv[1:]
options = dict(word[2:].split("=", 1) for word in words if word.startswith("--") and "=" in word)
number = sum(options["job-name"].encode())


def note(state, nodes, reason="None"):
    line = "|".join([str(number), state, "main", nodes, str(number), reason, "alice", options["job-name"]])
    (here / "jobs" / options["job-name"]).write_text(line + "\\n")


def end(*_):
    note("CANCELLED", "")
    (here / "cancelled" / options["job-name"]).touch()
    sys.exit(1)


def run_on(node, program):
    if node in dead:
        print("srun: error: Task launch failed on node " + node + ": Connection refused", file=sys.stderr)
    elif "os.fork" in program[4]:
        print('{{"smoke": "' + program[5] + '", "node": "' + node + '", "part": "memory", "ended": "killed"}}')
        print("srun: error: " + node + ": task 0: Out Of Memory", file=sys.stderr)
    else:
        scratch = here / "scratch" / node
        scratch.mkdir(exist_ok=True)
        env = dict(os.environ, SLURMD_NODENAME=node, SCRATCH=str(scratch))
        said = subprocess.run(program, env=env, capture_output=True, text=True).stdout
        print(said.replace(os.uname().nodename, node), end="")


if sys.argv[0].endswith("sbatch"):
    env = dict(os.environ, SLURMD_NODENAME="n1")
    with open(options["output"], "w") as file:
        subprocess.run(["sh"], input=sys.stdin.read(), text=True, stdout=file, env=env)
    note("COMPLETED", "n1")
    print(number)
    sys.exit()
signal.signal(signal.SIGTERM, end)
nodes = hostlist.expand(options["nodelist"])
busy, dead = [(here / name).read_text().split() for name in ("busy", "dead")]
if set(nodes) & set(busy):
    note("PENDING", "", "Resources")
    time.sleep(60)
note("RUNNING", options["nodelist"])
for node in nodes:
    run_on(node, words[words.index(next(word for word in words if "python" in word)) :])
note("COMPLETED", options["nodelist"])
sys.exit(any(node in dead for node in nodes))
"""

Cluster = Callable[..., dict[str, Check]]


def sinfo(nodes: list[str], idle: int = 8) -> str:
    return "".join(f"{node}|idle|0/{idle}/0/8|up|main*|Unknown|Unknown|none\n" for node in nodes)


@pytest.fixture
def state(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The directory that describes the cluster; its commands are in PATH."""
    commands = tmp_path / "bin"
    for directory in (commands, tmp_path / "jobs", tmp_path / "cancelled", tmp_path / "scratch", tmp_path / "share"):
        directory.mkdir()
    places = {"python": sys.executable, "root": ROOT, "state": tmp_path}
    for name in ("sinfo", "squeue", "scancel", "munge", "unmunge", "srun", "sbatch"):
        (commands / name).write_text((JOBS if name in ("srun", "sbatch") else CLIENT).format(**places))
        (commands / name).chmod(0o755)
    for name in ("busy", "dead", "others"):
        (tmp_path / name).touch()
    (tmp_path / "sinfo").write_text(sinfo(["n1", "n2", "n3"]))
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm_smoke, "PAUSE", 0.1)
    monkeypatch.setattr(slurm_smoke, "PYTHON", (sys.executable, "-I", "-S", "-c"))
    # The fake cluster's CPUs are those of this machine.
    monkeypatch.setitem(verdicts.CHECKS, "one-cpu", lambda _: Check("one-cpu", True, "1", "1", ""))
    return tmp_path


@pytest.fixture
def cluster(state: pathlib.Path) -> Cluster:
    """Run the test on the cluster and return its checks by name."""

    def run(workers: tuple[str, ...] = ("n1", "n2", "n3"), share: str = "share", patience: float = 30) -> Any:
        share, scratch = str(state / share), str(state / "scratch")
        found = Findings(workers, "head", "alice", share, scratch, nonce="0badcafe")
        with slurm_smoke.Run(found, 120) as running:
            running.start_by, running.run_limit = running.begin + patience, patience
            return {check.name: check for check in running.checks()}

    return run


def red(checks: dict[str, Check]) -> dict[str, str]:
    return {name: check.seen for name, check in checks.items() if not check.ok}


def wait_for_jobs(state: pathlib.Path) -> None:
    """Return when the three jobs of a test have begun, of which those on a busy node wait."""
    until = time.monotonic() + 60
    while len(list((state / "jobs").iterdir())) < 3 and time.monotonic() < until:
        time.sleep(0.1)


def leftovers(state: pathlib.Path) -> list[str]:
    return sorted(path.name for path in (state / "share").iterdir())


def test_a_healthy_cluster_is_green_and_nothing_is_left(cluster: Cluster, state: pathlib.Path) -> None:
    checks = cluster()

    assert red(checks) == {}
    assert list(checks) == list(verdicts.CHECKS)
    assert checks["srun"].seen == "n[1-3]"
    assert leftovers(state) == []
    assert len(list((state / "jobs").iterdir())) == 3, "one job of each kind is enough"


def test_one_worker_is_enough(cluster: Cluster, state: pathlib.Path) -> None:
    (state / "sinfo").write_text(sinfo(["n1"]))

    assert red(cluster(workers=("n1",))) == {}


def test_partitions_without_common_nodes_are_tested_one_by_one(cluster: Cluster, state: pathlib.Path) -> None:
    (state / "sinfo").write_text(sinfo(["n1", "n2"]) + sinfo(["n3"]).replace("main*", "arm"))
    checks = cluster()

    assert red(checks) == {}
    assert len(list((state / "jobs").iterdir())) == 5


def test_a_node_on_which_nothing_starts_is_named_and_others_are_tested(cluster: Cluster, state: pathlib.Path) -> None:
    (state / "dead").write_text("n2")
    checks = cluster()

    assert red(checks)["srun"] == ("n[1,3]: good; n2: Task launch failed on node n2: Connection refused")
    assert red(checks)["share"] == "n[1,3]: good; n2: not tested, no job answered"
    assert set(red(checks)) == {"srun", "memory-limit", "share", "scratch", "munge"}


def test_a_busy_node_is_waited_for_then_named_with_its_job(cluster: Cluster, state: pathlib.Path) -> None:
    (state / "busy").write_text("n2")
    (state / "sinfo").write_text(sinfo(["n1", "n3"]) + sinfo(["n2"], idle=0))
    (state / "others").write_text("17|RUNNING|main|n2|17|None|bob|work\n")
    checks = cluster(patience=10)

    said = re.fullmatch(
        r"n\[1,3\]: good; n2: no free CPU or memory within (\d+) s: job 17 of bob on it", red(checks)["srun"]
    )
    # The time is measured: on a busy computer it is longer.
    assert said and int(said[1]) >= 10, red(checks)["srun"]
    assert set(red(checks)) == {"srun", "memory-limit", "share", "scratch", "munge"}
    assert leftovers(state) == []


@pytest.mark.parametrize("how", ["slurmctld-is-off", "slurmctld-hangs"])
def test_without_slurmctld_all_is_red_at_once(
    cluster: Cluster, state: pathlib.Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(slurm_smoke, "ANSWER", 1.0)
    (state / how).touch()
    begin = time.monotonic()
    checks = cluster()

    assert list(red(checks)) == list(verdicts.CHECKS)
    assert time.monotonic() - begin < 15


def test_a_slurmctld_that_ends_meanwhile_ends_the_test(
    cluster: Cluster, state: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_smoke, "ANSWER", 2.0)
    (state / "busy").write_text("n2")
    ended: list[float] = []

    def end() -> None:
        wait_for_jobs(state)
        (state / "slurmctld-hangs").touch()
        ended.append(time.monotonic())

    thread = threading.Thread(target=end)
    thread.start()
    checks = cluster()
    thread.join()

    assert list(red(checks)) == list(verdicts.CHECKS)
    assert time.monotonic() - ended[0] < 20
    assert leftovers(state) == []
    assert len(list((state / "cancelled").iterdir())) == 2, "both sruns give their jobs back"


def test_a_drained_node_is_not_tried(cluster: Cluster, state: pathlib.Path) -> None:
    (state / "sinfo").write_text(
        sinfo(["n1", "n3"]) + "n2|drained|0/0/8/8|up|main*|root|2026-11-21T03:04:31|bad disk\n"
    )
    checks = cluster()

    assert red(checks)["nodes"] == "n[1,3]: good; n2: drained: bad disk (by root since 2026-11-21T03:04:31)"
    assert red(checks)["srun"] == "n[1,3]: good; n2: drained"


def test_without_a_usable_worker_nothing_is_started(cluster: Cluster, state: pathlib.Path) -> None:
    (state / "sinfo").write_text("")
    checks = cluster()

    assert set(red(checks)) == set(verdicts.CHECKS) - {"one-cpu"}
    assert list((state / "jobs").iterdir()) == []


def test_a_share_that_cannot_be_written_leaves_the_other_checks_alone(cluster: Cluster, state: pathlib.Path) -> None:
    checks = cluster(share="none")

    assert set(red(checks)) == {"share", "sbatch"}
    assert "No such file or directory" in red(checks)["share"]


def test_files_of_a_killed_run_are_removed_by_a_later_one(cluster: Cluster, state: pathlib.Path) -> None:
    old, fresh = state / "share" / ".slurmstead-smoke-old", state / "share" / ".slurmstead-smoke-fresh"
    old.mkdir()
    fresh.mkdir()
    os.utime(old, (time.time() - 7200,) * 2)
    cluster()

    assert leftovers(state) == [fresh.name]


def test_a_function_that_hangs_is_given_up() -> None:
    with pytest.raises(slurm_smoke.NoAnswerError, match="/share did not answer within 0 s"):
        slurm_smoke.bounded(lambda: time.sleep(5), 0.2, "/share")


def test_an_error_of_the_system_keeps_its_words() -> None:
    with pytest.raises(slurm_smoke.NoAnswerError, match="No such file or directory: /nonexistent"):
        slurm_smoke.bounded(lambda: os.listdir("/nonexistent"), 5, "/share")


MAIN = """
import json, os, sys
import ansible.module_utils
ansible.module_utils.__path__.append({utilities!r})
sys.path.append({modules!r})
from ansible.module_utils import basic
import slurm_smoke
# The module refuses root, and tests may run as root.
os.getuid = lambda: {uid}
slurm_smoke.PYTHON = (sys.executable, "-I", "-S", "-c")
basic._ANSIBLE_ARGS, basic._ANSIBLE_PROFILE = json.dumps({{"ANSIBLE_MODULE_ARGS": {arguments!r}}}).encode(), "legacy"
slurm_smoke.main()
"""


def start(state: pathlib.Path, uid: int = 65534, **arguments: Any) -> subprocess.Popen[str]:
    """Run the module as Ansible does."""
    given = {
        "workers": ["n1", "n2", "n3"],
        "control": "head",
        "share": str(state / "share"),
        "scratch": str(state / "scratch"),
        **arguments,
    }
    plugins = ROOT / "plugins"
    code = MAIN.format(
        utilities=str(plugins / "module_utils"), modules=str(plugins / "modules"), uid=uid, arguments=given
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_red_check_does_not_fail_the_task(state: pathlib.Path) -> None:
    (state / "dead").write_text("n2")
    process = start(state)
    result = json.loads(process.communicate(timeout=90)[0])

    assert process.returncode == 0
    assert (result["ok"], result["changed"]) == (False, False)
    assert [check["name"] for check in result["checks"]] == list(verdicts.CHECKS)
    assert all(set(check) == {"name", "ok", "expected", "seen", "hint"} for check in result["checks"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_no_job_and_no_file(state: pathlib.Path, number: signal.Signals) -> None:
    (state / "busy").write_text("n2")
    process = start(state)
    wait_for_jobs(state)
    process.send_signal(number)
    result = json.loads(process.communicate(timeout=90)[0])

    assert f"ended by {number.name}" in result["msg"]
    assert leftovers(state) == []
    assert len(list((state / "cancelled").iterdir())) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workers": []}, "workers: expected names of nodes, seen an empty list"),
        ({"deadline": 5}, "deadline: expected at least 20 seconds, seen 5"),
        ({"uid": 0}, "expected an ordinary user, seen root"),
    ],
)
def test_a_useless_argument_fails_the_task(state: pathlib.Path, arguments: dict[str, Any], message: str) -> None:
    process = start(state, **arguments)
    result = json.loads(process.communicate(timeout=90)[0])

    assert result["failed"]
    assert message in result["msg"]
