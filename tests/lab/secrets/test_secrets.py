"""No secret is anywhere but in its own file: not during up, backup, restore and rotate-key, and not after them.

Each secret is a text that nothing else contains. Programs on all machines and on this computer look at the arguments
and environments of all processes the whole time, and at all files that are written.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import pathlib
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import pytest

from slurmstead.paths import PLAYBOOKS

WATCH = (pathlib.Path(__file__).parent / "watch.py").read_text()
PLACE = "/root/stead-secrets"
ROOTS = "/etc /run /var/log /var/lib/slurm /var/tmp /tmp /dev/shm /root /home /usr/local"

KEY = "/etc/munge/munge.key"
DATABASE = "/etc/slurm/slurmdbd.conf"
BROKER = "/etc/slurmstead/celery_broker.json"
CLIENT = "/etc/slurmstead/celery/alice.json"
INTENDED = {"munge": {KEY}, "database": {DATABASE}, "broker": {BROKER, CLIENT}, "become": set[str]()}
"""Where each secret may be, readable only by its owner."""


@dataclasses.dataclass
class Seen:
    """What was seen: `machines` and `here` as watch.py prints it, the runs' output by name, and the archive."""

    canaries: dict[str, str]
    machines: dict[str, dict[str, Any]]
    here: dict[str, Any]
    outputs: dict[str, str]
    archive: pathlib.Path
    new_key: bytes
    modes: dict[str, str]


def put(lab: Any, name: str, path: str, content: str, owner: str = "root", mode: str = "600") -> None:
    """Write a secret to a machine; it is in no argument of a program, which sudo would log."""
    config = str(lab.directory / "ssh_config")
    command = (
        f"sudo sh -c 'mkdir -p $(dirname {path}); umask 77; cat > {path}; chown {owner} {path}; chmod {mode} {path}'"
    )
    subprocess.run(["ssh", "-F", config, f"debian@{name}", command], input=content, text=True, check=True, timeout=60)


def watch(lab: Any, name: str) -> dict[str, Any]:
    """Watch a machine until it is told to stop."""
    config = str(lab.directory / "ssh_config")
    command = ["ssh", "-F", config, f"debian@{name}", f"sudo python3 - {PLACE}"]
    done = subprocess.run(command, input=WATCH, capture_output=True, text=True, check=True, timeout=3000)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_watcher_sees_a_leak_of_each_kind(lab: Any) -> None:
    name, canary = lab.workers[0], f"CANARY{secrets.token_hex(9)}"
    put(lab, name, f"{PLACE}/secrets.json", json.dumps({"planted": canary}))
    put(lab, name, f"{PLACE}/roots", ROOTS)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        watched = pool.submit(watch, lab, name)
        lab.insist(name, f"test -e {PLACE}/ready")
        plant = (
            f"echo {canary} > /run/planted; chmod 644 /run/planted; timeout 3 sh -c 'sleep 2; true {canary}'; "
            f"A={canary} sleep 2; logger planted-{canary}; printf %s {canary} | base64 > /etc/planted; "
            f"chmod 600 /etc/planted; touch {PLACE}/stop"
        )
        lab.root(name, plant)
        hits = {(hit[1], hit[3]) for hit in watched.result()["hits"]}
        paths = {hit[2] for hit in watched.result()["hits"]}
    lab.root(name, f"rm -r {PLACE} /run/planted /etc/planted")

    assert {("cmdline", ""), ("environ", ""), ("journal", ""), ("file", "others"), ("file", "owner")} <= hits
    assert {"/run/planted", "/etc/planted"} <= paths


