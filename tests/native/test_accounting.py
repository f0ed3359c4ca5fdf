"""The records of jobs: switched on under jobs, without slurmdbd, without the database, and restored from a dump."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.accounting import storage
from ansible.module_utils.slurmstead.change.change import CERTAIN
from ansible.module_utils.slurmstead.reach import remote_call
from slurmstead.paths import ROOT
from tests.native import conf
from tests.native.cluster import CONTROL, Cluster
from tests.native.gate import program

STORAGE = "from ansible.module_utils.slurmstead.accounting import storage\n"
STATE = "/var/lib/slurm/slurmctld"
CLUSTER_ID = ROOT / "roles/accounting/files/cluster_id.py"
SMALL_DISK = """
set -e
mkdir /small
mount -t tmpfs -o size=260m tmpfs /small
cp -a /var/lib/mysql/. /small
chown mysql:mysql /small
mount --move /small /var/lib/mysql 2>/dev/null || mount --bind /small /var/lib/mysql
"""
LOAD = 1000
"""Jobs that end while slurmdbd is off: what four full nodes do in an hour with jobs of a minute."""

BACKUP = "/root/backup"
SAVED = f"""
import pathlib
from ansible.module_utils.slurmstead.slurm import state
state.wait_until_saved(pathlib.Path({STATE!r}))
"""
SAVE = f"""{SAVED}
state.place(state.read(pathlib.Path({STATE!r})), pathlib.Path({BACKUP!r}), {{uid}}, {{uid}})
storage.hand_over(storage.dump(), pathlib.Path("{BACKUP}-records"))
"""
LOSE = f"""
set -e
rm -rf {STATE} /var/lib/mysql/* /var/lib/mysql/.??*
mariadb-install-db --user=mysql --skip-test-db >/dev/null
cp -a {BACKUP} {STATE}
"""
RESTORE = f'import pathlib\nstorage.restore(pathlib.Path("{BACKUP}-records"))\n'
SEFF = ROOT / "roles/accounting/files/seff.py"
# Without a start, sacct shows jobs since midnight.
SACCT = ("sacct", "--allusers", "--noheader", "--parsable2", "--allocations", "--starttime=now-1days")
JOB = ("sbatch", "--parsable", "--output=/dev/null", "--mem=10")


@pytest.fixture(scope="module")
def recorded(release: str) -> Iterator[Cluster]:
    """A cluster whose jobs are recorded; a test leaves its daemons running and its nodes idle."""
    with Cluster(release, 2, database=True) as cluster:
        yield cluster


def submit(cluster: Cluster, what: str, number: int = 1) -> list[str]:
    return [cluster.run(*JOB, f"--wrap={what}", user="alice") for _ in range(number)]


def records(cluster: Cluster) -> dict[str, str]:
    """The states of all recorded jobs, by number; empty if slurmdbd does not answer."""
    done = cluster.tried(*SACCT, "--format=JobID,State")
    return dict(line.split("|") for line in done.stdout.splitlines())


def wait_for_records(cluster: Cluster, numbers: list[str], state: str = "COMPLETED", seconds: float = 120) -> None:
    def all_there() -> bool:
        nonlocal known
        known = records(cluster)
        return {known.get(number) for number in numbers} == {state}

    known: dict[str, str] = {}
    try:
        cluster.wait_for(all_there, seconds, f"{len(numbers)} jobs are recorded as {state}")
    except AssertionError as error:
        error.add_note(f"others: { {number: known.get(number) for number in numbers if known.get(number) != state} }")
        raise


def queued(cluster: Cluster, state: str = "PENDING,RUNNING") -> int:
    """Return how many jobs are in the queue, each task of an array counted."""
    return len(cluster.run("squeue", "--noheader", "--array", f"--states={state}", "--format=%i").split())


def unsent(cluster: Cluster) -> int:
    """Return how many messages slurmctld has for slurmdbd."""
    (found,) = re.findall(r"DBD Agent queue size: (\d+)", cluster.run("sdiag"))
    return int(found)


def run(cluster: Cluster, text: str) -> str:
    """Run a program on control, with all of our modules that it imports."""
    sources = remote_call.sources(remote_call.imports("", text))
    return cluster.run("python3", "-", text=remote_call.PROGRAM.partition("called =")[0].format(sources=sources) + text)


def register(cluster: Cluster) -> None:
    """What the role does once slurmdbd answers."""
    run(
        cluster,
        f"{STORAGE}assert not storage.is_registered('control', 'native')\nstorage.register('control', 'native')\n",
    )


def compare_ids(cluster: Cluster) -> None:
    """What systemd does before each start of slurmctld."""
    cluster.run("python3", "-", STATE, "native", text=CLUSTER_ID.read_text())


def test_switched_on_under_waiting_jobs_they_run_with_their_numbers(release: str) -> None:
    with Cluster(release, 2, database=True, accounting=False) as cluster:
        numbers = submit(cluster, "until [ -e go ]; do sleep 0.2; done", 8) + submit(cluster, "true", 50)
        queue = ("squeue", "--noheader", "--sort=i", "--format=%i %T")
        states = [
            f"{number} {state}" for number, state in zip(numbers, ["RUNNING"] * 8 + ["PENDING"] * 50, strict=True)
        ]
        cluster.wait_for(lambda: cluster.run(*queue).splitlines() == states, 300, "eight jobs run, fifty wait")
        cluster.configure(**conf.ACCOUNTING)
        register(cluster)
        compare_ids(cluster)
        cluster.restart(CONTROL)
        cluster.run("scontrol", "reconfigure")
        assert {line.split()[0] for line in cluster.run(*queue).splitlines()} == {*numbers}
        cluster.run("touch", "go", user="alice")

        wait_for_records(cluster, numbers)

        assert sorted(records(cluster), key=int) == numbers
        assert "MISMATCH" not in cluster.run("cat", "/var/log/slurmctld")


def test_the_gate_passes_a_configuration_with_accounting(release: str) -> None:
    with Cluster(release, 1, database=True, accounting=False) as cluster:
        number = submit(cluster, "sleep 3600")
        register(cluster)
        compare_ids(cluster)

        said = program.run(cluster, "publish", json.dumps(conf.ACCOUNTING))
        cluster.run("scontrol", "reconfigure")

        assert "accounting_storage/slurmdbd" in cluster.run("scontrol", "show", "config"), said
        assert number == [line.split()[0] for line in cluster.run("squeue", "-h").splitlines()]


@pytest.mark.slow
def test_a_wrong_id_ends_slurmctld_unless_it_is_compared() -> None:
    with Cluster("trixie", 1, database=True, accounting=False) as cluster:
        number = submit(cluster, "sleep 1")
        cluster.configure(**conf.ACCOUNTING)
        cluster.stop(CONTROL)
        # Until 25.11 the database's ID wins: the first start registers the cluster, and ends.
        cluster.tried("timeout", "20", "slurmctld", "-D")
        assert not cluster.daemon()

        compare_ids(cluster)
        cluster.start(CONTROL)

        wait_for_records(cluster, number)
        compare_ids(cluster)
        assert cluster.tried("test", "-e", f"{STATE}/clustername").returncode == 0, "the same ID stays"


def test_no_record_is_lost_while_slurmdbd_is_off(recorded: Cluster) -> None:
    early = submit(recorded, "sleep 2", 4)
    recorded.end("slurmdbd")
    late = submit(recorded, "true", 10)
    recorded.wait_for(lambda: not recorded.run("squeue", "-h"), 60, "all jobs end without slurmdbd")
    recorded.restart(CONTROL)
    after = submit(recorded, "true", 2)

    recorded.start_slurmdbd()

    wait_for_records(recorded, early + late + after)
    assert len(early + late + after) == 16


@pytest.mark.slow
def test_slurmctld_killed_while_slurmdbd_is_off_loses_only_what_it_has_not_saved(recorded: Cluster) -> None:
    # slurmctld starts without slurmdbd only from files that it writes when it stops, and every few minutes.
    recorded.restart(CONTROL)
    known = submit(recorded, "until test -e go; do sleep 0.5; done", 2)
    ending = submit(recorded, "until test -e stop; do sleep 0.5; done", 2)
    wait_for_records(recorded, known + ending, "RUNNING")
    recorded.end("slurmdbd")
    saved = submit(recorded, "true", 6)
    recorded.wait_for(lambda: queued(recorded) == 4, 120, "six jobs have ended")
    recorded.restart(CONTROL)
    unsaved = submit(recorded, "true", 6)
    recorded.run("touch", "stop", user="alice")
    recorded.wait_for(lambda: queued(recorded) == 2, 120, "eight more jobs have ended")
    waiting = [recorded.run(*JOB, "--hold", "--wrap=true", user="alice") for _ in range(6)]
    # docs/faults.md: slurmctld can also forget what happened in its last seconds.
    run(recorded, SAVED)
    recorded.stop(CONTROL, "KILL")
    recorded.run("touch", "go", user="alice")

    recorded.start(CONTROL)
    recorded.run("scontrol", "release", *waiting)
    after = submit(recorded, "true", 2)
    recorded.wait_for(lambda: not queued(recorded), 180, "all jobs end without slurmdbd")
    recorded.run("rm", "go", "stop", user="alice")
    recorded.start_slurmdbd()

    # 22.05 reports a job again until slurmdbd has it; 24.11 reports a new one once.
    numbers = [*known, *ending, *saved, *after, *([*unsaved, *waiting] if recorded.release == "bookworm" else ())]
    wait_for_records(recorded, numbers)
    recorded.wait_for(lambda: not unsent(recorded), 60, "everything is sent")
    # Each has its end, and none is there twice.
    shown = recorded.run(*SACCT, "--duplicates", "--format=JobID,End", f"--jobs={','.join(numbers)}")
    assert sorted(line.split("|")[0] for line in shown.splitlines()) == sorted(numbers)
    assert "Unknown" not in shown


@pytest.mark.slow
def test_no_record_is_lost_if_the_database_is_killed(recorded: Cluster) -> None:
    numbers = submit(recorded, "sleep 0.3", 20)
    recorded.wait_for(lambda: "COMPLETED" in records(recorded).values(), 60, "a job is recorded")
    recorded.end("mariadbd", "KILL")
    numbers += submit(recorded, "sleep 0.3", 10)
    recorded.wait_for(lambda: not recorded.run("squeue", "-h"), 60, "all jobs end without the database")

    recorded.start_database()
    if not recorded.tried("pgrep", "-x", "slurmdbd").stdout:
        recorded.start_slurmdbd()

    wait_for_records(recorded, numbers)
    assert len(numbers) == 30


@pytest.mark.slow
def test_no_record_is_lost_while_the_disk_of_the_database_is_full(release: str) -> None:
    with Cluster(release, 2, database=True) as cluster:
        cluster.end("slurmdbd")
        cluster.end("mariadbd")
        cluster.run("sh", "-c", SMALL_DISK)
        cluster.start_database()
        cluster.start_slurmdbd()
        cluster.tried("dd", "if=/dev/zero", "of=/var/lib/mysql/filler", "bs=64k")
        assert cluster.run("df", "--output=avail", "/var/lib/mysql").split()[-1] == "0"

        numbers = submit(cluster, "true", 60)
        cluster.wait_for(lambda: not cluster.run("squeue", "-h"), 120, "all jobs end without room for records")
        cluster.run("rm", "/var/lib/mysql/filler")
        for name, start in {"mariadbd": cluster.start_database, "slurmdbd": cluster.start_slurmdbd}.items():
            if not cluster.tried("pgrep", "-x", name).stdout:
                start()

        wait_for_records(cluster, numbers)
        assert len(numbers) == 60


@pytest.mark.slow
def test_a_dump_is_restored_and_what_it_replaces_is_kept(recorded: Cluster) -> None:
    before = submit(recorded, "true", 3)
    wait_for_records(recorded, before)
    known = records(recorded)
    run(recorded, f"{STORAGE}storage.hand_over(storage.dump())\n")
    later = submit(recorded, "true")
    wait_for_records(recorded, later)

    recorded.end("slurmdbd")
    kept = run(recorded, f"{STORAGE}print(storage.restore())\n")
    recorded.start_slurmdbd()

    assert records(recorded) == known
    assert later[0] in recorded.run("sh", "-c", f"zcat {kept}")
    assert recorded.tried("test", "-e", "/var/lib/slurmstead/accounting/restore.sql.gz").returncode == 1


@pytest.mark.slow
def test_no_record_is_lost_while_slurmdbd_is_off_under_load(release: str) -> None:
    with Cluster(release, 8, database=True) as cluster:
        early = submit(cluster, "sleep 5", 4)
        cluster.end("slurmdbd")
        array = cluster.run(*JOB, f"--array=1-{LOAD}", "--wrap=true", user="alice")
        cluster.wait_for(lambda: queued(cluster) < LOAD / 2, 900, "half of the jobs end")
        cluster.restart(CONTROL)
        time.sleep(CERTAIN)
        # Jobs that slurmctld had chosen to start when it stopped are on no node. It asks the nodes for their jobs each
        # half an hour, and slurmd reports them when it starts.
        for node in cluster.nodes:
            cluster.restart(node)
        cluster.wait_for(lambda: not cluster.run("squeue", "-h"), 900, "all jobs end without slurmdbd")
        kept = unsent(cluster)

        cluster.start_slurmdbd()

        numbers = [*early, *(f"{array}_{task}" for task in range(1, LOAD + 1))]
        wait_for_records(cluster, numbers, seconds=300)
        print(f"{release}: {kept} messages of {len(numbers)} jobs")
        assert LOAD < kept <= 5 * len(numbers), "docs/accounting.md says how many MaxDBDMsgs hold"
        assert sorted(records(cluster)) == sorted(numbers)


@pytest.mark.slow
def test_after_a_restore_onto_an_empty_disk_each_job_has_one_record(release: str) -> None:
    with Cluster(release, 2, database=True) as cluster:
        numbers = submit(cluster, "true", 4)
        wait_for_records(cluster, numbers)
        running = submit(cluster, "until test -e go; do sleep 0.5; done", 8)
        cluster.wait_for(lambda: queued(cluster, "RUNNING") == 8, 60, "eight jobs run")
        pending = submit(cluster, "true", 20)
        run(cluster, STORAGE + SAVE.format(uid=cluster.run("id", "--user", "slurm")))

        cluster.stop(CONTROL, "KILL")
        for name in ("slurmdbd", "mariadbd"):
            cluster.end(name, "KILL")
        cluster.run("sh", "-c", LOSE)
        cluster.start_database()
        cluster.run("mariadb", text=storage.SETUP)
        run(cluster, STORAGE + RESTORE)
        cluster.start_slurmdbd()
        compare_ids(cluster)
        cluster.start(CONTROL)
        cluster.run("touch", "go", user="alice")

        numbers += running + pending
        wait_for_records(cluster, numbers, seconds=300)
        shown = cluster.run(*SACCT, "--duplicates", "--format=JobID")
        assert sorted(shown.split()) == sorted(numbers)
        (following,) = submit(cluster, "true")
        assert int(following) == int(pending[-1]) + 1


@pytest.mark.slow
def test_users_see_only_their_own_records(recorded: Cluster) -> None:
    # slurmdbd shows nothing to users whom it does not know.
    recorded.run("sacctmgr", "-i", "add", "account", "home")
    recorded.run("sacctmgr", "-i", "add", "user", "alice,bob", "account=home")
    number = submit(recorded, "true")
    wait_for_records(recorded, number)
    own, other = (
        recorded.run("sacct", "--allusers", "-nP", "-X", "--format=JobID", user=user) for user in ("alice", "bob")
    )

    assert number[0] in own.splitlines()
    assert other == ""
    shown = recorded.run("python3", "-", number[0], text=SEFF.read_text(), user="alice")
    assert shown.splitlines()[0] == f"Job {number[0]} of alice in account home: COMPLETED, exit code 0:0", shown
    assert "Memory: " in shown and " of 10 MiB used" in shown
    assert recorded.tried("python3", "-", number[0], text=SEFF.read_text(), user="bob").returncode == 1


@pytest.mark.slow
def test_a_set_up_database_is_recognized(recorded: Cluster) -> None:
    look = f"{STORAGE}print(storage.is_set_up())\n"
    assert run(recorded, look) == "True"

    recorded.run("mariadb", text="REVOKE ALL ON slurm_acct_db.* FROM 'slurm'@'localhost';")
    try:
        assert run(recorded, look) == "False"
    finally:
        recorded.run("mariadb", text=run(recorded, look.replace("is_set_up()", "SETUP")))
