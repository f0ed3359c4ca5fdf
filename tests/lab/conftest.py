"""What tests of a running lab share. `scripts/stead test NAME` runs them, or on a lab that runs:

STEAD_LAB=NAME pytest tests/lab/default
"""

from __future__ import annotations

import concurrent.futures
import functools
import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar

import pytest
import testinfra
from testinfra.host import Host
from testinfra.utils.ansible_runner import AnsibleRunner

from slurmstead.lab import machines as stead_lab
from slurmstead.lab import snapshots
from slurmstead.paths import LAB_INVENTORY, PLAYBOOKS, SITE, lab_directory
from slurmstead.runner.playbook import PATIENCE, accelerator
from tests.lab.run import STEAD, Began, Run, as_person, play

FACTS = (pathlib.Path(__file__).parent / "facts.py").read_text()
TREE = (pathlib.Path(__file__).parent / "tree.py").read_text()

SSH_OPTIONS = "-o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=10 -o ServerAliveCountMax=6"
DAEMONS = ("munge", "slurmctld", "slurmd", "chrony", "nfs-server", "share.mount", "share.automount")

T = TypeVar("T")


class Lab:
    """The machines of a running lab, reached over ssh without Ansible."""

    def __init__(self, inventory: pathlib.Path) -> None:
        self.inventory = inventory
        self.directory = lab_directory(stead_lab.choose(None))
        runner = AnsibleRunner.get_runner(str(inventory))
        self.names: list[str] = runner.get_hosts("all")
        self.workers: list[str] = runner.get_hosts("workers")
        (self.control,) = runner.get_hosts("control")
        (self.server,) = runner.get_hosts("nfs_server")
        self.variables: dict[str, dict[str, Any]] = {name: runner.get_variables(name) for name in self.names}
        self._hosts: dict[str, Host] = {}
        # Short, because the names of sockets are (unix(7)).
        self._sockets = tempfile.TemporaryDirectory(prefix="stead-")

    def close(self) -> None:
        """End the connections."""
        for spec in self._hosts:
            command = ["ssh", "-F", str(self.directory / "ssh_config"), "-O", "exit", spec.removeprefix("ssh://")]
            command[1:1] = ["-o", f"ControlPath={self._sockets.name}/%C"]
            subprocess.run(command, capture_output=True, timeout=30, check=False)
        self._sockets.cleanup()

    @property
    def of_containers(self) -> dict[str, Any]:
        """The variables without which a container cannot be a node; none for a lab of virtual machines."""
        native = stead_lab.is_native(self.directory)
        return dict(self.variables[self.control]["__of_containers"]) if native else {}

    def reach(self, site: pathlib.Path) -> None:
        """Add to a site of `stead init` how this lab's machines are reached, and what containers need."""
        ssh = {"ansible_ssh_common_args": f"-F {self.directory}/ssh_config", "ansible_ssh_timeout": 120}
        lines = [f"{name}: {json.dumps(value)}\n" for name, value in {**ssh, **self.of_containers}.items()]
        path = site / "group_vars/all.yml"
        path.write_text(path.read_text().replace("{{ os_address }}", "{{ inventory_hostname }}") + "".join(lines))

    def slurm_config(self, **keys: Any) -> dict[str, Any]:
        """Return the variable slurm_config of the inventory with other keys."""
        return {**self.of_containers.get("slurm_config", {}), **keys}

    def address(self, name: str) -> str:
        """Return the address of a machine in the cluster's network."""
        return str(self.variables[name]["os_address"])

    def host(self, name: str, user: str = "debian") -> Host:
        """Return a machine as a user sees it; connections are kept for the next command."""
        spec = f"ssh://{user}@{name}"
        if spec not in self._hosts:
            self._hosts[spec] = testinfra.get_host(
                spec,
                ssh_config=str(self.directory / "ssh_config"),
                ssh_extra_args=SSH_OPTIONS,
                # testinfra formats its commands with %.
                controlpath=f"{self._sockets.name}/%%C",
                controlpersist=60,
            )
        return self._hosts[spec]

    def root(self, name: str, command: str, seconds: int = 120) -> str:
        """Return the output of a shell command as root; its failure fails the test."""
        return str(self.host(name).check_output("sudo timeout %s sh -c %s", str(seconds), command))

    def insist(self, name: str, command: str, seconds: float = 180) -> str:
        """Return the output of a shell command as root as soon as the machine answers and the command succeeds."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self.root(name, command)
            except (AssertionError, RuntimeError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(3)

    def python(self, name: str, program: str, *arguments: str, seconds: int = 300) -> Any:
        """Return what a Python program prints as JSON, run as root with the machine's own Python."""
        command = "sudo timeout %s python3 -c %s" + " %s" * len(arguments)
        text = self.host(name).check_output(command, str(seconds), program, *arguments)
        return json.loads(text)

    def user(self, command: str, seconds: int = 120, name: str = "alice") -> str:
        """Return the output of a shell command as an ordinary user on the head node."""
        return str(self.host(self.control, name).check_output("timeout %s sh -lc %s", str(seconds), command))

    def without_login(self, name: str, user: str, command: str) -> str:
        """Return the output of a shell command as a user who may have no way to log in to that machine."""
        words = f"setpriv --reuid={user} --regid={user} --init-groups --reset-env sh -c {shlex.quote(command)}"
        return self.root(name, f"cd / && {words}")

    def everywhere(self, function: Callable[[str], T], names: Iterable[str] | None = None) -> dict[str, T]:
        """Return what a function of a machine's name returns, by name; all machines at once."""
        chosen = list(self.names if names is None else names)
        with concurrent.futures.ThreadPoolExecutor(len(chosen)) as pool:
            return dict(zip(chosen, pool.map(function, chosen), strict=True))

    @functools.cached_property
    def facts(self) -> dict[str, dict[str, Any]]:
        """What is to be known of each machine, gathered once by one command each; see facts.py."""
        return self.everywhere(lambda name: self.python(name, FACTS))

    def tree(self, name: str) -> dict[str, str]:
        """Return the SHA-256 of each file that a machine has below /etc and /usr/local, by path."""
        return dict(self.python(name, TREE))

    def pids(self, names: Iterable[str] | None = None) -> dict[str, dict[str, str]]:
        """Return the main process of each daemon that runs, by machine and name."""
        units = ("munge", "slurmctld", "slurmd", "chrony")
        command = f"systemctl show --property=Id,MainPID {' '.join(units)}"

        def of(name: str) -> dict[str, str]:
            blocks = self.root(name, command).split("\n\n")
            shown = [dict(line.split("=", 1) for line in block.splitlines()) for block in blocks]
            return {unit["Id"].removesuffix(".service"): unit["MainPID"] for unit in shown if unit["MainPID"] != "0"}

        return self.everywhere(of, names)

    def ansible(self, *arguments: str, seconds: float = 900, plain: bool = False, began: Began | None = None) -> Run:
        """Run `site.yml`, or the playbook that is named, as a person would; with mitogen unless `plain`."""
        playbook = [] if any(word.endswith(".yml") for word in arguments) else [str(SITE)]
        patience = [] if plain else ["-e", json.dumps(PATIENCE)]
        words = ["-i", str(self.inventory), *patience, *arguments, *playbook]
        return play(words, {} if plain else accelerator(), seconds, began)

    def cut_power(self, *names: str) -> None:
        """End machines of the lab as if their plugs were pulled; all of them if none is named."""
        running = stead_lab.pids(self.directory)
        assert all(running[name] for name in names or self.names), f"a machine does not run: {running}"
        stead_lab.end(self.directory, names)

    def freeze(self, label: str = snapshots.LABEL) -> float:
        """Make a snapshot of all machines; return the seconds that it took."""
        started = time.monotonic()
        snapshots.freeze(self.directory, label)
        return time.monotonic() - started

    def thaw(self, label: str = snapshots.LABEL) -> float:
        """Put all machines back to a snapshot; return the seconds that it took."""
        started = time.monotonic()
        snapshots.thaw(self.directory, label)
        return time.monotonic() - started

    def boot(self, name: str, **settings: Any) -> None:
        """Start a machine of the lab that is off, with other settings of the role `lab` if there are some."""
        run = self.ansible(
            "--limit", name, "--extra-vars", json.dumps(settings), str(PLAYBOOKS / "create-lab.yml"), seconds=600
        )
        assert run.code == 0, f"{name} did not come back\n{run.output}"

    def wait_until_idle(self, seconds: float) -> float:
        """Return the seconds after which every worker is idle; fails with what Slurm says when there were too many."""
        started = time.monotonic()
        # Slurm 24.11 keeps the reason of a node that was resumed.
        command = "sinfo --noheader --Node --format='%N %T'; squeue --noheader"
        while True:
            try:
                said = self.root(self.control, command, seconds=30)
            except (AssertionError, RuntimeError) as error:
                said = str(error)
            if sorted(said.split("\n")) == [f"{name} idle" for name in self.workers]:
                return time.monotonic() - started
            assert time.monotonic() - started < seconds, f"not idle after {seconds:.0f} s:\n{said}"
            time.sleep(2)

    def report(self) -> str:
        """Return what a person would look at first after a failure."""
        units = " ".join(f"--unit={unit}" for unit in DAEMONS)
        commands = {name: f"journalctl --no-pager --lines=30 {units}" for name in self.names}
        commands[self.control] += "; sinfo -R; sinfo --Node --long; squeue"

        def of(name: str) -> str:
            try:
                return str(self.host(name).run("sudo timeout 30 sh -c %s", commands[name]).stdout)
            except RuntimeError as error:
                return str(error)

        return "\n".join(f"--- {name}\n{text}" for name, text in self.everywhere(of).items())


