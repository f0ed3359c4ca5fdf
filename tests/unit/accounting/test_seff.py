"""What seff says of a job."""

from __future__ import annotations

import importlib.util
from typing import Any

from slurmstead.paths import ROOT


def seff() -> Any:
    spec = importlib.util.spec_from_file_location("seff", ROOT / "roles/accounting/files/seff.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


JOB = {
    "JobID": "17",
    "User": "ann",
    "Account": "bio",
    "State": "COMPLETED",
    "ExitCode": "0:0",
    "AllocCPUS": "4",
    "NNodes": "1",
    "ElapsedRaw": "3600",
    "TotalCPU": "02:00:00",
    "ReqMem": "4G",
    "MaxRSS": "",
}


def test_the_use_is_that_of_the_job_and_of_its_greediest_step() -> None:
    steps = [{**JOB, "JobID": f"17.{number}", "MaxRSS": most} for number, most in enumerate(("512M", "1024M"))]

    assert seff().report([JOB, *steps]) == [
        "Job 17 of ann in account bio: COMPLETED, exit code 0:0",
        "CPU:    02:00:00 of 04:00:00 used (50%), 4 CPUs for 01:00:00",
        "Memory: 1.0 GiB of 4.0 GiB used (25%), in the step that used most",
    ]


def test_a_job_that_waits_has_used_nothing() -> None:
    job = {**JOB, "State": "PENDING", "ElapsedRaw": "0", "TotalCPU": "00:00:00", "ReqMem": ""}

    assert seff().report([job])[1:] == [
        "CPU:    the job ran for less than a second, or not at all",
        "The job has not ended: these numbers are not final.",
    ]
