"""The smoke test on a real cluster: green when nothing is wrong, and red for each cause, which is injected and removed.

    pytest tests/lab/smoke --ansible-inventory=inventory/lab

Every fault lasts no longer than its test. After each one the machines are compared with what they were before.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import pytest
import testinfra
from testinfra.host import Host
from testinfra.utils.ansible_runner import AnsibleRunner

from ansible.module_utils.slurmstead.slurm.hostlist import expand

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHECKS = ["nodes", "srun", "sbatch", "one-cpu", "memory-limit", "share", "scratch", "munge"]

DEADLINE = 120
"""Seconds for one smoke test on emulated CPUs."""

SETTLE = 180
"""Seconds after which a repaired cluster is idle again. Slurm asks an unresponsive node again about once a minute."""

RECONFIGURE = "until scontrol reconfigure; do sleep 2; done"
"""slurmctld of Debian 13 answers when it has restarted, which can take longer than scontrol waits."""

STATE = """
hostname
stat {share}/. >/dev/null
for where in {share} {scratch} /etc/munge/munge.key; do findmnt --noheadings --output TARGET,SOURCE $where; done
sha256sum /etc/munge/munge.key /etc/slurm/*.conf 2>&1
systemctl is-active munge slurmd slurmctld
runuser -u {user} -- find ~{user} -maxdepth 1 -name '.slurmstead-smoke-*'
"""
"""Prints what a fault may change on a machine, and what a smoke test may leave; the share is mounted when used."""


class Cluster:
    """The machines of an inventory, and the smoke test on them."""

    def __init__(self, inventory: str, sockets: pathlib.Path) -> None:
        self.sockets = sockets
        self.runner = runner = AnsibleRunner.get_runner(inventory)
        (self.control,) = runner.get_hosts("control")
        self.workers = runner.get_hosts("workers")
        self.victim, self.other = self.workers[-1], self.workers[0]
        variables = runner.get_variables(self.control)
        self.user: str = variables.get("smoke_test_user", variables["accounts_users"][0]["name"])
        self.share: str = variables.get("nfs_client_path", "/share")
        self.scratch: str = variables.get("scratch_path", "/scratch")
        self.hosts: dict[str, Host] = {name: self.connect(name) for name in {self.control, *self.workers}}

    def connect(self, name: str) -> Host:
        """A machine over plain ssh. Ansible fills in the templates of the inventory, which testinfra does not."""
        address = "{{ ansible_host | default(inventory_hostname) }}"
        user = "{{ (ansible_user ~ '@') if ansible_user is defined else '' }}"
        words = {"host": f"ssh://{user}{address}", "extra": "{{ ansible_ssh_common_args | default('') }}"}
        seen = self.runner.run_module(name, "ansible.builtin.debug", json.dumps({"msg": words}), check=False)["msg"]
        # One connection for all commands, because a login takes seconds on emulated CPUs. testinfra makes one % of two.
        control = {"controlpath": f"{self.sockets}/%%C", "controlpersist": 60}
        return testinfra.get_host(seen["host"], ssh_extra_args=seen["extra"], **control)

    def root(self, name: str, command: str) -> str:
        """The output of a shell command as root; its failure fails the test."""
        host = self.hosts[name]
        with host.sudo():
            return str(host.check_output("cd / && timeout 60 sh -c %s", command))

    def all(self, names: list[str], command: str) -> list[str]:
        """The same on several machines at once."""
        with ThreadPoolExecutor(len(names)) as pool:
            return list(pool.map(lambda name: self.root(name, command), names))

    def smoke(self) -> dict[str, dict[str, Any]]:
        """The checks by name."""
        arguments = {
            "workers": self.workers,
            "control": self.control,
            "share": self.share,
            "scratch": self.scratch,
            "deadline": DEADLINE,
        }
        result = self.runner.run_module(
            self.control, "slurm_smoke", json.dumps(arguments), check=False, become=True, become_user=self.user
        )
        assert "checks" in result, result.get("msg", result)
        assert [check["name"] for check in result["checks"]] == CHECKS
        return {check["name"]: check for check in result["checks"]}

    def state(self) -> dict[str, str]:
        """What every machine is like."""
        names = sorted(self.hosts)
        command = STATE.format(share=self.share, scratch=self.scratch, user=self.user)
        return dict(zip(names, self.all(names, command), strict=True))

    def wait(self, what: str, done: Callable[[], str], seconds: float = SETTLE) -> None:
        """Wait until `done` returns nothing; what it returned last is the message."""
        until = time.monotonic() + seconds
        while seen := done():
            assert time.monotonic() < until, f"{what} after {seconds} s: {seen}"
            time.sleep(1)

    def unsettled(self) -> str:
        """Jobs, and workers that are not idle."""
        command = "squeue --noheader; sinfo --Node --noheader --format='%N %T %E' | grep -v ' idle ' || true"
        return self.root(self.control, command)


def red(checks: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name: check["seen"] for name, check in checks.items() if not check["ok"]}


def blamed(seen: str) -> set[str]:
    """The nodes of which a check says something bad, as in `node[1-2]: good; node4: drained`."""
    return {name for names in re.findall(r"([\w\[\],-]+): (?!good)", seen) for name in expand(names)}


@pytest.fixture(scope="module")
def inventory(request: pytest.FixtureRequest) -> str:
    given = request.config.getoption("--ansible-inventory")
    return str(pathlib.Path(given or ROOT / "inventory" / "lab").resolve())


@pytest.fixture(scope="module")
def machines(inventory: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The machines without their health check, which would drain a worker before the smoke test sees a fault."""
    found = Cluster(inventory, tmp_path_factory.mktemp("ssh"))
    check = "/usr/local/lib/slurmstead/health-check"
    with commands(found, found.workers, f"mount --bind /bin/true {check}", f"umount {check}"):
        yield found


@pytest.fixture(scope="module")
def healthy(machines: Cluster) -> dict[str, str]:
    """What the machines are like before the first fault."""
    return machines.state()


@pytest.fixture
def cluster(machines: Cluster, healthy: dict[str, str]) -> Iterator[Cluster]:
    """The cluster, which is idle before and after a test, and afterwards as it was."""
    machines.wait("the cluster is not idle", machines.unsettled)
    yield machines
    machines.wait("the cluster is not idle again", machines.unsettled)
    assert machines.state() == healthy


# Faults. Each is a context: injected on entry, removed on exit whatever happens in between.

Fault = Callable[[Cluster], AbstractContextManager[None]]


@contextlib.contextmanager
def commands(cluster: Cluster, names: list[str], inject: str, remove: str) -> Iterator[None]:
    """A fault that a shell command injects on machines, and another one removes."""
    try:
        cluster.all(names, inject)
        yield
    finally:
        cluster.all(names, remove)


def set_state(state: str) -> Fault:
    def fault(cluster: Cluster) -> AbstractContextManager[None]:
        update = f"scontrol update nodename={cluster.victim}"
        inject = f"{update} state={state} reason='bad | disk'"
        return commands(cluster, [cluster.control], inject, f"{update} state=resume")

    return fault


def slurmd_stopped(cluster: Cluster) -> AbstractContextManager[None]:
    return commands(cluster, [cluster.victim], "systemctl stop slurmd", "systemctl start slurmd")


@contextlib.contextmanager
def down(cluster: Cluster) -> Iterator[None]:
    """Down by a person's hand, and silent: a slurmd that registers would bring its node back (ReturnToService=2)."""
    with slurmd_stopped(cluster), set_state("down")(cluster):
        yield


def host_name_of_another(cluster: Cluster) -> AbstractContextManager[None]:
    return commands(cluster, [cluster.victim], f"hostname {cluster.other}", f"hostname {cluster.victim}")


def not_constrained(*keys: str) -> Fault:
    """cgroup.conf of the whole cluster without a limit; workers fetch it when control is reconfigured."""

    @contextlib.contextmanager
    def fault(cluster: Cluster) -> Iterator[None]:
        path, good = "/etc/slurm/cgroup.conf", "/run/cgroup.conf.good"
        edits = " ".join(f"-e s/^{key}=.*/{key}=no/" for key in keys)
        try:
            cluster.root(cluster.control, f"cp -a {path} {good} && sed -i {edits} {path} && {RECONFIGURE}")
            wait_for_configuration(cluster, f"{keys[0]}=no")
            yield
        finally:
            cluster.root(cluster.control, f"cp -a {good} {path} && rm {good} && {RECONFIGURE}")
            wait_for_configuration(cluster, f"{keys[0]}=yes")

    return fault