LAB = pytest.StashKey[Lab]()


def inventory(config: pytest.Config) -> pathlib.Path:
    """Return the inventory that the lab is made of."""
    return pathlib.Path(config.getoption("--ansible-inventory") or LAB_INVENTORY).resolve()


def pytest_configure() -> None:
    """Let Ansible's commands print plain text, which tests read; molecule asks for colours."""
    os.environ.pop("ANSIBLE_FORCE_COLOR", None)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for a `node` on every machine, and one that asks for a `worker` on every worker."""
    for fixture, group in {"node": "all", "worker": "workers"}.items():
        if fixture in metafunc.fixturenames:
            runner = AnsibleRunner.get_runner(str(inventory(metafunc.config)))
            metafunc.parametrize(fixture, runner.get_hosts(group), scope="module")


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """The running lab."""
    found = Lab(inventory(request.config))
    running = stead_lab.pids(found.directory)
    assert all(running.get(name) for name in found.names), f"the lab does not run: {running}; scripts/stead lab up"
    request.config.stash[LAB] = found
    yield found
    found.close()


@pytest.fixture(scope="session")
def stead(lab: Any) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a verb of scripts/stead on the lab, as a person would; what it says is in `stdout`."""

    def run(verb: str, *arguments: str, seconds: int = 900) -> subprocess.CompletedProcess[str]:
        return as_person([STEAD, verb, *arguments, "--inventory", lab.inventory], seconds)

    return run


@pytest.fixture(scope="module")
def facts(lab: Lab, node: str) -> dict[str, Any]:
    """What is to be known of the machine whose turn it is."""
    return lab.facts[node]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the daemons' journals and what Slurm says to the report of a failure."""
    report = yield
    if report.failed and LAB in item.config.stash:
        report.sections.append(("the lab", item.config.stash[LAB].report()))
    return report
