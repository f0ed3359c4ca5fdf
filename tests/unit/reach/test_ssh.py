"""How this computer runs a command on a machine as root."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

from ansible.module_utils.slurmstead.reach.ssh import as_root, ssh_command


@pytest.mark.parametrize(("user", "sudo"), [(0, ""), (1000, "sudo -n ")])
def test_only_a_user_who_is_not_root_needs_sudo(tmp_path: pathlib.Path, user: int, sudo: str) -> None:
    for name, says in {"id": f"echo {user}", "sudo": 'echo sudo "$@"', "echo_": 'echo echo_ "$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{says}\n")
        (tmp_path / name).chmod(0o755)

    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    said = subprocess.run(as_root("echo_", "two  words"), env=path, capture_output=True, text=True)

    assert (said.stdout, said.stderr) == (f"{sudo}echo_ two  words\n", "")


def test_both_names_of_ansibles_variables_are_read() -> None:
    port, user, address = ("-p", "2222"), "ann", "10.0.0.3"
    for prefix in ("ansible", "ansible_ssh"):
        given = {f"{prefix}_host": address, f"{prefix}_port": 2222, f"{prefix}_user": user}
        words = ssh_command({**given, f"{prefix}_private_key_file": "~/key"}, "node3")

        assert words[-6:] == ["-i", os.path.expanduser("~/key"), *port, f"{user}@{address}", "--"]


def test_a_key_and_a_user_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_PRIVATE_KEY_FILE", "/keys/cluster")
    monkeypatch.setenv("ANSIBLE_REMOTE_USER", "ann")

    assert ssh_command({}, "node3")[-4:] == ["-i", "/keys/cluster", "ann@node3", "--"]