def wait_for_configuration(cluster: Cluster, line: str) -> None:
    """Wait until all workers have fetched a cgroup.conf with this line."""

    def missing() -> str:
        answers = cluster.all(cluster.workers, f"grep -qx {line} /run/slurm/conf/cgroup.conf || echo {line} is missing")
        return "".join(answers)

    cluster.wait("the workers have the old configuration", missing, 60)


def share_replaced(everywhere: bool) -> Fault:
    """Another directory where the share should be; users can write to it."""

    def fault(cluster: Cluster) -> AbstractContextManager[None]:
        names = cluster.workers if everywhere else [cluster.victim]
        inject = f"mkdir -p -m 1777 /run/other && stat {cluster.share}/. && mount --bind /run/other {cluster.share}"
        return commands(cluster, names, inject, f"umount {cluster.share} && rm -r /run/other")

    return fault


def scratch_on_the_share(cluster: Cluster) -> AbstractContextManager[None]:
    inject = f"mount --bind {cluster.share} {cluster.scratch}"
    return commands(cluster, [cluster.victim], inject, f"umount {cluster.scratch}")


def scratch_read_only(cluster: Cluster) -> AbstractContextManager[None]:
    scratch = cluster.scratch
    inject = f"mount --bind {scratch} {scratch} && mount -o remount,bind,ro {scratch}"
    return commands(cluster, [cluster.victim], inject, f"umount {scratch}")


