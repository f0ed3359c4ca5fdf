"""What `stead image` refuses before it asks a machine, and what it sends."""

import contextlib
import pathlib
import tarfile

import pytest
from rich.console import Console

from slurmstead.cluster import images
from slurmstead.errors import UsageError
from slurmstead.runner import playbook
from slurmstead.runner.outcome import Result

HERE = pathlib.Path(__file__)


@pytest.mark.parametrize(
    ("name", "parts", "said"),
    [
        ("../x", images.Parts(), "is not a name for an image"),
        ("x", images.Parts(archive=HERE, packages=["git"]), "--archive cannot be used with other options"),
        ("x", images.Parts(wheels=HERE.parent), "--wheels needs --requirements"),
        ("x", images.Parts(wheels=HERE.parent, requirements=HERE), "no wheel is in"),
        ("x", images.Parts(packages=["git; id"]), "'git; id' is not a package of Debian"),
        ("x", images.Parts(release="../12"), "'../12' is not a release of Debian"),
        ("x", images.Parts(requirements=HERE / "none"), "--requirements: there is no file"),
        ("x", images.Parts(archive=HERE / "none"), "--archive: there is no file"),
    ],
)
def test_a_wrong_request_is_refused(name, parts, said):
    with pytest.raises(UsageError, match=said):
        images.check(name, parts)


def test_the_files_are_packed_under_their_own_names(tmp_path):
    (tmp_path / "needs.txt").write_text("numpy\n")
    (tmp_path / "numpy-2.whl").write_text("wheel")
    parts = images.Parts(requirements=tmp_path / "needs.txt", wheels=tmp_path)

    images.check("x", parts)
    with images.given(parts) as path, tarfile.open(path) as packed:
        assert packed.getnames() == ["requirements.txt", "wheels/numpy-2.whl"]
    assert not pathlib.Path(path).exists()


@pytest.mark.parametrize("own", [False, True])
def test_an_archive_is_not_copied_into_memory_as_tmp_is_on_debian_13(tmp_path, monkeypatch, own):
    (tmp_path / "pytorch.tar").write_text("")
    monkeypatch.setenv("TMPDIR", str(tmp_path)) if own else monkeypatch.delenv("TMPDIR", raising=False)

    with images.given(images.Parts(archive=tmp_path / "pytorch.tar")) as path:
        assert pathlib.Path(path).parent == (tmp_path if own else pathlib.Path("/var/tmp"))


def test_without_files_nothing_is_sent():
    with images.given(images.Parts(packages=["git"])) as path:
        assert path == ""


def test_a_table_says_who_uses_an_image():
    made = {"name": "python", "bytes": 300 << 20, "made": "2026-11-26T10:00:00+00:00", "source": "Debian bookworm"}
    own = {"name": "own", "bytes": 0, "made": "", "source": "made by hand"}

    assert images.lines(images.Found([own, made], {"python": [str(number) for number in range(7)]})) == [
        "own     -        -           no job               made by hand",
        "python  300 MiB  2026-11-26  job 0, 1, 2, 3, 4 …  Debian bookworm",
    ]


def test_a_job_in_a_directory_elsewhere_may_use_every_image(monkeypatch):
    given = {"sandbox_image": [{"images": [{"name": "own"}, {"name": "python"}]}]}
    given["sandbox_jobs"] = [{"used": {"python": ["7"], "*": ["8"]}}]
    listed = {"control": {"hosts": ["head"]}, "_meta": {"hostvars": {"head": {"sandbox_enabled": True}}}}
    monkeypatch.setattr(playbook, "listed", lambda _: listed)
    monkeypatch.setattr(playbook, "run", lambda *_, **__: Result("change-images.yml"))
    monkeypatch.setattr(Result, "results_of", lambda _, action: given[action])

    assert images.run(Console(), HERE, "listed").used == {"own": ["8"], "python": ["7", "8"]}


@pytest.mark.parametrize("enabled", [True, False])
def test_a_control_node_in_a_group_of_the_group_control_is_found(monkeypatch, enabled):
    listed = {"control": {"children": ["heads"]}, "heads": {"hosts": ["head"]}}
    listed["_meta"] = {"hostvars": {"head": {"sandbox_enabled": enabled}}}
    monkeypatch.setattr(playbook, "listed", lambda _: listed)
    monkeypatch.setattr(playbook, "run", lambda *_, **__: Result("change-images.yml"))

    with contextlib.nullcontext() if enabled else pytest.raises(UsageError, match="sandbox_enabled is not set"):
        assert images.run(Console(), HERE, "listed") == images.Found([], {})
