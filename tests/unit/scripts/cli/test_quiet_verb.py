"""`stead quiet measure`: from what the module found to lines and an exit code."""

import json

import pytest

from slurmstead.errors import ExitCode

pytestmark = pytest.mark.slow

NONE = "- {name: Nothing, ansible.builtin.meta: noop}"
MEASURE = """
- name: Measure
  quiet_measure:
    nodes: [node4]
    times: "{{ quiet_times }}"
    deadline: 5
"""


@pytest.fixture
def site(project, monkeypatch):
    """Return an inventory whose measurement is this playbook."""

    def make(tasks):
        project.playbook(tasks, name="measure-quiet.yml")
        monkeypatch.setattr("slurmstead.cluster.ask.PLAYBOOKS", project.path)
        return project.inventory("here")

    return make


def test_a_node_without_an_answer_is_named_and_the_command_fails(site, stead, capsys):
    inventory = site(MEASURE)

    assert stead("quiet", "measure", "-i", inventory, "--json", "--plain") == ExitCode.CHECK_FAILED

    found = json.loads(capsys.readouterr().out)
    assert not found["ok"]
    assert found["nodes"] == {}
    # There is no srun on this computer.
    assert [line.split(":")[0] for line in found["lines"]] == ["node4  not measured"]


def test_a_site_without_quiet_nodes_is_told_how_to_get_them(site, stead, capsys):
    inventory = site(NONE)

    assert stead("quiet", "measure", "-i", inventory, "--plain") == ExitCode.USAGE
    assert "has no quiet node" in capsys.readouterr().err
