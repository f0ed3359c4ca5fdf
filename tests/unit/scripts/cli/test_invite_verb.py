"""`stead people invite`: links for people, whose secrets are in no variable of a run."""

import hashlib
import json
import pathlib
import sys

import pytest

from slurmstead.errors import ExitCode
from slurmstead.runner import outcome, playbook
from slurmstead.runner.events import HostEnded, Status, Task

PEOPLE = """
groups: {course: 20000}
people:
  - {name: ann, uid: 20001, group: course}
  - {name: bo, uid: 20002, group: course, expires: 2020-01-01}
  - {name: cy, uid: 20003}
"""


@pytest.fixture
def runs(monkeypatch, tmp_path):
    """Return an inventory, and the variables of each run; control answers with this."""

    def make(**answer):
        seen = []

        def run(path, inventory, *, extra_vars, **how):
            seen.append((pathlib.Path(path).name, extra_vars))
            result = outcome.Result("invite-people.yml")
            done = Task("1", "t", action="jupyterhub_invitation")
            result.add(HostEnded(done, "node1", Status.CHANGED if "url" in answer else Status.FAILED, result=answer))
            return result

        monkeypatch.setattr(playbook, "run", run)
        (tmp_path / "hosts.yml").write_text("all: {}\n")
        return tmp_path / "hosts.yml", seen

    return make


def test_each_person_gets_a_link_and_control_the_hash_of_its_secret(runs, stead, capsys):
    inventory, seen = runs(url="https://10.77.0.1")

    assert stead("people", "invite", "alice", "bob", "-i", str(inventory), "--plain") == ExitCode.OK

    links = dict(line.split() for line in capsys.readouterr().out.splitlines())
    tokens = {name: link.removeprefix("https://10.77.0.1/hub/invitation?token=") for name, link in links.items()}
    assert set(links) == {"alice", "bob"}
    assert len(set(tokens.values())) == 2
    assert all(len(token) == 32 for token in tokens.values())
    [(name, variables)] = seen
    assert name == "invite-people.yml"
    digests = {name: hashlib.sha256(token.encode()).hexdigest() for name, token in tokens.items()}
    assert json.loads(variables["invited_people"]) == digests
    assert not any(token in str(variables) for token in tokens.values())


def test_without_an_answer_nobody_gets_a_link(runs, stead, capsys):
    inventory, _ = runs(msg="this machine has no hub for notebooks")

    assert stead("people", "invite", "alice", "-i", str(inventory), "--plain") != ExitCode.OK
    assert "token=" not in capsys.readouterr().out


def test_a_group_invites_its_active_people(runs, stead, capsys):
    inventory, seen = runs(url="https://10.77.0.1")
    (inventory.parent / "files").mkdir()
    (inventory.parent / "files/people.yml").write_text(PEOPLE)

    assert stead("people", "invite", "--group", "course", "-i", str(inventory), "--plain") == ExitCode.OK
    assert list(json.loads(seen[0][1]["invited_people"])) == ["ann"]

    assert stead("people", "invite", "--group", "curse", "-i", str(inventory), "--plain") == ExitCode.USAGE
    assert "curse has no active people" in capsys.readouterr().err


def test_without_a_name_nothing_is_asked(runs, stead, capsys):
    inventory, seen = runs(url="https://10.77.0.1")

    assert stead("people", "invite", "-i", str(inventory), "--plain") == ExitCode.USAGE
    assert seen == []
    assert "no person was named" in capsys.readouterr().err


@pytest.mark.parametrize(("mode", "code"), [(0o644, ExitCode.USAGE), (0o600, ExitCode.OK)])
def test_links_are_not_written_where_others_can_read(runs, stead, monkeypatch, tmp_path, mode, code):
    inventory, seen = runs(url="https://10.77.0.1")
    path = tmp_path / "links"
    path.touch(mode)
    path.chmod(mode)
    with path.open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        assert stead("people", "invite", "alice", "-i", str(inventory), "--plain") == code
    assert len(seen) == path.read_text().count("token=") == (code == ExitCode.OK)
