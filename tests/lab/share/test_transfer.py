"""A copy from one machine to another goes through an sshd of its own, whose key reads one directory."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

ORIGINAL, COPY = "/root/stead-original", "/root/stead-copy"
FILES = f"""
rm -rf {ORIGINAL} {COPY}
mkdir -p {ORIGINAL}/deep
seq 100000 > {ORIGINAL}/deep/numbers
ln {ORIGINAL}/deep/numbers {ORIGINAL}/same
chown 2001:2001 {ORIGINAL}/deep
chmod 1750 {ORIGINAL}/deep
truncate -s 50M {ORIGINAL}/sparse
"""
LIST = (
    "find . -path ./.slurmstead-copy -prune -o -mindepth 1 -printf '%p %y %m %U %G %n %T@\\n' | sort; "
    "stat --format='%a %U %G' .; sha256sum deep/numbers sparse"
)


@pytest.fixture
def machines(lab: Any) -> Iterator[tuple[str, str]]:
    """A machine with an original, and one for the copy."""
    first, second = lab.workers[:2]
    lab.everywhere(lambda name: lab.root(name, FILES), (first, second))
    yield first, second
    clean = f"systemctl stop slurmstead-move 2> /dev/null; rm -rf {ORIGINAL} {COPY} /run/slurmstead-move"
    lab.everywhere(lambda name: lab.root(name, clean), (first, second))


def test_a_directory_is_copied_from_another_machine_and_nothing_else_can_be_read(
    lab: Any, machines: tuple[str, str], tmp_path: pathlib.Path
) -> None:
    first, second = machines
    original = {"directory": COPY, "original": f"test:{ORIGINAL}"}
    key = f"{{{{ hostvars['{second}'].begun.key }}}}"
    serve = {"source": ORIGINAL, "address": lab.address(first), "client": lab.address(second), "client_key": key}
    copied = {**original, "source": ORIGINAL, "server": lab.address(first), "final": True}
    copied["host_key"] = f"{{{{ hostvars['{first}'].served.key }}}}"

    def play(host: str, result: str, **step: Any) -> dict[str, Any]:
        task = {"name": f"Do {step['state']}", "share_move": step, "register": result}
        return {"name": f"Do {step['state']}", "hosts": host, "become": True, "tasks": [task]}

    plays = [
        play(second, "begun", state="begun", **original),
        play(first, "served", state="served", **serve),
        # An interrupted run has left a server.
        play(first, "served", state="served", **serve),
        play(second, "copied", state="copied", **copied),
    ]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(plays))
    run = lab.ansible(str(tmp_path / "play.yml"))

    assert run.code == 0, run.output
    assert lab.root(second, f"cd {COPY}; {LIST}") == lab.root(first, f"cd {ORIGINAL}; {LIST}")
    ssh = (
        "ssh -F none -n -i /run/slurmstead-move/key -p 8730 -o BatchMode=yes -o StrictHostKeyChecking=yes "
        f"-o UserKnownHostsFile=/run/slurmstead-move/known_hosts root@{lab.address(first)}"
    )
    for command in ("cat /etc/munge/munge.key", "rsync --server --sender -r . /etc/"):
        assert "not allowed: " in lab.root(second, f"{ssh} '{command}' 2>&1 || true")
    assert lab.root(first, f"stat --format=%a /run/slurmstead-move {ORIGINAL}/../stead-original/deep") == "700\n1750"
