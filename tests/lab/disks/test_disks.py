"""A disk of a running lab that is not blank is never written; a blank one becomes a volume, whatever interrupts that.

Everything happens on the second extra disk of node1, which no role uses. Its content is compared on this computer, from
outside the machine. Run: STEAD_LAB=NAME pytest tests/lab/disks
"""

from __future__ import annotations

import base64
import json
import os
import pathlib
import shlex
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests import disk_images

ROOT = pathlib.Path(__file__).resolve().parents[3]
STATE = pathlib.Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser()
LAB = STATE / "slurmstead/lab" / (os.environ.get("STEAD_LAB") or "default")

NODE = "node1"
LINK = "virtio-" if os.environ.get("STEAD_LAB_BUS") == "virtio" else "nvme-QEMU_NVMe_Ctrl_"
USED = f"/dev/disk/by-id/{LINK}node1-nvme0"
SPARE = f"/dev/disk/by-id/{LINK}node1-nvme1"
IMAGE = LAB / NODE / "node1-nvme1.raw"

# A handshake takes seconds on emulated CPUs, so all commands share a connection. Names of sockets are short (unix(7)).
SHARED = ["-o", "ControlMaster=auto", "-o", "ControlPersist=60", "-o", "ControlPath=/tmp/stead-%C"]
SSH = ["ssh", "-F", str(LAB / "ssh_config"), *SHARED, NODE, "sudo"]

DEADLINE = 300
"""Seconds that a playbook or a command may take on emulated CPUs."""

VOLUME = {"volume_group": "trial", "logical_volume": "trial", "path": "/mnt/trial", "mode": "0711"}

WRITE = """
import base64, json, os, sys
with open(sys.argv[1], "r+b", buffering=0) as disk:
    for offset, data in json.load(sys.stdin).items():
        disk.seek(int(offset))
        disk.write(base64.b64decode(data))
    os.fsync(disk)
"""

TOOLS = ("pvcreate", "vgcreate", "lvcreate", "mkfs.ext4", "lvchange", "systemctl")

AMBUSH = """
for name do
    tool=$(command -v "$name")
    mv "$tool" "$tool.real"
    cat > "$tool" <<EOF
#!/bin/sh
mv "$tool.real" "$tool"
"$tool" "\\$@" &
sleep 0.05
kill -KILL \\$PPID \\$!
EOF
    chmod 755 "$tool"
done
"""
"""Lets the next call of each tool be killed while it works, after the process that started it."""

WAITING = """
for name do
    [ ! -e "$(command -v "$name").real" ] || echo "$name"
done
"""
"""Says which tools have not been called since."""

DISARM = """
for name do
    tool=$(command -v "$name")
    [ ! -e "$tool.real" ] || mv "$tool.real" "$tool"
done
"""

CLEAN = """
unit=/etc/systemd/system/mnt-trial.mount
[ ! -e $unit ] || systemctl stop mnt-trial.mount
systemctl stop trial-open.service
for loop in $(losetup --noheadings --output NAME --associated "$(readlink --canonicalize "$1")"); do
    losetup --detach "$loop"
done
umount --all-targets "$1"
swapoff "$1"
for array in /sys/block/md*/md/array_state; do [ ! -e $array ] || echo clear > $array; done
for group in trial stranger; do [ ! -e /dev/$group ] || vgchange --activate n $group; done
rm -rf /mnt/trial
if [ -e $unit ]; then
    rm -rf $unit ${unit%/*}/local-fs.target.wants/mnt-trial.mount ${unit%/*}/dev-trial-trial.device.d
    systemctl daemon-reload
fi
blkdiscard --force --zeroout "$1"
"""

REREAD = """
udevadm settle --timeout=60
for second in $(seq 30); do
    blockdev --rereadpt "$1" && exec udevadm settle --timeout=60
    sleep 1
done
exit 1
"""
"""Lets the kernel look for partitions, as soon as nobody who looks at a disk that was written has it open."""


def guest(*command: str, stdin: str = "", check: bool = True) -> str:
    """Run a command as root on the node and return its output."""
    done = subprocess.run(
        [*SSH, shlex.join(command)], input=stdin, capture_output=True, text=True, check=False, timeout=DEADLINE
    )
    assert done.returncode == 0 or not check, f"{command}: {done.stderr}"
    return done.stdout


