"""Bare daemons are a whole cluster: users' jobs run on all nodes, wait for a place, and nodes can be drained."""

from __future__ import annotations

from tests.native.cluster import Cluster


def test_a_cluster_can_have_one_node(release: str) -> None:
    with Cluster(release) as cluster:
        assert cluster.run("srun", "hostname", user="alice") == "node1"
        assert cluster.run("srun", "--version").endswith(cluster.version)


def test_each_node_has_a_name_and_an_address_of_its_own(four: Cluster) -> None:
    program = "echo $(hostname) $(ip -oneline -4 address show eth0 | grep -o '10[0-9.]*')"

    seen = four.run("srun", "-N4", "sh", "-c", program, user="alice")

    assert dict(line.split() for line in seen.splitlines()) == {name: four.addresses[name] for name in four.nodes}


def test_a_job_runs_as_its_user_and_writes_to_a_home_that_all_nodes_share(four: Cluster) -> None:
    program = "id -un; pwd; hostname"

    four.run("sbatch", "--wait", "--nodelist=node2", "--output=said", f"--wrap={program}", user="bob")

    assert four.run("cat", "said", user="bob", on="node3").split() == ["bob", "/share/home/bob", "node2"]


def test_a_user_cannot_cancel_a_job_of_another(four: Cluster) -> None:
    number = four.run("sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 600", user="alice")

    refused = four.tried("scancel", number, user="bob")
    four.run("scancel", number, user="alice")

    assert "Access/permission denied" in refused.stderr
    four.wait_until_idle()


def test_cancelled_arrays_of_a_user_keep_no_other_from_submitting(four: Cluster) -> None:
    # More than Slurm's own default of 10000 would hold, and than 25000.
    loop = "for i in 1 2 3; do scancel $(sbatch --parsable --hold --array=0-9999 --output=/dev/null --wrap=:); done"
    four.run("sh", "-euc", loop, user="alice")

    done = four.tried("timeout", "10", "sbatch", "--hold", "--output=/dev/null", "--wrap=:", user="bob")
    four.run("scancel", "--user=bob")
    assert done.returncode == 0, done.stderr


def test_every_task_of_an_array_runs(four: Cluster) -> None:
    program = "echo $SLURM_ARRAY_TASK_ID > task-$SLURM_ARRAY_TASK_ID"

    # sbatch looks after 2, 10, 42 and 74 s whether they have ended.
    submit = ("sbatch", "--wait", "--array=1-40", "--mem=10", "--output=/dev/null")
    four.run(*submit, f"--wrap={program}", user="alice", seconds=120)

    assert four.run("sh", "-c", "cat task-* | sort -n", user="alice").split() == [str(n) for n in range(1, 41)]


def test_a_drained_node_gets_no_job_until_it_is_resumed(four: Cluster) -> None:
    four.run("scontrol", "update", "NodeName=node1", "State=DRAIN", "Reason=test")
    waits = ["sbatch", "--parsable", "--nodelist=node1", "--output=/dev/null", "--wrap=true"]
    number = four.run(*waits, user="alice")
    elsewhere = four.run("srun", "-N3", "hostname", user="alice")
    state = ["squeue", "--noheader", "--format=%T", f"--jobs={number}"]

    assert "node1" not in elsewhere.split()
    assert (four.states()["node1"], four.run(*state)) == ("drained", "PENDING")
    four.run("scontrol", "update", "NodeName=node1", "State=RESUME")
    four.wait_for(lambda: f" {number} " not in f" {four.run('squeue', '--noheader', '--format=%A')} ", 60, "it runs")
    four.wait_until_idle()
