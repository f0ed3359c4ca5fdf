"""The gated slurmctld reads the same lines, reaches nothing, and what it says becomes a line of the source."""

from __future__ import annotations

import getpass
import os
import pathlib
import stat
import subprocess
import sys
import types
from typing import cast

import pytest

from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.gate import files as gate_files
from ansible.module_utils.slurmstead.gate import gate as gate_gate
from ansible.module_utils.slurmstead.gate import process as gate_process
from ansible.module_utils.slurmstead.gate import verdict as gate_verdict
from ansible.module_utils.slurmstead.slurm.jobs import Job, State, read_queue

SOURCE = """# a comment
AuthType=auth/munge SlurmUser=slurm
MailProg=/usr/bin/mail
ResumeProgram=/usr/local/bin/on \\
  StateSaveLocation=/var/lib/slurm
JobCompType=jobcomp/filetxt
Foo=1
PartitionName=extra Nodes=n9
PriorityType=priority/best
"""
FILES = {"slurm.conf": SOURCE, "gres.conf": "# x\nNodeName=n1 Nmae=gpu\n"}


def test_a_process_with_any_name_does_not_keep_the_gate_from_its_own() -> None:
    named = "import ctypes, sys; ctypes.CDLL(None).prctl(15, b'\\xff'); print(flush=True); sys.stdin.read()"
    program = [sys.executable, "-c", named]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        found = gate_process.first(cast("subprocess.Popen[bytes]", types.SimpleNamespace(pid=os.getpid())), 0)
        process.communicate(b"")

    assert found == process.pid


def test_the_gate_keeps_every_line_on_its_number() -> None:
    gated = conf_model.read(gate_files.gated(SOURCE, "/g"))

    assert gated.settings["foo"].line == 7
    assert gated.partitions["extra"][""].line == 8


def test_the_gate_has_its_own_places_and_runs_no_program() -> None:
    gated = conf_model.read(gate_files.gated(SOURCE, "/g"))
    seen = {key: pair.value for key, pair in gated.settings.items()}

    assert seen["authtype"] == "auth/none"
    assert seen["statesavelocation"] == "/g/state"
    assert seen["slurmctldpidfile"] == "/g/slurmctld.pid"
    assert (seen["mailprog"], seen["resumeprogram"]) == ("/bin/true", "/bin/true")
    assert seen["slurmuser"] == "slurm"
    assert "jobcomptype" not in seen
    assert gated.repeated == ()


def test_only_slurm_can_enter_the_gate(tmp_path: pathlib.Path) -> None:
    gated = tmp_path / "gated"
    gated.mkdir(mode=0o700)

    gate_gate._furnish(gated, {"slurm.conf": f"SlurmUser={getpass.getuser()}\n", "acct_gather.conf": "p"}, tmp_path)

    assert stat.S_IMODE(gated.stat().st_mode) == 0o700


