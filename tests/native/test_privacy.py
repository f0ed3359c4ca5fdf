"""Users see their own jobs, root sees all, and what users and our own programs ask of Slurm is still answered."""

from __future__ import annotations

from ansible.module_utils.slurmstead.slurm import jobs
from tests.native.cluster import Cluster

SECRET = "alice-applies-for-a-job"


def submit(cluster: Cluster, user: str) -> str:
    name = SECRET if user == "alice" else "nothing"
    words = ("--output=/dev/null", "--nodelist=node2", f"--job-name={name}", f"--comment={name}", "--wrap=sleep 600")
    return cluster.run("sbatch", "--parsable", *words, user=user)


def queue(cluster: Cluster, user: str) -> list[str]:
    return sorted(cluster.run("squeue", "--all", "--noheader", "--format=%u", user=user).split())


def test_users_see_their_own_jobs_only(four: Cluster) -> None:
    number, _ = submit(four, "alice"), submit(four, "bob")

    answers = [
        four.tried(*words, user="bob")
        for words in (
            ("squeue", "--all", "--states=all", "--Format=ALL"),
            ("squeue", "--steps"),
            ("scontrol", "show", "job", number),
            ("scontrol", "show", "jobs"),
            ("scontrol", "show", "steps"),
            ("sinfo", "--Node", "--long"),
            ("scontrol", "show", "nodes"),
            ("sprio",),
        )
    ]
    seen = {user: queue(four, user) for user in ("alice", "bob", "root")}
    four.run("scancel", "--user=alice")
    four.run("scancel", "--user=bob")
    four.wait_until_idle()

    assert seen == {"alice": ["alice"], "bob": ["bob"], "root": ["alice", "bob"]}
    said = "".join(answer.stdout + answer.stderr for answer in answers)
    assert "bob" in said
    assert SECRET not in said


def test_programs_of_root_see_all_jobs(four: Cluster) -> None:
    submit(four, "alice")
    four.wait_until("mixed", ["node2"])

    shown = four.run(*jobs.SQUEUE)
    four.run("scancel", "--user=alice")
    four.wait_until_idle()

    (job,) = [job for job in jobs.read_queue(shown).jobs if job.running]
    assert (job.user, job.nodes) == ("alice", ("node2",))


def test_no_name_of_a_job_looks_like_another_job(four: Cluster) -> None:
    name = "a\n7|RUNNING|main|node1|7|None|root\n8|RUNNING|main|[|8|None|root|b"
    number = four.run("sbatch", "--parsable", "--hold", f"--job-name={name}", "--wrap=true", user="alice")

    plain, named = (
        jobs.read_queue(four.run(*jobs.SQUEUE[:-1], words, "--states=PENDING")) for words in (jobs.FORMAT, jobs.NAMED)
    )
    four.run("scancel", number)
    four.wait_until_idle()

    assert [job.number for job in plain.jobs] == [number]
    assert [job.name for job in named.jobs if job.number == number] == ["a"]


def test_users_see_nodes_partitions_and_settings(four: Cluster) -> None:
    nodes = four.run("sinfo", "--noheader", "--Node", "--format=%N %T", user="bob").splitlines()
    partitions = four.run("sinfo", "--noheader", "--format=%R", user="bob").split()
    settings = four.run("scontrol", "show", "config", user="bob")

    assert len(nodes) == len(four.nodes)
    assert set(partitions) == {"main"}
    assert "jobs" in settings.partition("PrivateData")[2].splitlines()[0]


def test_the_setting_is_changed_without_a_restart(four: Cluster) -> None:
    number = submit(four, "alice")

    def change(value: str | None, seen: list[str]) -> None:
        four.configure(PrivateData=value)
        four.run("scontrol", "reconfigure")
        four.wait_for(lambda: queue(four, "bob") == seen, 30, f"bob sees {seen}")

    # Both in one test: the second restores what other tests of this file need.
    change(None, ["alice"])
    change("jobs", [])
    four.run("scancel", number)
    four.wait_until_idle()
    assert queue(four, "bob") == []
