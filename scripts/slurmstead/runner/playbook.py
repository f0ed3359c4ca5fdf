"""Runs a playbook. Only this module uses ansible-runner."""

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import ansible_runner

from slurmstead import rooms
from slurmstead.errors import InventoryError
from slurmstead.paths import ROOT
from slurmstead.runner import events, processes
from slurmstead.runner.interruption import Cancellation, signals_to
from slurmstead.runner.outcome import Result

TICK_SECONDS = 0.25
"""The interval of an observer's tick(), and the longest delay of a signal."""

SETTINGS = {"pexpect_timeout": TICK_SECONDS, "suppress_output_file": True}
"""Settings of ansible-runner; 2.4.3 reads the second one only from its file. No program reads the output file."""

PASSED_ON = {
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "SSH_AUTH_SOCK", "SSL_CERT_FILE"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
}
PASSED_ON_PREFIXES = ("ANSIBLE_", "STEAD_", "XDG_")

PATIENCE = {"mitogen_ssh_keepalive_interval": 15, "mitogen_ssh_keepalive_count": 4}
"""Variables: with them mitogen drops a machine without power after one minute, like ssh with ansible.cfg.

Its default is five minutes (ansible_mitogen/connection.py).
"""

KILLED = 128 + signal.SIGKILL
"""What a shell returns for a killed process; ansible-runner returns None for any signal."""

LAST_STRATEGY_PLUGINS = (2, 22)
"""ansible-core 2.23 will load only its own strategy plugins (deprecation in ansible/plugins/loader.py)."""


class Observer(Protocol):
    """An object that is notified during a run."""

    def event(self, event: events.Event) -> None:
        """Handle an event."""

    def tick(self) -> None:
        """Refresh a display; called several times a second."""


@contextlib.contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Replace this process's environment during the block: ansible-runner passes on and stores all of it."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def accelerator() -> dict[str, str]:
    """Return the settings that make Ansible use mitogen; empty if it is missing or not supported by ansible-core."""
    core = tuple(int(part) for part in importlib.metadata.version("ansible-core").split(".")[:2])
    if core > LAST_STRATEGY_PLUGINS or importlib.util.find_spec("ansible_mitogen") is None:
        return {}
    return {"ANSIBLE_STRATEGY": "accelerated", "ANSIBLE_DEPRECATION_WARNINGS": "False"}


def environment(outside: Mapping[str, str], *, plain: bool) -> dict[str, str]:
    """Return the environment of a run: the variables of `outside` that Ansible and ssh need, without secrets."""
    kept = {name: value for name, value in outside.items() if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES)}
    return {
        **({} if plain else accelerator()),
        # ansible-runner disables this unless it is set.
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        **kept,
        # ansible-runner sets this variable, so Ansible does not read it in ansible.cfg.
        "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "plugins" / "callback"),
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        # Ansible refuses to start in a locale that is not UTF-8.
        "LC_ALL": "C.UTF-8",
    }


def listed(inventory: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Return the groups of an inventory by name, and in `_meta` the hosts' variables with unrendered templates.

    :raises InventoryError: the inventory does not exist or cannot be read
    """
    _see_that_it_exists(inventory)
    done = subprocess.run(
        ["ansible-inventory", "-i", str(inventory), "--list"],
        env=environment(os.environ, plain=True),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        words = "\n".join([done.stderr.strip(), *_not_yaml(inventory)])
        raise InventoryError(f"the inventory {inventory} cannot be read:\n{words}", "Correct the error above.")
    groups: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return groups


def _see_that_it_exists(inventory: pathlib.Path) -> None:
    if not inventory.exists():
        raise InventoryError(f"there is no inventory {inventory}", "Give the path of a directory or file with -i.")


def _not_yaml(inventory: pathlib.Path) -> list[str]:
    """Return a line for each file of an inventory that is not YAML."""
    return list(rooms.module("inventory.files").not_yaml([str(inventory)]))


def run(
    playbook: pathlib.Path,
    inventory: pathlib.Path,
    *,
    limit: str | None = None,
    tags: str | None = None,
    extra_vars: Mapping[str, str] | None = None,
    check: bool = False,
    diff: bool = False,
    plain: bool = False,
    observer: Observer | None = None,
) -> Result:
    """Run a playbook and return its outcome.

    :param limit: pattern of the hosts to work on (`--limit`)
    :param tags: names of the tags to run, joined with commas
    :param plain: run without the accelerator
    :raises InventoryError: the inventory does not exist
    :raises Interrupted: a signal ended the run; all its processes have ended
    """
    _see_that_it_exists(inventory)
    result = Result(playbook.name)
    cancellation = Cancellation()

    def take(raw: dict[str, Any]) -> bool:
        event = events.parse(raw)
        if event is not None:
            result.add(event)
            if observer is not None:
                observer.event(event)
        return False  # keeps the event off the disk

    def cancelled() -> bool:
        if observer is not None:
            observer.tick()
        return cancellation.due()

    switches = [switch for switch, wanted in (("--check", check), ("--diff", diff)) if wanted]
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="stead-") as private,
        _environment(environment(os.environ, plain=plain)),
        signals_to(cancellation),
        processes.children_end_with_us(),
    ):
        # ansible-runner 2.4.3 ignores the argument `settings` when it writes no files.
        (pathlib.Path(private) / "env").mkdir()
        (pathlib.Path(private) / "env" / "settings").write_text(json.dumps(SETTINGS))
        runner = ansible_runner.run(
            private_data_dir=private,
            project_dir=str(ROOT),
            playbook=str(playbook),
            inventory=str(inventory),
            limit=limit,
            tags=tags,
            extravars={**({} if plain else PATIENCE), **(extra_vars or {})},
            cmdline=" ".join(switches) or None,
            quiet=True,
            suppress_env_files=True,
            event_handler=take,
            cancel_callback=cancelled,
        )
        cancellation.finish()
    result.returned = KILLED if runner.rc is None else runner.rc
    if runner.rc is None:
        result.words.append("ansible-playbook was killed. If the memory of this computer was full, `dmesg` says so.")
    if result.returned and not result.began:
        result.words += _not_yaml(inventory)
    result.seconds = time.monotonic() - started
    return result
