"""What a job uses, read from control groups as Slurm makes them on Debian 12 and 13 (cgroup v2)."""

import pathlib
import resource

import pytest

from slurmstead.client.remote.usage import Meter, job_group

OWN = "0::/system.slice/node1_slurmstepd.scope/job_7/step_batch/user/task_0\n"


@pytest.fixture
def group(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return the control group of job 7."""
    place = tmp_path / "system.slice/node1_slurmstepd.scope/job_7"
    place.mkdir(parents=True)
    memory(place, anon=1000)
    (place / "memory.peak").write_text("900000000\n")
    (place / "memory.events").write_text("low 0\nhigh 0\nmax 3\noom 0\noom_kill 0\noom_group_kill 0\n")
    (place / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n")
    return place


def memory(place: pathlib.Path, anon: int) -> None:
    (place / "memory.stat").write_text(f"anon {anon}\nfile 800000000\nkernel 5\nshmem 24\nslab_reclaimable 9\n")


def nothing() -> resource.struct_rusage:
    return resource.struct_rusage([0.25, 0.5, *[0] * 14])


def test_the_group_of_a_job_is_found(tmp_path: pathlib.Path, group: pathlib.Path) -> None:
    assert job_group("7", tmp_path, OWN) == group


@pytest.mark.parametrize(
    "own", ["0::/user.slice\n", OWN.replace("job_7", "job_70"), "4:memory:/slurm/uid_1/job_7\n", ""]
)
@pytest.mark.usefixtures("group")
def test_another_group_is_not_the_jobs(tmp_path: pathlib.Path, own: str) -> None:
    assert job_group("7", tmp_path, own) is None


def test_memory_is_what_the_job_needed_at_its_highest_without_files(group: pathlib.Path) -> None:
    meter = Meter(group)
    for anon in (1000, 7000, 2000):
        memory(group, anon)
        meter.look()
    (group / "cpu.stat").write_text("usage_usec 4000000\n")

    assert meter.result(nothing()) == {
        "cpu_seconds": 2.5,
        "memory_bytes": 7024,
        "memory_with_files_bytes": 900000000,
    }


def test_without_a_group_the_kernel_says_what_the_program_used() -> None:
    program = resource.struct_rusage([0.25, 0.5, 2048, *[0] * 13])

    assert Meter(None).result(program) == {
        "cpu_seconds": 0.75,
        "memory_bytes": 2048 * 1024,
        "memory_with_files_bytes": None,
    }


def test_a_process_that_the_kernel_killed_is_seen(group: pathlib.Path) -> None:
    meter = Meter(group)
    before = meter.out_of_memory()
    (group / "memory.events").write_text("oom 1\noom_kill 1\n")

    assert (before, meter.out_of_memory()) == (False, True)
