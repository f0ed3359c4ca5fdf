"""The verbs that work on machines refuse names that are not workers before a playbook starts."""

import io
import sys

import pytest
from rich.console import Console

from slurmstead.cluster import operations, upgrade
from slurmstead.errors import ExitCode, InventoryError, UsageError
from slurmstead.paths import LAB_INVENTORY
from slurmstead.runner import events
from slurmstead.runner.outcome import Result

FOUND = {"control": ["head"], "nfs_server": ["store"], "workers": ["head", "n1", "n2"]}

NESTED = """
all: {hosts: {head: , n1: , n2: , n3: }}
control: {hosts: {head: }}
nfs_server: {hosts: {head: }}
workers: {children: {rack1: , rack2: }, hosts: {n3: }}
rack1: {hosts: {n1: , n2: }}
rack2: {hosts: {n2: }}
"""


@pytest.mark.slow
def test_the_groups_of_an_inventory_are_those_with_the_hosts_of_their_children(project):
    assert operations.groups(project.write("hosts.yml", NESTED)) == {
        "control": ["head"],
        "nfs_server": ["head"],
        "workers": ["n3", "n1", "n2"],
    }


def test_a_worker_that_is_the_controller_too_is_not_among_those_that_can_be_rebooted():
    assert operations.workers_alone(FOUND) == ["n1", "n2"]


@pytest.mark.parametrize(
    ("name", "why"),
    [("head", "is the control node"), ("store", "is the NFS server"), ("n9", "is not a worker in hosts.yml")],
)
def test_a_name_that_is_no_worker_is_refused_with_the_names_that_are(name, why):
    with pytest.raises(UsageError, match=f"^{name} {why}") as refused:
        operations.check_names(["n1", name], FOUND, "hosts.yml")
    assert refused.value.hint == "The workers are n1, n2."


def test_an_operation_on_a_node_concerns_those_who_have_to_know_it_and_nobody_else():
    assert operations.around("n2", FOUND) == "head,store,n2"
    assert operations.around("n2", {**FOUND, "nfs_server": ["head"]}) == "head,n2"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reboot"], "reboot needs either names of workers or --all"),
        (["reboot", "node1", "--all"], "reboot needs either names of workers or --all"),
        (["reboot", "node9"], "node9 is not a worker"),
        (["reboot", "node3"], "node3 is the control node"),
        (["add-node", "node9"], "node9 is not a worker"),
        (["remove-node", "node3"], "node3 is the control node"),
        (["remove-node", "node1", "--when-idle", "--cancel-jobs"], "cannot be used together"),
        (["replace-node", "node9"], "node9 is not a worker"),
        (["replace-node", "node3"], "node3 is the control node"),
        (["replace-node", "node1", "--when-idle", "--cancel-jobs"], "cannot be used together"),
        (["shutdown", "--when-idle", "--cancel-jobs"], "cannot be used together"),
    ],
)
def test_what_cannot_be_done_ends_with_2_before_anything_is_touched(stead, project, capsys, arguments, said):
    assert stead(*arguments, "-i", LAB_INVENTORY) == ExitCode.USAGE
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_where_each_worker_is_something_else_too_none_is_rebooted(stead, project, capsys):
    hosts = "hosts: {head: , store: }"
    groups = f"workers: {{{hosts}}}\ncontrol: {{hosts: {{head: }}}}\nnfs_server: {{hosts: {{store: }}}}\n"

    assert stead("reboot", "--all", "-i", project.write("hosts.yml", groups)) == ExitCode.USAGE
    assert "can be rebooted" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["reboot", "--all"], ["replace-node", "node1"], ["shutdown"], ["start"]])
def test_an_inventory_that_is_missing_is_named(stead, project, capsys, arguments):
    assert stead(*arguments, "-i", project.path / "none.yml") == ExitCode.USAGE
    assert "there is no inventory" in capsys.readouterr().err


@pytest.mark.slow
def test_an_inventory_with_a_mistake_is_not_called_missing(project):
    broken = project.write("hosts.yml", "all:\n  hosts:\n    n1:\n   n2:\n")

    with pytest.raises(InventoryError, match=r"hosts\.yml cannot be read:\n(.*\n)*.*YAML parsing failed") as caught:
        operations.groups(broken)
    assert "hosts.yml:4: is not YAML (" in str(caught.value)


