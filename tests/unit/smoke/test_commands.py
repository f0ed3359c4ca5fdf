"""What the smoke test reads from Slurm's commands and says to them."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.slurm.nodes import Node
from ansible.module_utils.slurmstead.smoke import commands as smoke_commands


@pytest.mark.parametrize(
    ("partitions", "covered"),
    [
        ({"a": ("main",), "b": ("main",)}, [("main", ["a", "b"])]),
        ({"a": ("main", "arm"), "b": ("arm",), "c": ("x86",)}, [("main", ["a"]), ("arm", ["b"]), ("x86", ["c"])]),
        ({"a": ("all", "arm"), "b": ("all", "x86")}, [("all", ["a", "b"])]),
        ({"a": ()}, []),
        ({"a": ("x86",), "b": ()}, [("x86", ["a"])]),
    ],
)
def test_partitions_are_chosen_to_cover_all_nodes(
    partitions: dict[str, tuple[str, ...]], covered: list[tuple[str, list[str]]]
) -> None:
    nodes = {name: Node(name, "idle", partitions=given) for name, given in partitions.items()}

    assert smoke_commands.cover(nodes, nodes) == covered


@pytest.mark.parametrize(
    ("number", "most", "sizes"), [(0, 1, []), (1, 16, [1]), (3, 16, [1, 1, 1]), (400, 16, [25] * 16), (5, 1, [5])]
)
def test_groups_have_nearly_equal_sizes(number: int, most: int, sizes: list[int]) -> None:
    names = [str(index) for index in range(number)]
    groups = smoke_commands.groups(names, most)

    assert [len(group) for group in groups] == sizes
    assert [name for group in groups for name in group] == names


LAUNCH = """\
srun: error: Task launch for StepId=76.0 failed on node n2: Zero Bytes were transmitted or received
srun: error: Application launch failed: Zero Bytes were transmitted or received
srun: Job step aborted
srun: error: Timed out waiting for job step to complete
"""
REVOKED = """\
srun: Required node not available (down, drained or reserved)
srun: job 31 queued and waiting for resources
srun: Job allocation 31 has been revoked
srun: Force Terminated JobId=31
"""
MUNGE = """\
sinfo: error: If munged is up, restart with --num-threads=10
sinfo: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file or directory
slurm_load_partitions: Protocol authentication error
"""


@pytest.mark.parametrize(
    ("stderr", "node", "said"),
    [
        (LAUNCH, "n2", "Task launch for StepId=76.0 failed on node n2: Zero Bytes were transmitted or received"),
        (LAUNCH, "n", "Task launch for StepId=76.0 failed on node n2: Zero Bytes were transmitted or received"),
        (REVOKED, "n2", "Required node not available (down, drained or reserved)"),
        (MUNGE, "", 'Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file or directory'),
        (
            "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
            "",
            "Unable to contact slurm",
        ),
        ("slurmstepd-n2: error: execve(): /usr/bin/python3: No such file or directory\n", "n2", "execve(): /usr/bin"),
        ("sbatch: error: Batch job submission failed: Invalid partition\n", "", "Batch job submission failed"),
        ("srun: job 31 queued and waiting for resources\n", "n2", ""),
        ("", "n2", ""),
    ],
)
def test_the_telling_line_of_an_error_is_found(stderr: str, node: str, said: str) -> None:
    found = smoke_commands.complaint(stderr, node)

    assert said in found
    assert bool(said) is bool(found)


def test_a_step_asks_for_one_task_on_each_of_its_nodes() -> None:
    command = smoke_commands.srun(smoke_commands.ask("smoke-a", "main", 64, 1, 50), ["n1", "n2", "n4"], ["/bin/true"])

    assert command[:3] == ["setpriv", "--pdeathsig=TERM", "srun"]
    assert {"--nodes=3", "--ntasks=3", "--ntasks-per-node=1", "--nodelist=n[1-2,4]", "--partition=main"} <= set(command)
    assert {"--cpus-per-task=1", "--mem=64M", "--time=1", "--deadline=now+110"} <= set(command)
    assert command[-1] == "/bin/true"


def test_no_job_takes_a_whole_node() -> None:
    options = smoke_commands.ask("smoke-a", "main", 64, 1, 50)

    assert "--exclusive" not in [*smoke_commands.srun(options, ["n1"], []), *smoke_commands.sbatch(options, "/share/x")]


def test_a_batch_job_writes_to_the_share() -> None:
    command = smoke_commands.sbatch(["--mem=64M"], "/share/home/alice/x")

    assert command[:3] == ["sbatch", "--parsable", "--mem=64M"]
    assert "--output=/share/home/alice/x/batch.out" in command


def test_wishes_of_the_caller_do_not_reach_slurm() -> None:
    given = {"SLURM_CONF": "/x/slurm.conf", "HOME": "/h", "PATH": "/opt/slurm", "LC_ALL": "de_DE.UTF-8"}
    wishes = {"SBATCH_PARTITION": "x", "SLURM_CPUS_PER_TASK": "8", "SQUEUE_FORMAT": "%i", "SRUN_CPUS_PER_TASK": "8"}
    seen = smoke_commands.environment({**wishes, **given})

    assert seen == {**given, "LC_ALL": "C", "PATH": "/opt/slurm:/usr/local/bin:/usr/bin:/bin"}