def foreign_key(cluster: Cluster) -> AbstractContextManager[None]:
    """Another key over the good one, which stays where it is."""
    key, other = "/etc/munge/munge.key", "/run/foreign.key"
    inject = f"rm -f {other} && mungekey --create --keyfile={other} && chown --reference={key} {other}"
    inject += f" && chmod --reference={key} {other} && mount --bind {other} {key} && systemctl restart munge"
    return commands(cluster, [cluster.victim], inject, f"umount {key} && rm {other}; systemctl restart munge")


FAULTS: list[tuple[str, str, str, Fault]] = [
    # the check that turns red, what it says of the victim, what to do, the fault
    ("nodes", r"drained: bad \| disk", r"state=resume", set_state("drain")),
    ("nodes", r"down(, does not answer)?: bad \| disk", r"state=resume", down),
    ("srun", r"calls itself", r"hostnamectl", host_name_of_another),
    ("srun", r"failed|no answer|not available|does not answer", r"status slurmd", slurmd_stopped),
    ("sbatch", r"batch.out|ended as failed", r"findmnt", share_replaced(everywhere=True)),
    ("one-cpu", r"bound to 1 CPU but can take", r"ConstrainCores", not_constrained("ConstrainCores")),
    (
        "memory-limit",
        r"used 256 MiB",
        r"ConstrainRAMSpace",
        not_constrained("ConstrainRAMSpace", "ConstrainSwapSpace"),
    ),
    ("share", r"No such file or directory", r"findmnt", share_replaced(everywhere=False)),
    ("scratch", r"not local to the node", r"findmnt", scratch_on_the_share),
    ("scratch", r"\$SCRATCH is not set", r"TaskProlog", scratch_read_only),
    ("munge", r"not tested", r"munge\.key", foreign_key),
]


def test_a_healthy_cluster_is_green_in_plain_ansible(cluster: Cluster, inventory: str) -> None:
    done = subprocess.run(
        ["ansible-playbook", "-i", inventory, str(ROOT / "playbooks" / "smoke-test.yml")],
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^ +(ok|FAIL) +([a-z-]+): ", done.stdout, re.MULTILINE) == [("ok", name) for name in CHECKS]
    assert re.search(r"changed=0 ", done.stdout)


@pytest.mark.parametrize(("name", "seen", "hint", "fault"), FAULTS, ids=[f"{case[0]}: {case[1]}" for case in FAULTS])
def test_a_fault_turns_its_check_red(cluster: Cluster, name: str, seen: str, hint: str, fault: Fault) -> None:
    with fault(cluster):
        checks = cluster.smoke()

    assert name in red(checks), checks
    assert re.search(seen, red(checks)[name]), checks
    assert cluster.victim in blamed(red(checks)[name]) or name == "sbatch", checks
    assert re.search(hint, checks[name]["hint"]), checks


def test_every_check_has_a_fault() -> None:
    assert {name for name, *_ in FAULTS} == set(CHECKS)


def test_without_slurmctld_every_check_is_red(cluster: Cluster) -> None:
    control = [cluster.control]
    with commands(cluster, control, "systemctl stop slurmctld", "systemctl start slurmctld"):
        checks = cluster.smoke()

    assert list(red(checks)) == CHECKS
    assert "slurmctld" in checks["nodes"]["hint"]


def test_without_munge_on_control_its_check_says_so(cluster: Cluster) -> None:
    control = [cluster.control]
    with commands(cluster, control, "systemctl stop munge", "systemctl start munge"):
        checks = cluster.smoke()

    assert list(red(checks)) == CHECKS
    assert "munge" in red(checks)["munge"]
    assert "systemctl restart munge" in checks["munge"]["hint"]


def test_a_node_that_a_job_occupies_is_waited_for_and_named(cluster: Cluster) -> None:
    inject = f"sbatch --chdir=/ --output=/dev/null -w {cluster.victim} --exclusive -J occupied --wrap 'sleep 600'"
    with commands(cluster, [cluster.control], inject, "scancel --name=occupied"):
        checks = cluster.smoke()

    assert checks["nodes"]["ok"]
    assert re.search(rf"{cluster.victim}: no free CPU .* jobs of other users on it", red(checks)["srun"])
    assert f"{cluster.victim}: not tested" in red(checks)["share"]