# Port 9 (discard) of loopback is closed on every machine that runs tests.
OFF = """
all:
  vars: {ansible_port: 9, slurm_cluster_name: dark}
  hosts:
    n1: {ansible_host: 127.0.0.2, os_address: 10.0.0.1}
    n2: {ansible_host: 127.0.0.3, os_address: 10.0.0.2}
    n3: {ansible_host: 127.0.0.4, os_address: 10.0.0.3}
control: {hosts: {n3: }}
nfs_server: {hosts: {n3: }}
workers: {hosts: {n1: , n2: }}
"""


@pytest.mark.slow
def test_machines_that_are_off_do_not_keep_a_node_from_being_added(project):
    messages = Console(file=io.StringIO(), width=200)

    operations.reload_firewalls(messages, messages, project.write("hosts.yml", OFF), "n1", plain=True)

    said = messages.file.getvalue()
    assert "n2, n3 could not be reached; their firewalls change with the next `scripts/stead up`" in said
    assert "n1: " not in said


@pytest.mark.slow
@pytest.mark.parametrize(("off", "forgotten"), [("n1", ["n1"]), ("n3", [])], ids=["the node", "control"])
def test_firewalls_forget_a_node_that_is_off_and_none_while_control_is(project, stead, monkeypatch, off, forgotten):
    called = []
    monkeypatch.setattr(operations, "PLAYBOOKS", project.path)
    monkeypatch.setattr(operations, "reload_firewalls", lambda *words, **_: called.append(words[3]))
    project.playbook("- {name: Look, ansible.builtin.command: 'true'}", name="remove-node.yml")
    here = f"{{ansible_connection: local, ansible_python_interpreter: {sys.executable}}}"
    hosts = ", ".join(
        f"{name}: {'{ansible_host: 127.0.0.1, ansible_port: 9}' if name == off else here}" for name in ("n1", "n3")
    )
    groups = "control: {hosts: {n3: }}\nnfs_server: {hosts: {n3: }}\nworkers: {hosts: {n1: }}\n"
    inventory = project.write("hosts.yml", f"all: {{hosts: {{{hosts}}}}}\n{groups}")

    assert stead("remove-node", "n1", "-i", inventory, "--plain") == ExitCode.UNREACHABLE
    assert called == forgotten


def test_an_operation_prints_warnings_but_not_that_a_group_of_the_run_is_empty(project, monkeypatch):
    empty = "Could not match supplied host pattern, ignoring: __off"
    said = [f"[WARNING]: {text}" for text in ("main: State=DOWN was set at run time", empty)]
    monkeypatch.setattr(operations.playbook, "run", lambda *_, **__: Result("add-node.yml", words=said))
    out = Console(file=io.StringIO(), width=200)

    operations.run(out, out, "add-node.yml", project.inventory("here"))

    assert "State=DOWN was set at run time" in out.file.getvalue()
    assert "__off" not in out.file.getvalue()


def ended(host: str, **result: object) -> events.HostEnded:
    task = events.Task("1", "Install the packages", "package_upgrade")
    return events.HostEnded(task, host, events.Status.OK, result=result)


def test_machines_whose_packages_an_upgrade_did_not_come_to_are_named():
    change = {"slurmd": ["1", "2"]}
    result = Result("upgrade-cluster.yml", returned=2)
    for host, packages in {"head": change, "n1": change, "n2": {}, "n3": change}.items():
        result.add(ended(host, packages=packages, problems=[]))
    result.add(ended("head", packages=change, restarted=["slurmctld"]))
    result.add(ended("n1", msg="n1: apt-get failed"))
    result.add(events.Ended(ok={"head": 9}, failed={"n1": 1}, unreachable={}))

    assert upgrade.not_upgraded(result) == ["n1", "n3"]


def test_a_run_that_ended_well_came_to_all():
    result = Result("upgrade-cluster.yml")
    result.add(ended("n1", packages={"slurmd": ["1", "2"]}))
    result.add(events.Ended(ok={"n1": 9}, failed={}, unreachable={}))

    assert upgrade.not_upgraded(result) == []