@pytest.fixture(scope="module")
def seen(lab: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """Run everything that touches a secret, under observation."""
    canaries = {name: f"CANARY{secrets.token_hex(9)}" for name in INTENDED}
    place = tmp_path_factory.mktemp("secrets")
    # Of the runs alone, so that nothing else has to be searched; short, because the names of sockets are (unix(7)).
    own = tempfile.mkdtemp(prefix="stead-")
    (place / "secrets.json").write_text(json.dumps(canaries))
    (place / "roots").write_text(f"{pathlib.Path.home()}/.ansible {own}")
    (place / "become").write_text(canaries["become"])
    before = lab.root(lab.control, f"cat {DATABASE} 2>/dev/null || true")

    for name in lab.names:
        put(lab, name, f"{PLACE}/secrets.json", json.dumps(canaries))
        put(lab, name, f"{PLACE}/roots", ROOTS)
    put(lab, lab.control, KEY, 6 * canaries["munge"], "munge:munge", "400")
    put(lab, lab.control, BROKER, json.dumps({"alice": canaries["broker"]}), mode="400")
    put(lab, lab.control, DATABASE, f"DbdHost=localhost\nStoragePass={canaries['database']}\n", "slurm:slurm")

    archive, outputs = place / "archive.tar.gz", {}
    patch = pytest.MonkeyPatch()
    patch.setenv("TMPDIR", own)
    with concurrent.futures.ThreadPoolExecutor(len(lab.names) + 1) as pool:
        watched = {name: pool.submit(watch, lab, name) for name in lab.names}
        here = pool.submit(
            subprocess.run, [sys.executable, "-c", WATCH, str(place)], capture_output=True, text=True, check=True
        )
        try:
            while not (place / "ready").exists():
                time.sleep(0.1)
            lab.everywhere(lambda name: lab.insist(name, f"test -e {PLACE}/ready"))
            common = ("-vvv", "--diff", "--become-password-file", str(place / "become"))
            broker = ("-e", '{"celery_broker_users": ["alice"]}')
            steps = {
                "up": (*common, *broker),
                "backup": (*common, "-e", f"backup_output={archive}", str(PLAYBOOKS / "backup-cluster.yml")),
                "rotate-key": (*common, str(PLAYBOOKS / "rotate-key.yml")),
            }
            for step, words in steps.items():
                run = lab.ansible(*words, seconds=1800)
                outputs[step] = run.output
                assert run.code == 0, f"{step}: {run.output[-5000:]}"
            new_key = lab.root(lab.control, f"base64 --wrap=0 {KEY}").encode()
            # A new control node. In a container, a directory of the image cannot be renamed (EXDEV of overlayfs).
            lab.root(lab.control, f"systemctl stop slurmctld && rm -r {DATABASE} /var/lib/slurm/slurmctld")
            extra = ("-e", f"restore_archive={archive}", "-e", "restore_force=true")
            run = lab.ansible(*common, *broker, *extra, str(PLAYBOOKS / "restore-cluster.yml"), seconds=1800)
            outputs["restore"] = run.output
            assert run.code == 0, f"restore: {run.output[-5000:]}"
            files = f"{KEY} {DATABASE} {BROKER} {CLIENT}"
            shown = lab.root(lab.control, f"stat --format='%n %U:%G %a' {files}")
            modes = {line.partition(" ")[0]: line.partition(" ")[2] for line in shown.splitlines()}
        finally:
            (place / "stop").touch()
            lab.everywhere(lambda name: lab.root(name, f"touch {PLACE}/stop"))
            results = {name: future.result() for name, future in watched.items()}
            lab.everywhere(lambda name: lab.root(name, f"rm -r {PLACE}"))
            if not before:
                lab.root(lab.control, f"rm -f {DATABASE}")
            patch.undo()
            this_computer = json.loads(here.result().stdout)
            shutil.rmtree(own, ignore_errors=True)
    yield Seen(canaries, results, this_computer, outputs, archive, new_key, modes)


def test_the_watchers_looked_all_the_time(seen: Seen) -> None:
    for name, found in {**seen.machines, "this computer": seen.here}.items():
        assert found["looks"] > 100, name
    assert all(found["files"] > 200 for found in seen.machines.values())
    control = [hit for found in seen.machines.values() for hit in found["hits"] if hit[2] == KEY]
    assert control, "they would have seen the secrets where they belong"


def test_no_process_has_a_secret_in_its_arguments_or_environment(seen: Seen) -> None:
    places = {**seen.machines, "this computer": seen.here}

    leaks = [
        (name, *hit) for name, found in places.items() for hit in found["hits"] if hit[1] in ("cmdline", "environ")
    ]

    assert leaks == []


def test_no_file_of_a_machine_but_its_own_has_a_secret(seen: Seen) -> None:
    hits = [(name, *hit) for name, found in seen.machines.items() for hit in found["hits"] if hit[1] == "file"]

    # durable.write and config_files write a new file beside the old one, which only root can read.
    strangers = [hit for hit in hits if not any(hit[3].startswith((path, beside(path))) for path in INTENDED[hit[1]])]
    assert strangers == []
    assert [hit for hit in hits if hit[4] == "others"] == []


def beside(path: str) -> str:
    """Return how the name of a file that will replace a path begins."""
    directory, _, name = path.rpartition("/")
    return f"{directory}/.{name}."


def test_no_log_has_a_secret(seen: Seen) -> None:
    assert [(name, *hit) for name, found in seen.machines.items() for hit in found["hits"] if hit[1] == "journal"] == []


def test_this_computer_keeps_no_secret(seen: Seen) -> None:
    assert [hit for hit in seen.here["hits"] if hit[1] == "file"] == []


@pytest.mark.parametrize("step", ["up", "backup", "rotate-key", "restore"])
def test_no_output_has_a_secret(seen: Seen, step: str) -> None:
    output = seen.outputs[step]

    assert [name for name, text in seen.canaries.items() if text in output] == []
    assert seen.new_key[:40].decode() not in output


def test_the_archive_and_the_restored_files_are_their_owners(seen: Seen) -> None:
    assert seen.archive.stat().st_mode & 0o777 == 0o600
    assert seen.modes == {
        KEY: "munge:munge 400",
        DATABASE: "slurm:slurm 600",
        BROKER: "root:root 400",
        CLIENT: "alice:root 400",
    }
