"""How this computer runs a command on a machine as root."""

from __future__ import annotations

import pathlib
import subprocess

import pytest

from ansible.module_utils.slurmstead.reach.ssh import as_root


@pytest.mark.parametrize(("user", "sudo"), [(0, ""), (1000, "sudo -n ")])
def test_only_a_user_who_is_not_root_needs_sudo(tmp_path: pathlib.Path, user: int, sudo: str) -> None:
    for name, says in {"id": f"echo {user}", "sudo": 'echo sudo "$@"', "echo_": 'echo echo_ "$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{says}\n")
        (tmp_path / name).chmod(0o755)

    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    said = subprocess.run(as_root("echo_", "two  words"), env=path, capture_output=True, text=True)

    assert (said.stdout, said.stderr) == (f"{sudo}echo_ two  words\n", "")
