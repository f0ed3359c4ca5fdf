"""`stead flash` asks for the node's name, and refuses what it must not overwrite; `stead image board` checks first."""

import pytest

from slurmstead.cluster import operations
from slurmstead.errors import ExitCode
from slurmstead.runner.outcome import Result
from tests import disk_images

SITE = """\
all:
  hosts:
    head: {ansible_connection: local, power_method: turing_pi}
    node2: {power_method: turing_pi}
    pc: {power_method: redfish}
control: {hosts: {head: }}
nfs_server: {hosts: {head: }}
workers: {hosts: {node2: , pc: }}
"""


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "rk1.img"
    disk_images.write(path, 4 * 2**20, disk_images.dos(4 * 2**20))
    return path


@pytest.fixture
def ran(project, monkeypatch):
    """The variables of the playbooks that the verb runs."""
    project.write("hosts.yml", SITE)
    calls = []

    def run(*words, **more):
        calls.append((words[2], more["extra_vars"]["flashed_node"], more["extra_vars"]["flashed_control"]))
        result = Result(words[2])
        monkeypatch.setattr(result, "results_of", lambda _: [{"host_key": "SHA256:key"}], raising=True)
        return result

    monkeypatch.setattr(operations, "run", run)
    return calls


@pytest.mark.parametrize(
    ("words", "control"),
    [(["node2"], "head"), (["node2", "--direct"], ""), (["head"], "")],
)
def test_a_confirmed_module_is_flashed_and_its_host_key_is_shown(ran, stead, project, image, capsys, words, control):
    done = stead("flash", *words, image, "--yes", words[0], "-i", project.path / "hosts.yml")

    said = capsys.readouterr().out
    assert (done, ran) == (ExitCode.OK, [("flash-board.yml", words[0], control)])
    assert "      os_host_key: SHA256:key\n" in said
    assert ("scripts/stead add-node node2" if words[0] == "node2" else "scripts/stead up") in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["node2", "--yes", "node3"], "expected node2, got 'node3'; nothing was written"),
        (["other", "--yes", "other"], "other is not in"),
        (["pc", "--yes", "pc"], "pc does not have power_method: turing_pi"),
    ],
)
def test_another_node_is_refused(ran, stead, project, image, capsys, words, why):
    name, *options = words
    assert stead("flash", name, image, *options, "-i", project.path / "hosts.yml") == ExitCode.USAGE
    assert why in capsys.readouterr().err
    assert ran == []


def test_a_packed_image_is_refused(ran, stead, project, tmp_path, capsys):
    (tmp_path / "x.img.xz").write_bytes(b"\xfd7zXZ\0not really")
    words = ["flash", "node2", tmp_path / "x.img.xz", "--yes", "node2"]

    assert stead(*words, "-i", project.path / "hosts.yml") == ExitCode.USAGE
    assert "cannot be used" in capsys.readouterr().err
    assert ran == []


def test_an_image_that_cannot_be_made_is_refused_before_anything_runs(ran, stead, project, image, capsys):
    assert stead("image", "board", image, "-o", image, "-i", project.path / "hosts.yml") == ExitCode.USAGE
    assert "exists already; nothing was written" in capsys.readouterr().err
    assert ran == []