def test_the_gate_has_the_state_without_what_runs_programs(tmp_path: pathlib.Path) -> None:
    live, gated = tmp_path / "live", tmp_path / "gated"
    live.mkdir()
    gated.mkdir()
    names = {"clustername", "job_state", "assoc_mgr_state", "last_tres"}
    for name in (*names, "trigger_state", "jwt_hs256.key"):
        (live / name).write_text("x")

    gate_gate._furnish(gated, {"slurm.conf": "SlurmUser=no-such-user\n"}, live)

    assert {path.name for path in (gated / "state").iterdir()} == names


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (
            "slurmctld: error: _parse_next_key: Parsing error at unrecognized key: Foo\n"
            "slurmctld: fatal: Unable to process configuration file",
            ["slurm.conf line 7: `Foo=1`: slurmctld knows no key Foo here"],
        ),
        (
            "slurmctld: error: Parsing error at unrecognized key: Nmae\n"
            'slurmctld: error: Parse error in file /g/etc/gres.conf line 2: " Nmae=gpu"',
            ["gres.conf line 2: `NodeName=n1 Nmae=gpu`: slurmctld knows no key Nmae here"],
        ),
        (
            "slurmctld: fatal: Invalid nodes in partition extra",
            ["slurm.conf line 8: `PartitionName=extra Nodes=n9`: slurmctld says: Invalid nodes in partition extra"],
        ),
        (
            "slurmctld: error: cannot find priority plugin for priority/best\n"
            "slurmctld: error: cannot create priority context for priority/best\n"
            "slurmctld: fatal: failed to initialize priority plugin",
            [
                "slurm.conf line 9: `PriorityType=priority/best`: slurmctld says: "
                "cannot find priority plugin for priority/best"
            ],
        ),
        ("slurmctld: error: Job accounting information gathered, but not stored\nslurmctld: Running", []),
        ("slurmctld: fatal: out of luck", ["slurmctld says: out of luck"]),
        (
            "slurmctld: error: Foo is odd\nslurmctld: fatal: out of luck",
            ["slurm.conf line 7: `Foo=1`: slurmctld says: Foo is odd", "slurmctld says: out of luck"],
        ),
        ("slurmctld: error: something odd", ["slurmctld says: something odd"]),
    ],
    ids=[
        "unknown key",
        "unknown key of gres.conf",
        "bad partition",
        "missing plugin",
        "noise",
        "no line",
        "two",
        "error",
    ],
)
def test_what_slurmctld_says_becomes_a_line(log: str, expected: list[str]) -> None:
    assert [str(finding) for finding in gate_verdict.findings(log, FILES)] == expected


LOG = "slurmctld: Recovered JobId=1 StepId=batch\nslurmctld: Recovered JobId=2 Assoc=0"
LIVE = State((Job("1", "RUNNING", "main", ("n1",)), Job("2", "PENDING", "main", (), "Resources")))


@pytest.mark.parametrize(
    ("queue", "fates"),
    [
        ("1|RUNNING|main|n1|1|None|alice|x\n2|PENDING|main||2|Resources|alice|x", []),
        ("1|COMPLETED|main|n1|1|None|alice|x\n2|RUNNING|main|n1|2|None|alice|x", []),
        (
            "1|COMPLETING|main|n1|1|NodeDown|alice|x\n2|NODE_FAIL|main||2|NodeDown|alice|x",
            ["killed", "ended as NODE_FAIL"],
        ),
        ("1|PENDING|main||1|NodeDown|alice|x\n2|PENDING|main||2|Resources|alice|x", ["removed from its nodes"]),
        ("2|PENDING|main||2|Resources|alice|x", ["forgotten"]),
        # The copy of the state is from before the job started.
        ("1|PENDING|main||1|Priority|alice|x\n2|PENDING|main||2|Resources|alice|x", []),
    ],
    ids=["same", "went on", "partition gone", "node gone", "forgotten", "older state"],
)
def test_a_job_that_would_be_hurt_is_named(queue: str, fates: list[str]) -> None:
    found = [str(finding) for finding in gate_verdict.job_findings(LOG, LIVE, read_queue(queue))]

    assert len(found) == len(fates)
    assert all(fate in line for fate, line in zip(fates, found, strict=True))


def test_a_job_that_the_copied_state_does_not_have_is_not_missed() -> None:
    assert gate_verdict.job_findings("", LIVE, State()) == []


def test_a_job_for_which_there_is_no_room_is_named() -> None:
    log = "slurmctld: error: _create_job_record: MaxJobCount limit from slurm.conf reached (1)"
    queue = read_queue("1|RUNNING|main|n1|1|None|alice")

    (found,) = gate_verdict.job_findings(log, LIVE, queue)

    assert str(found).startswith("job 2 (pending) would be forgotten")
    assert gate_verdict.job_findings("", LIVE, queue) == []


def test_without_a_live_controller_the_gates_queue_is_what_counts() -> None:
    found = gate_verdict.job_findings(
        LOG, State(heard=False), read_queue("1|NODE_FAIL|main||1|NodeDown|alice|x\n2|PENDING|main||2||alice|x")
    )

    assert [str(finding).partition(";")[0] for finding in found] == ["job 1 (running) would be ended as NODE_FAIL"]
