"""`stead smoke`: from what the module returns to lines, JSON and an exit code."""

import json

import pytest

from slurmstead.cluster import smoke
from slurmstead.errors import ExitCode

pytestmark = pytest.mark.slow

MODULE = """
from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule(argument_spec={{}})
checks = [
    dict(name="workers idle", ok=True, expected="3 idle", seen="3 idle", hint=""),
    dict(name="share", ok={ok}, expected="/share on node1", seen="nothing", hint="systemctl status nfs-server"),
]
module.{end}(msg="what tests saw", checks=checks, ok={ok}, changed=False)
"""


@pytest.fixture
def cluster(project, monkeypatch):
    """Return a function that makes a cluster whose smoke test finds `ok` and ends as the module says."""

    def make(ok: bool, end: str = "exit_json"):
        project.write("library/slurm_smoke.py", MODULE.format(ok=ok, end=end))
        project.playbook(
            """
- {name: Test the cluster, slurm_smoke: {}, register: seen}
- {name: Judge, ansible.builtin.assert: {that: seen.ok, fail_msg: "share: seen nothing"}}
""",
            name="smoke-test.yml",
        )
        monkeypatch.setattr("slurmstead.cluster.ask.PLAYBOOKS", project.path)
        return project.inventory("here")

    return make


@pytest.mark.parametrize(
    ("ok", "end", "code"),
    [
        (True, "exit_json", ExitCode.OK),
        (False, "fail_json", ExitCode.CHECK_FAILED),
    ],
)
def test_a_failed_check_is_exit_code_1_however_the_module_ends(cluster, stead, capsys, ok, end, code):
    assert stead("smoke", "-i", cluster(ok, end), "--json", "--plain") == code
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is ok
    assert [sorted(check) for check in report["checks"]] == [["expected", "hint", "name", "ok", "seen"]] * 2


def test_a_failed_check_says_what_was_expected_seen_and_what_to_do(cluster, stead, capsys):
    assert stead("smoke", "-i", cluster(False), "--plain") == ExitCode.CHECK_FAILED
    captured = capsys.readouterr()
    assert "nothing" not in captured.err
    assert captured.out.splitlines() == [
        "  ok    workers idle  3 idle",
        "  FAIL  share",
        "          expected: /share on node1",
        "          seen:     nothing",
        "          hint:     systemctl status nfs-server",
        "  2 checks, 1 failed",
    ]


def test_a_cluster_that_could_not_be_tested_is_not_called_good(project, stead, capsys, monkeypatch):
    monkeypatch.setattr("slurmstead.cluster.ask.PLAYBOOKS", project.path)
    project.playbook("- {name: Fail, ansible.builtin.fail: {msg: no sinfo}}", name="smoke-test.yml")
    assert stead("smoke", "-i", project.inventory("here"), "--json", "--plain") == ExitCode.TASK_FAILED
    assert capsys.readouterr().out == ""
    assert stead("smoke", "-i", project.inventory(), "--json", "--plain") == ExitCode.CHECK_FAILED


def test_a_report_without_checks_is_not_good():
    assert not smoke.Report(()).ok