def ansible(tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one of Ansible's commands against the lab."""
    command = [str(pathlib.Path(sys.executable).with_name(tool)), "-i", "inventory/lab", *arguments]
    environment = {**os.environ, "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=DEADLINE
    )


def check_machines(*names: str) -> subprocess.CompletedProcess[str]:
    """Let site.yml's first look at the machines judge disks for scratch on the node."""
    variables = json.dumps({"scratch_disks": names})
    return ansible("ansible-playbook", "playbooks/check-machines.yml", "--limit", NODE, "-e", variables)


def local_volume(*disks: str, **arguments: str) -> dict[str, Any]:
    """Run the module for the trial volume and return its result."""
    given = json.dumps({**VOLUME, "disks": disks, **arguments})
    done = ansible("ansible", NODE, "--become", "-m", "local_volume", "-a", given)
    _, _, answer = done.stdout.partition(" => ")
    try:
        result: dict[str, Any] = json.loads(answer)
    except ValueError:
        result = {}
    assert "problems" in result, f"local_volume ended without a result: {done.stdout}{done.stderr}"
    return result


def write(pieces: Mapping[int, bytes]) -> None:
    """Write bytes to the spare disk."""
    text = json.dumps({offset: base64.b64encode(data).decode() for offset, data in pieces.items()})
    guest("python3", "-c", WRITE, SPARE, stdin=text)
    guest("udevadm", "settle", "--timeout=60")


def reread() -> None:
    """Let the partitions of the spare disk appear that were written, or those disappear that were erased."""
    guest("sh", "-c", REREAD, "sh", SPARE)


def content() -> str:
    """Return a checksum of the whole spare disk, as this computer sees it; holes count as the zeros they are."""
    guest("sync")
    guest("blockdev", "--flushbufs", SPARE)
    return disk_images.checksum(IMAGE)


def clean() -> None:
    """Make the spare disk blank, whatever a test left on it."""
    guest("sh", "-c", CLEAN, "sh", SPARE)
    reread()


@pytest.fixture(scope="module", autouse=True)
def left_blank() -> Iterator[None]:
    """Leave the spare disk blank in the end."""
    yield
    clean()


@pytest.fixture
def spare() -> int:
    """A blank spare disk; returns its size in bytes."""
    clean()
    return int(guest("blockdev", "--getsize64", SPARE))


@pytest.fixture
def halves(spare: int) -> tuple[str, str]:
    """The spare disk as two partitions of half its size, which stand for two disks; returns their names."""
    sectors = spare // 512
    entry = "<B3sB3sII"
    first = struct.pack(entry, 0, b"", 0x83, b"", 2048, sectors // 2 - 2048)
    second = struct.pack(entry, 0, b"", 0x83, b"", sectors // 2, sectors // 2)
    write({446: first + second, 510: b"\x55\xaa"})
    reread()
    return f"{SPARE}-part1", f"{SPARE}-part2"


@pytest.mark.parametrize("kind", ["gpt", "last-byte", "middle"])
def test_a_disk_that_is_not_blank_is_refused_and_left_as_it_is(spare: int, kind: str) -> None:
    make, expected = disk_images.KINDS[kind]
    write(make(spare))
    before = content()

    done = check_machines(USED, SPARE)

    assert done.returncode != 0, done.stdout
    said = " ".join(done.stdout.split())
    assert SPARE in said
    assert "serial node1-nvme1" in said
    assert expected in said
    assert content() == before


def test_each_kind_of_content_is_refused_by_its_name_and_left_as_it_is(spare: int) -> None:
    """One run judges all kinds, each in a partition that stands for a disk."""
    starts, size = disk_images.shares(spare, len(disk_images.KINDS))
    pieces = disk_images.gpt(spare, starts)
    for start, (make, _) in zip(starts, disk_images.KINDS.values(), strict=False):
        pieces |= {start + offset: data for offset, data in make(size).items()}
    write(pieces)
    reread()
    before = content()
    expected = {f"{SPARE}-part{number}": text for number, (_, text) in enumerate(disk_images.KINDS.values(), 1)}

    done = check_machines(*expected)

    assert done.returncode != 0, done.stdout
    said = " ".join(done.stdout.split())
    for name, text in expected.items():
        # What is said of a disk ends with how to erase it.
        assert text in said.partition(f"{name} (")[2].partition("blkdiscard")[0], f"{name}: {text}"
    assert content() == before


def test_a_blank_disk_is_allowed_and_left_as_it_is(spare: int) -> None:
    before = content()
    result = local_volume(SPARE, state="probe")
    assert result["problems"] == []
    assert not result["changed"]
    assert content() == before


def test_the_printed_command_releases_a_disk(spare: int) -> None:
    write(disk_images.without_table(spare) | disk_images.middle(spare) | disk_images.gpt_backup(spare))
    reread()
    (problem,) = local_volume(SPARE, state="probe")["problems"]
    command = problem.rpartition(": `")[2].removesuffix("`")
    assert SPARE in command

    guest("sh", "-c", command)
    reread()

    assert local_volume(SPARE, state="probe")["problems"] == []


def test_a_disk_that_a_process_has_open_is_refused(spare: int) -> None:
    """As QEMU opens a disk: without O_EXCL, so the kernel lets others open it exclusively."""
    before = content()
    reader = ["--unit=trial-open", "--property=Type=exec", f"--property=StandardInput=file:{SPARE}", "sleep", "600"]
    guest("systemd-run", "--collect", *reader)
    process = guest("systemctl", "show", "--property=MainPID", "--value", "trial-open").strip()

    (problem,) = local_volume(SPARE)["problems"]

    assert f"found open in sleep (process {process}). Nothing was written" in problem
    assert content() == before


def test_a_disk_below_a_loop_device_is_refused(spare: int) -> None:
    before = content()
    device = guest("losetup", "--find", "--show", SPARE).strip()

    (problem,) = local_volume(SPARE)["problems"]

    assert f"found open in the kernel (block/{device.rpartition('/')[2]}/loop/backing_file). Nothing" in problem
    assert content() == before


def test_a_mounted_disk_is_refused(spare: int) -> None:
    guest("mkfs.ext4", "-q", SPARE)
    guest("mkdir", "-p", "/mnt/trial")
    guest("mount", SPARE, "/mnt/trial")
    (problem,) = local_volume(SPARE, path="/mnt/other")["problems"]
    assert "mounted at /mnt/trial" in problem
    assert "in use (opened exclusively)" in problem


def test_active_swap_is_refused(spare: int) -> None:
    guest("mkswap", SPARE)
    guest("swapon", SPARE)
    (problem,) = local_volume(SPARE)["problems"]
    assert "in use as swap space" in problem


def test_a_disk_of_another_volume_group_is_refused(spare: int) -> None:
    guest("vgcreate", "stranger", SPARE)
    guest("lvcreate", "--extents", "100%FREE", "--name", "data", "stranger")
    (problem,) = local_volume(SPARE)["problems"]
    assert "it belongs to the volume group stranger" in problem
    assert "held by stranger-data" in problem


def test_a_volume_group_of_stranger_else_is_refused(spare: int) -> None:
    guest("vgcreate", "trial", SPARE)
    (problem,) = local_volume(SPARE)["problems"]
    assert "or one that Slurmstead made (tag slurmstead), found one without that tag" in problem


def test_a_kernel_name_is_refused_with_the_names_that_stay(spare: int) -> None:
    kernel_name = guest("readlink", "--canonicalize", SPARE).strip()
    (problem,) = local_volume(kernel_name)["problems"]
    assert problem.startswith(f"{kernel_name}: expected a name that stays with the disk")
    assert SPARE in problem


@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
def test_a_volume_is_made_once_and_grows(halves: tuple[str, str], filesystem: str) -> None:
    one, two = halves
    made = local_volume(one, filesystem=filesystem)
    assert made["changed"], made
    guest("dd", "if=/dev/urandom", "of=/mnt/trial/file", "bs=1M", "count=8", "status=none")
    checksum = guest("sha256sum", "/mnt/trial/file")
    size = int(guest("findmnt", "--bytes", "--noheadings", "--output", "SIZE", "/mnt/trial"))
    assert local_volume(one, filesystem=filesystem)["actions"] == []

    grown = local_volume(one, two, filesystem=filesystem)

    assert grown["changed"], grown
    assert int(guest("findmnt", "--bytes", "--noheadings", "--output", "SIZE", "/mnt/trial")) > 1.8 * size
    assert guest("sha256sum", "/mnt/trial/file") == checksum
    assert local_volume(one, two, filesystem=filesystem)["actions"] == []
    (problem,) = local_volume(one, filesystem=filesystem)["problems"]
    assert "declare that disk again" in problem
    other = {"ext4": "xfs", "xfs": "ext4"}[filesystem]
    (problem,) = local_volume(one, two, filesystem=other)["problems"]
    assert f"expected the file system {other}, found {filesystem}" in problem
    assert guest("sha256sum", "/mnt/trial/file") == checksum


def test_runs_that_are_killed_at_each_step_are_completed_by_the_next(halves: tuple[str, str]) -> None:
    given = json.dumps({**VOLUME, "disks": halves})
    killed = []
    try:
        guest("sh", "-c", AMBUSH, "sh", *TOOLS)
        while waiting := guest("sh", "-c", WAITING, "sh", *TOOLS).split():
            done = ansible("ansible", NODE, "--become", "-m", "local_volume", "-a", given)
            met = set(waiting) - set(guest("sh", "-c", WAITING, "sh", *TOOLS).split())
            assert len(met) == 1, f"{waiting} are left: {done.stdout}"
            assert done.returncode != 0, done.stdout
            killed += met
    finally:
        guest("sh", "-c", DISARM, "sh", *TOOLS)
    print("killed in", *killed)

    assert local_volume(*halves)["problems"] == []
    assert local_volume(*halves)["actions"] == []
    guest("touch", "/mnt/trial/file")
    guest("umount", "/mnt/trial")
    guest("e2fsck", "-f", "-n", "/dev/trial/trial")
