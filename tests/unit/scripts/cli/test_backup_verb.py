"""`stead backup`, `restore` and `rotate-key`: from a command line to a playbook, and from that to an exit code."""

import pathlib

import pytest

from slurmstead.cli import cluster
from slurmstead.cluster import backup
from slurmstead.errors import ExitCode
from slurmstead.paths import LAB_INVENTORY

MESSAGE = {"path": "/b/lab.tar.gz", "bytes": 20480, "files": 12, "cluster": "lab", "slurm": "22.05.8"}


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ({"running": 3, "pending": 5}, "3 running and 5 pending jobs"),
        (None, "slurmctld did not answer, so the jobs are those of its last saved state"),
    ],
)
def test_a_report_says_what_was_kept(jobs, said):
    report = backup.parse([{"msg": "something else"}, {"msg": {**MESSAGE, "jobs": jobs}}])

    assert report is not None
    assert report.path == pathlib.Path("/b/lab.tar.gz")
    assert report.lines[0] == f"lab, Slurm 22.05.8, {said}, 12 files, 20 KiB, read back and compared"


def test_no_report_is_none():
    assert backup.parse([{"msg": "Nothing was changed"}]) is None


@pytest.mark.parametrize("name", ["nothing.tar.gz", "."], ids=["missing", "a directory"])
def test_an_archive_that_does_not_exist_is_not_looked_for_on_machines(stead, capsys, tmp_path, name):
    assert stead("restore", tmp_path / name, "-i", LAB_INVENTORY) == ExitCode.USAGE
    assert f"there is no archive {tmp_path / name}" in capsys.readouterr().err


def test_an_archive_is_named_by_whoever_restores(stead):
    assert stead("restore") == ExitCode.USAGE


@pytest.mark.parametrize("arguments", [["backup"], ["restore", __file__], ["rotate-key"]], ids=lambda words: words[0])
def test_an_inventory_that_is_missing_is_named(project, stead, capsys, arguments):
    assert stead(*arguments, "-i", project.path / "none.yml") == ExitCode.USAGE
    assert f"there is no inventory {project.path / 'none.yml'}" in capsys.readouterr().err


def test_an_archive_has_no_directory_made_for_it(stead, capsys, tmp_path):
    assert stead("backup", "--output", tmp_path / "missing" / "a.tar.gz", "-i", LAB_INVENTORY) == ExitCode.USAGE
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.slow
def test_a_cluster_that_could_not_be_backed_up_is_no_success(project, stead, capsys, monkeypatch):
    monkeypatch.setattr(backup, "PLAYBOOKS", project.path)
    project.playbook("- {name: Refuse, ansible.builtin.fail: {msg: no key}}", name="backup-cluster.yml")

    assert stead("backup", "-i", project.inventory("here"), "--plain") == ExitCode.TASK_FAILED
    assert "no key" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("options", "force"), [([], "False"), (["--force"], "True")])
def test_a_restore_is_told_the_archive_and_whether_jobs_are_given_up(project, stead, monkeypatch, options, force):
    monkeypatch.setattr(cluster, "PLAYBOOKS", project.path)
    archive = project.write("a.tar.gz", "")
    told = "{{ restore_archive }} {{ restore_force | bool }}"
    project.playbook(
        f"- ansible.builtin.copy: {{content: '{told}', dest: {project.path}/told, mode: '0600'}}",
        name="restore-cluster.yml",
    )
    inventory = project.inventory("here")
    # As a person gives it: relative to where they are.
    monkeypatch.chdir(project.path)

    assert stead("restore", archive.name, *options, "-i", inventory, "--plain") == ExitCode.OK
    assert (project.path / "told").read_text() == f"{archive} {force}"


@pytest.mark.slow
@pytest.mark.parametrize("then", ["'true'", "'false'"], ids=["and it went well", "and it failed later"])
def test_what_a_restore_kept_or_did_not_do_is_printed(project, stead, capsys, monkeypatch, then):
    monkeypatch.setattr(cluster, "PLAYBOOKS", project.path)
    notes = "[an earlier run has already restored this archive]"
    tasks = f"- debug: {{msg: {{restored: {notes}}}}}\n- command: {then}"
    project.playbook(tasks, name="restore-cluster.yml")

    stead("restore", project.write("a.tar.gz", ""), "-i", project.inventory("here"), "--plain")
    assert "an earlier run has already restored this archive" in capsys.readouterr().out


@pytest.mark.slow
def test_a_machine_that_gets_no_other_key_is_named_and_the_others_get_it(project, stead, capsys, monkeypatch):
    monkeypatch.setattr(cluster, "PLAYBOOKS", project.path)
    tasks = "- {name: Give the key, ansible.builtin.command: 'true'}\n- {name: Look, ansible.builtin.command: 'true'}"
    project.playbook(tasks, name="rotate-key.yml")

    assert stead("rotate-key", "-i", project.inventory("here", "gone"), "--plain") == ExitCode.UNREACHABLE
    said = capsys.readouterr()
    assert "gone could not be reached; the other hosts were completed" in said.err
    assert "Give the key" in said.out
