"""The programs that run on every worker, run here."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from ansible.module_utils.slurmstead.smoke import probe as smoke_probe

NONCE = "0badcafe"

Probe = Callable[..., dict[str, dict[str, Any]]]


@pytest.fixture
def share(tmp_path: pathlib.Path) -> pathlib.Path:
    """The directory that control makes on the share."""
    directory = tmp_path / "share"
    directory.mkdir()
    (directory / "control").write_text(NONCE)
    return directory


@pytest.fixture
def probe(tmp_path: pathlib.Path, share: pathlib.Path) -> Probe:
    """Run the probe as the task of a job on n1 and return the parts of its answer."""
    commands = tmp_path / "bin"
    commands.mkdir()
    (tmp_path / "scratch" / "job").mkdir(parents=True)
    for name, text in {
        "munge": "echo MUNGE:made:",
        "unmunge": 'read given; [ "$given" = MUNGE:control: ] && echo "STATUS:          Success (0)"',
    }.items():
        (commands / name).write_text(f"#!/bin/sh\n{text}\n")
        (commands / name).chmod(0o755)

    def run(scratch: str = str(tmp_path / "scratch" / "job"), shared: str = str(share), **env: str) -> Any:
        arguments = [NONCE, shared, str(tmp_path / "scratch"), "5"]
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", smoke_probe.PROBE, *arguments],
            env={
                "PATH": f"{commands}:{os.environ['PATH']}",
                "SLURMD_NODENAME": "n1",
                "SCRATCH": scratch,
                "SLURMSTEAD_SMOKE_CREDENTIAL": "MUNGE:control:\n",
                **env,
            },
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        assert all(len(line) < 1000 for line in done.stdout.splitlines()), "srun may tear longer lines apart"
        return smoke_probe.read_answers(done.stdout, NONCE)["n1"]

    return run


def test_a_healthy_node_answers_to_all_parts(probe: Probe, share: pathlib.Path) -> None:
    seen = probe()

    assert seen["host"] == {"host": os.uname().nodename}
    assert 1 <= seen["cpu"]["bound"] <= seen["cpu"]["usable"] <= os.sysconf("SC_NPROCESSORS_CONF")
    assert seen["share"]["read"] == NONCE
    assert (share / "from-n1").read_text() == seen["share"]["wrote"]
    assert seen["scratch"]["inside"]
    assert "error" not in seen["scratch"]
    assert seen["munge"] == {"read": "Success (0)", "made": "MUNGE:made:", "failed": ""}


def test_nothing_stays_on_scratch(probe: Probe, tmp_path: pathlib.Path) -> None:
    probe()

    assert list((tmp_path / "scratch" / "job").iterdir()) == []


def test_cpus_that_a_job_may_take_are_counted_though_it_is_bound_to_one(probe: Probe) -> None:
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(mine)})
    try:
        seen = probe()["cpu"]
    finally:
        os.sched_setaffinity(0, mine)

    assert seen["bound"] == 1
    assert seen["usable"] >= len(mine)


def test_a_share_without_the_file_of_control_is_an_error_that_names_the_file_system(
    probe: Probe, share: pathlib.Path
) -> None:
    (share / "control").unlink()
    seen = probe()["share"]

    assert seen["error"] == "No such file or directory"
    assert seen["type"] != "?"
    assert not (share / "from-n1").exists()


def test_without_a_directory_on_the_share_the_part_is_left_out(probe: Probe) -> None:
    assert "share" not in probe(shared="")


def test_scratch_of_another_node_is_recognised(probe: Probe, tmp_path: pathlib.Path) -> None:
    (tmp_path / "scratch" / "job" / f".slurmstead-{NONCE}").write_text("n2")

    assert probe()["scratch"]["shared"] is True


@pytest.mark.parametrize(("scratch", "inside"), [("", False), ("/tmp", False)])
def test_scratch_elsewhere_is_not_inside(probe: Probe, scratch: str, inside: bool) -> None:
    seen = probe(scratch=scratch)["scratch"]

    assert (seen["given"], seen["inside"]) == (scratch, inside)


def test_a_missing_scratch_is_an_error(probe: Probe, tmp_path: pathlib.Path) -> None:
    seen = probe(scratch=str(tmp_path / "scratch" / "none"))["scratch"]

    assert seen["error"] == "No such file or directory"
    assert seen["type"] != "?"


def test_a_credential_of_another_key_is_reported(probe: Probe, tmp_path: pathlib.Path) -> None:
    (tmp_path / "bin" / "unmunge").write_text("#!/bin/sh\necho 'STATUS:  Invalid credential (12)'\nexit 12\n")

    assert probe()["munge"]["read"] == "Invalid credential (12)"


def test_a_missing_munge_is_an_error(probe: Probe) -> None:
    assert "error" in probe(PATH="/nonexistent")["munge"]


@pytest.mark.parametrize(("mebibytes", "limit", "ended"), [(8, None, "survived"), (256, 128 << 20, "refused")])
def test_a_job_over_its_memory_tells_how_it_ended(mebibytes: int, limit: int | None, ended: str) -> None:
    shell = ["prlimit", f"--as={limit}"] if limit else []
    done = subprocess.run(
        [*shell, sys.executable, "-I", "-S", "-c", smoke_probe.MEMORY, NONCE, str(mebibytes)],
        env={"SLURMD_NODENAME": "n1"},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )

    assert smoke_probe.read_answers(done.stdout, NONCE) == {"n1": {"memory": {"ended": ended}}}


def test_a_killed_job_says_so() -> None:
    # The child kills itself in the place of the kernel's out-of-memory killer.
    killed = smoke_probe.MEMORY.replace("held = ", "os.kill(os.getpid(), 9); held = ")
    done = subprocess.run(
        [sys.executable, "-c", killed, NONCE, "8"],
        env={"SLURMD_NODENAME": "n1"},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )

    assert killed != smoke_probe.MEMORY
    assert smoke_probe.read_answers(done.stdout, NONCE) == {"n1": {"memory": {"ended": "killed"}}}


@pytest.mark.parametrize(
    "line",
    [
        "Welcome to node1!",
        "{ not JSON",
        "[1, 2]",
        json.dumps({"smoke": "of another run", "node": "n1", "part": "host"}),
        json.dumps({"smoke": NONCE, "node": "n1"}),
    ],
)
def test_other_output_of_a_job_is_left_out(line: str) -> None:
    assert smoke_probe.read_answers(f"{line}\n", NONCE) == {}


def test_answers_of_later_jobs_are_added() -> None:
    answers: smoke_probe.Answers = {"n1": {"host": {"host": "n1"}}}
    smoke_probe.merge(answers, {"n1": {"cpu": {}}, "n2": {"host": {"host": "n2"}}})

    assert smoke_probe.silent(answers, "cpu", ["n3", "n2", "n1"]) == ["n3", "n2"]
