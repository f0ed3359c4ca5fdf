"""`stead backup` and `stead restore`: from what the playbook shows to lines and an exit code."""

import pathlib

import pytest

from slurmstead import backup
from slurmstead.errors import ExitCode

MESSAGE = {"path": "/b/lab.tar.gz", "bytes": 20480, "files": 12, "cluster": "lab", "slurm": "22.05.8"}


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ({"running": 3, "pending": 5}, "3 running and 5 pending jobs"),
        (None, "slurmctld did not answer, so the state is what it left"),
    ],
)
def test_a_report_says_what_was_kept(jobs, said):
    report = backup.parse([{"msg": "something else"}, {"msg": {**MESSAGE, "jobs": jobs}}])

    assert report is not None
    assert report.path == pathlib.Path("/b/lab.tar.gz")
    assert report.lines[0] == f"lab, Slurm 22.05.8, {said}, 12 files, 20 KiB, read back and compared"


def test_no_report_is_none():
    assert backup.parse([{"msg": "Nothing was changed"}]) is None


def test_an_archive_that_does_not_exist_is_not_looked_for_on_machines(stead, capsys, tmp_path):
    assert stead("restore", tmp_path / "nothing.tar.gz") == ExitCode.USAGE
    assert "there is no archive" in capsys.readouterr().err


def test_an_archive_has_no_directory_made_for_it(stead, capsys, tmp_path):
    assert stead("backup", "--output", tmp_path / "missing" / "a.tar.gz") == ExitCode.USAGE
    assert "there is no directory" in capsys.readouterr().err


@pytest.mark.slow
def test_a_cluster_that_could_not_be_backed_up_is_no_success(project, stead, capsys, monkeypatch):
    monkeypatch.setattr(backup, "PLAYBOOKS", project.path)
    project.playbook("- {name: Refuse, ansible.builtin.fail: {msg: no key}}", name="backup-cluster.yml")

    assert stead("backup", "-i", project.inventory("here"), "--plain") == ExitCode.TASK_FAILED
    assert "no key" in capsys.readouterr().err
