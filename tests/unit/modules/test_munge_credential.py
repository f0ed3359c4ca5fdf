"""A credential that cannot be read is explained with the node that signed it."""

from __future__ import annotations

import os
import pathlib
import time
import types
from collections.abc import Callable
from typing import Any

import pytest

from ansible.module_utils.slurmstead.identity import credentials

RunModule = Callable[..., Any]


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("unmunge: Error: Rewound credential", "its clock is ahead"),
        ("unmunge: Error: Expired credential", "its clock is behind"),
        ("unmunge: Error: Invalid credential", "the keys differ"),
        ("unmunge: Error: Replayed credential", "journalctl -u munge"),
    ],
)
def test_the_reason_comes_with_what_to_do(load_module: Callable[[str], types.ModuleType], said: str, hint: str) -> None:
    problem = load_module("munge_credential").problem("node1", said)

    assert problem.startswith(f"the credential of node1 cannot be decoded here ({said}): ")
    assert hint in problem


@pytest.fixture
def commands(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A directory whose `munge` and `unmunge` the module takes for the real ones, and runs as this process's user."""
    real = credentials.munge

    def here(command: str, text: str) -> Any:
        return real(command.replace("/usr/bin", str(tmp_path)), text)

    monkeypatch.setattr(credentials, "munge", here)
    # Tests need not run as root.
    monkeypatch.setattr(credentials, "USER", None)
    monkeypatch.setattr(credentials, "GROUP", None)
    monkeypatch.setattr(credentials, "SECONDS", 0.5)
    script(tmp_path / "munge", "echo MUNGE:own:")
    script(
        tmp_path / "unmunge",
        'read -r line; case $line in MUNGE:good:*) ;; *) echo "Error: Invalid credential" >&2; exit 8; esac',
    )
    return tmp_path


def script(path: pathlib.Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.mark.usefixtures("commands")
def test_a_credential_of_this_node_is_returned(run_module: RunModule) -> None:
    done = run_module("munge_credential", decode={"node1": "MUNGE:good:"})

    assert (done.changed, done.result["credential"]) == (False, "MUNGE:own:")


@pytest.mark.usefixtures("commands")
@pytest.mark.parametrize(("error", "said"), [(500, "500 s ahead of node3's"), (-400, "400 s behind node3's")])
def test_a_clock_that_slurms_credentials_do_not_tolerate_is_named(run_module: RunModule, error: int, said: str) -> None:
    asked, decode = time.time() - 1, {"node3": "MUNGE:good:"}

    right = run_module("munge_credential", asked=asked, decode=decode, leads={"node3": 2.5})
    wrong = run_module("munge_credential", asked=asked, decode=decode, leads={"node3": 1 - error})

    assert (right.failed, wrong.failed) == (False, True)
    assert 1 <= right.result["lead"] < 30
    assert said in wrong.message


@pytest.mark.parametrize("dry", [False, True])
def test_chrony_asks_its_source_again_before_a_clock_is_called_wrong(
    run_module: RunModule, commands: pathlib.Path, monkeypatch: pytest.MonkeyPatch, dry: bool
) -> None:
    script(commands / "chronyc", 'echo "$@" >> "$0.log"')
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")

    done = run_module("munge_credential", asked=time.time(), leads={"node3": 500}, check=dry)

    said = commands / "chronyc.log"
    assert done.failed
    assert (said.read_text().splitlines() if said.exists() else []) == (
        [] if dry else ["reset sources", "burst 4/4", "waitsync 20 1 0 3"]
    )


@pytest.mark.usefixtures("commands")
def test_every_node_whose_credential_cannot_be_read_is_named(run_module: RunModule) -> None:
    decode = {"node2": "MUNGE:bad:", "node1": "MUNGE:good:", "node4": "MUNGE:bad:"}

    done = run_module("munge_credential", decode=decode)

    assert done.failed
    assert done.result["refused"] == dict.fromkeys(["node2", "node4"], "Error: Invalid credential")
    assert "node1" not in done.message
    assert done.message.index("of node2") < done.message.index("of node4")


def test_a_node_that_cannot_sign_says_why(run_module: RunModule, commands: pathlib.Path) -> None:
    script(commands / "munge", "echo 'Error: Failed to access socket' >&2; exit 6")

    done = run_module("munge_credential")

    assert done.message == "cannot create a credential: Error: Failed to access socket; see `journalctl -u munge`"


@pytest.mark.parametrize("state", ["hangs", "is missing"])
def test_a_munge_that_does_not_answer_is_no_reason_to_wait(
    run_module: RunModule, commands: pathlib.Path, state: str
) -> None:
    if state == "hangs":
        script(commands / "munge", "exec sleep 60")
    else:
        os.remove(commands / "munge")

    assert "munge does not answer" in run_module("munge_credential").message
