"""What is read of a machine, on the machine that runs the tests."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.doctor.facts import machine, services, slurm
from ansible.module_utils.slurmstead.slurm import daemons


@pytest.fixture
def daemon(tmp_path: pathlib.Path) -> Iterator[tuple[pathlib.Path, int]]:
    """A program and the number of a process that runs it."""
    program = tmp_path / "daemon"
    shutil.copy(shutil.which("sleep") or "", program)
    with subprocess.Popen([program, "60"]) as process:
        yield program, process.pid
        process.kill()


def test_a_process_is_as_old_as_its_program_until_that_is_replaced(daemon: tuple[pathlib.Path, int]) -> None:
    program, pid = daemon
    assert services.outdated(pid) == ""

    new = program.with_suffix(".new")
    shutil.copy(program, new)
    new.replace(program)

    assert services.outdated(pid) == str(program)


def test_the_start_of_a_process_is_known(daemon: tuple[pathlib.Path, int]) -> None:
    assert services.started(daemon[1]) == pytest.approx(time.time(), abs=30)
    assert services.started(0) == 0.0


def test_code_of_a_library_that_was_replaced_is_seen() -> None:
    maps = (
        "7f00-7f01 r-xp 00000000 08:01 11 /usr/lib/libmunge.so.2.0.0\n"
        "7f02-7f03 r--p 00000000 08:01 12 /usr/lib/locale/C.utf8 (deleted)\n"
        "7f04-7f05 r-xp 00000000 08:01 13 /usr/lib/libslurm.so.38 (deleted)\n"
    )
    replaced = services.DELETED.search(maps)

    assert replaced is not None
    assert replaced[1] == "/usr/lib/libslurm.so.38"


@pytest.mark.parametrize(
    ("journal", "said"),
    [
        ("slurmctld: error: no state\nslurmctld: fatal: no room\nslurmctld.service: Failed with result", "no room"),
        ("slurmctld: fatal: no room\nslurmctld: fatal: no rights\n", "no rights"),
        ("munged: Error: Logfile is insecure\n", "Logfile is insecure"),
        ("slurmd: error: cannot send\nStopped slurmd.service\n", ""),
    ],
)
def test_the_last_words_of_a_daemon_are_why_it_ended(monkeypatch: pytest.MonkeyPatch, journal: str, said: str) -> None:
    monkeypatch.setattr(services, "run", lambda *_: (0, journal, ""))

    assert services.died_of("slurmctld") == said


def test_keys_can_be_compared_within_a_run_only(tmp_path: pathlib.Path) -> None:
    one, same, other = (tmp_path / name for name in ("one", "same", "other"))
    for path, content in ((one, b"secret"), (same, b"secret"), (other, b"another")):
        path.write_bytes(content)
        path.chmod(0o400)
    digest = {path.name: machine.key("salt", path)["digest"] for path in (one, same, other)}

    assert digest["one"] == digest["same"] != digest["other"]
    assert machine.key("another salt", one)["digest"] != digest["one"]
    assert machine.key("salt", one)["mode"].startswith("0400 ")
    assert "secret" not in str(machine.key("salt", one))


def test_a_key_that_is_missing_is_no_failure(tmp_path: pathlib.Path) -> None:
    assert machine.key("salt", tmp_path / "none") == {"error": "No such file or directory"}


def test_a_directory_that_is_missing_says_so_and_another_says_its_space(tmp_path: pathlib.Path) -> None:
    missing = str(tmp_path / "none")
    found = machine.paths([missing, "/"])

    assert found[missing] == {"source": None, "error": "No such file or directory"}
    assert found["/"]["source"]
    assert 0 <= found["/"]["free"] <= found["/"]["size"]


def test_a_share_that_never_answers_costs_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    run, waited = machine.run, []

    def hangs(*command: str, seconds: float) -> tuple[int, str, str]:
        if "/share/." not in command:
            return run(*command, seconds=seconds)
        waited.append(float(command[2]))
        return 137, "", ""

    monkeypatch.setattr(machine, "run", hangs)
    found = machine.paths(["/", "/share"])

    assert found["/share"]["error"] == "no answer in 8 s"
    assert found["/"]["size"] > 0
    assert sum(waited) <= 12


def test_directories_of_one_file_system_are_known_as_such(tmp_path: pathlib.Path) -> None:
    (tmp_path / "below").mkdir()
    found = machine.paths([str(tmp_path), str(tmp_path / "below"), "/proc"])

    one, same, other = (state["id"] for state in found.values())
    assert one == same != other


def test_names_are_resolved_and_unknown_ones_have_no_address() -> None:
    assert machine.resolved(["localhost", "no-such-name.invalid"]) == {
        "localhost": ["127.0.0.1"],
        "no-such-name.invalid": [],
    }


def test_people_are_known_by_both_numbers() -> None:
    assert all(len(numbers) == 2 for numbers in machine.accounts().values())
    assert "root" not in machine.accounts()


def test_a_machine_without_daemons_of_slurm_is_not_asked() -> None:
    assert slurm.look(["munge"]) == {}


def test_a_controller_whose_state_is_gone_is_seen(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slurm.conf").write_text(f"StateSaveLocation={tmp_path}/none\nSlurmctldLogFile={tmp_path}/log\n")
    monkeypatch.setattr(slurm, "OWN", tmp_path)

    assert slurm.look(["slurmctld"])["unwritable"] == [f"{tmp_path}/none: No such file or directory"]


def test_a_slurmctld_that_shows_no_nodes_in_time_did_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*command: str, seconds: float = 10) -> tuple[int, str, str]:
        return (0, "HASH_VAL = Match\n", "") if "config" in command else (124, "", "no answer")

    for asked in (slurm, daemons):
        monkeypatch.setattr(asked, "run", run)

    assert slurm.look(["slurmctld"])["error"] == "it reports no nodes"


def test_files_of_packages_and_other_daemons_are_no_configuration(tmp_path: pathlib.Path) -> None:
    for name in ("plugstack.conf", "slurm.conf", "slurm.key", "slurmdbd.conf"):
        (tmp_path / name).write_text("x")
    os.symlink(tmp_path / "slurm.conf", tmp_path / "cgroup.conf")

    assert slurm.files(tmp_path) == {"slurm.conf": "x", "cgroup.conf": "x"}
