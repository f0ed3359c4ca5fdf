#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Run one virtual machine of the lab."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_machine
short_description: Run one virtual machine of the lab
description:
  - Starts a QEMU machine from a built image and waits until it accepts a login, or ends it and removes its files.
  - A running machine is left alone; after a crash of this computer, a machine starts again from its own disks.
  - Everything that belongs to a lab is in one directory. Nothing listens beyond loopback.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  state: {type: str, choices: [started, absent], default: started, description: Whether the machine runs or is gone.}
  directory: {type: path, required: true, description: The directory of the lab.}
  name: {type: str, required: true, description: The name of the machine.}
  number: {type: int, description: A number from 1 to 254 that no other machine of the lab has.}
  address: {type: str, description: Address on the network between the nodes, with its prefix length.}
  architecture: {type: str, default: amd64, description: Architecture of the guest.}
  board: {type: str, default: '', description: Board to emulate; a PC if it is empty.}
  board_variant: {type: str, default: vendor, description: Kernel whose view of the board's clusters is emulated.}
  image: {type: path, description: Directory of the image; it holds disk, kernel and initrd.}
  memory: {type: int, default: 1024, description: Memory in MiB.}
  cpus: {type: int, default: 2, description: Number of virtual CPUs; a board has its own.}
  disks:
    description: Extra blank disks with C(serial), C(size) in GiB and C(bus).
    type: list
    elements: dict
    default: []
  timeout: {type: int, default: 300, description: Seconds that a machine may take to accept a login.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Start a machine
  lab_machine:
    directory: /home/me/.local/state/slurmstead/lab/default
    name: node1
    number: 1
    address: 10.77.0.1/24
    image: /home/me/.cache/slurmstead/images/bookworm-amd64-0123456789ab
"""

RETURN = r"""
accelerator: {description: How the guest's CPUs are run (kvm or tcg)., type: str, returned: started}
port: {description: TCP port on loopback that leads to the guest's sshd., type: int, returned: started}
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import time

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.lab import board as lab_board
from ansible.module_utils.slurmstead.lab import machine as lab
from ansible.module_utils.slurmstead.lab.steps import (
    MachineError,
    end_process,
    free_port,
    locked,
    make_host_key,
    make_lab_key,
    process_of,
    run,
)

PROBE_SECONDS = 10
CONSOLE_LINES = 25
STILL_SECONDS = 60
FIRST_PROCESS = "Run /init"
"""A kernel prints this when it has booted (run_init_process in init/main.c)."""

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[A-Z]|[\x00-\x08\x0b-\x1f]")
"""Terminal control sequences, such as colours and cursor movements."""


def kvm_boots(
    image: str, architecture: lab.Architecture, device: str = "/dev/kvm", seconds: float = PROBE_SECONDS
) -> bool:
    """Return whether KVM boots this image's kernel to its first process in time.

    The device alone proves nothing: some nested hypervisors run a stock kernel a hundred times slower than TCG.
    """
    if not os.access(device, os.R_OK | os.W_OK):
        return False
    command = [
        architecture.qemu,
        "-machine", architecture.machine,
        "-accel", "kvm",
        "-cpu", architecture.cpu["kvm"],
        "-m", "512M",
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-kernel", f"{image}/kernel",
        "-initrd", f"{image}/initrd",
        "-append", f"console={architecture.console} panic=-1",
        "-serial", "stdio",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    seen = b""
    deadline = time.monotonic() + seconds
    try:
        while process.poll() is None and time.monotonic() < deadline:
            seen += process.stdout.read() or b""
            if FIRST_PROCESS.encode() in seen:
                return True
            time.sleep(0.1)
        return False
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def accelerator(directory: pathlib.Path, image: str, architecture: lab.Architecture) -> str:
    """Return kvm if it works, else tcg; tested once per boot of this computer."""
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    answer = directory / f"accelerator-{architecture.qemu}"
    with locked(directory / "accelerator.lock"):
        known = answer.read_text().split() if answer.exists() else []
        if known[:1] != [boot]:
            found = "kvm" if kvm_boots(image, architecture) else "tcg"
            known = [boot, found]
            answer.write_text(" ".join(known) + "\n")
    return known[1]


def start_switch(directory: pathlib.Path) -> int:
    """Start the switch between the nodes unless it runs; return its process id."""
    switch = directory / lab.SWITCH
    pid_file = directory / "switch.pid"
    with locked(directory / "switch.lock"):
        pid = process_of(pid_file)
        if pid is None:
            shutil.rmtree(switch, ignore_errors=True)
            run("vde_switch", "-s", str(switch), "-m", "600", "-p", str(pid_file), "-daemon")
            deadline = time.monotonic() + 5
            while (pid := process_of(pid_file)) is None:
                if time.monotonic() > deadline:
                    raise MachineError("vde_switch did not start")
                time.sleep(0.05)
    return pid


def make_device_tree(home: pathlib.Path, machine: lab.Machine, board: lab_board.Board, variant: str) -> None:
    """Write the device tree of QEMU's board with the CPUs of another board."""
    architecture = lab.ARCHITECTURES[machine.architecture]
    tree = str(home / machine.device_tree)
    run(
        architecture.qemu,
        "-machine", f"{architecture.machine},dumpdtb={tree}",
        "-cpu", architecture.cpu["tcg"],
        "-smp", str(board.cpus),
        "-nodefaults", "-display", "none",
    )  # fmt: skip
    wanted = [word for node in lab_board.cpu_nodes(board) for word in (node, "phandle")]
    phandles = run("fdtget", "-t", "x", tree, *wanted).split()
    for edit in lab_board.device_tree_edits(board, variant, phandles):
        run("fdtput", *(word.format(tree=tree) for word in edit))


def make_files(home: pathlib.Path, machine: lab.Machine, image: str) -> None:
    """Create the keys, disks and first-boot files of a new machine; the root disk last, to mark completion."""
    key = make_lab_key(home.parent)
    if (home / "root.qcow2").exists():
        return
    host_key = make_host_key(home, machine.name)
    files = lab.first_boot_files(machine, key.with_suffix(".pub").read_text(), host_key)
    (home / "credentials").write_text(files)
    for disk in machine.disks:
        with (home / f"{disk.serial}.raw").open("wb") as file:
            file.truncate(disk.size << 30)
    (home / "image").write_text(image)
    run("qemu-img", "create", "-q", "-f", "qcow2", "-b", f"{image}/disk", "-F", "raw", str(home / "root.new"))
    (home / "root.new").rename(home / "root.qcow2")


def console_tail(home: pathlib.Path) -> str:
    """Return the end of a machine's console output."""
    try:
        text = (home / "console.log").read_text(errors="replace")
    except FileNotFoundError:
        return "(nothing)"
    lines = (CONTROL.sub("", line).strip() for line in text.splitlines())
    return "\n".join([line for line in lines if line][-CONSOLE_LINES:])


def stands_still(home: pathlib.Path) -> bool:
    """Return whether a kernel has printed nothing for a while, before its first process."""
    console = home / "console.log"
    try:
        silent = time.time() - console.stat().st_mtime
        return (
            silent > STILL_SECONDS
            and FIRST_PROCESS not in console.read_text(errors="replace").rpartition("Linux version")[2]
        )
    except FileNotFoundError:
        return False


def accepts_login(home: pathlib.Path, name: str, deadline: float) -> bool:
    """Wait until a command can be run on a machine over ssh; False if its kernel stands still.

    :param deadline: value of time.monotonic() at which the machine has failed
    """
    command = ["ssh", "-F", str(home / "ssh_config"), "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", name, "true"]
    trouble = "did not accept a login in time"
    while time.monotonic() < deadline:
        with contextlib.suppress(subprocess.TimeoutExpired):
            if subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=20).returncode == 0:
                return True
        if process_of(home / "pid") is None:
            trouble = "ended while it booted"
            break
        if stands_still(home):
            return False
        time.sleep(1)
    raise MachineError(f"{name} {trouble}; the end of its console:\n{console_tail(home)}")


def switch_on(home: pathlib.Path, machine: lab.Machine, chosen: str) -> None:
    """Start the process of a machine whose files exist."""
    # A machine keeps the image that its disk is based on, even if a newer image was built.
    image = (home / "image").read_text()
    run(*lab.qemu_command(machine, str(home), image, chosen, int((home / "port").read_text())), cwd=home)


def start(module: AnsibleModule, directory: pathlib.Path, home: pathlib.Path) -> None:
    """Bring a machine up."""
    given = module.params
    board = lab_board.BOARDS.get(given["board"])
    machine = lab.Machine(
        name=given["name"],
        number=given["number"],
        address=given["address"],
        architecture=given["architecture"],
        memory=given["memory"],
        cpus=board.cpus if board else given["cpus"],
        disks=tuple(lab.Disk(**disk) for disk in given["disks"]),
        device_tree="board.dtb" if board else "",
    )
    port_file, switch_seen = home / "port", home / "switch"
    pid = process_of(home / "pid")
    if module.check_mode:
        module.exit_json(changed=pid is None)
    home.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    switch = str(start_switch(directory))
    if pid and switch_seen.read_text() != switch:
        # A new switch has no connection to machines that already run.
        end_process(pid)
        pid = None
    chosen = accelerator(directory, given["image"], lab.ARCHITECTURES[machine.architecture])
    if pid is None:
        make_files(home, machine, given["image"])
        if board:
            make_device_tree(home, machine, board, given["board_variant"])
        port = free_port()
        # First write the files that later calls need: otherwise an interruption leaves a machine that cannot be
        # reached.
        port_file.write_text(str(port))
        switch_seen.write_text(switch)
        (home / "ssh_config").write_text(lab.ssh_config(machine, str(home), str(directory / "key"), port))
        (directory / "ssh_config").write_text(lab.lab_ssh_config(str(directory)))
        switch_on(home, machine, chosen)
    deadline = time.monotonic() + given["timeout"]
    while not accepts_login(home, machine.name, deadline):
        # Under TCG and load, a kernel may misjudge its timer as too slow, and then it only handles interrupts.
        if running := process_of(home / "pid"):
            end_process(running)
        switch_on(home, machine, chosen)
    module.exit_json(changed=pid is None, accelerator=chosen, port=int(port_file.read_text()))


def remove(module: AnsibleModule, directory: pathlib.Path, home: pathlib.Path) -> None:
    """End a machine and remove its files; after the last one, also the switch and the lab's directory."""
    pid = process_of(home / "pid")
    # An interruption can leave the switch without machines.
    left = (directory / "switch.lock").exists() and not any(directory.glob("*/root.qcow2"))
    changed = pid is not None or home.exists() or left
    if changed and not module.check_mode:
        if pid:
            end_process(pid)
        with locked(directory / "switch.lock"):
            shutil.rmtree(home, ignore_errors=True)
            if not any(directory.glob("*/root.qcow2")):
                switch = process_of(directory / "switch.pid")
                if switch:
                    end_process(switch)
                shutil.rmtree(directory)
    module.exit_json(changed=changed)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["started", "absent"], "default": "started"},
            "directory": {"type": "path", "required": True},
            "name": {"type": "str", "required": True},
            "number": {"type": "int"},
            "address": {"type": "str"},
            "architecture": {"type": "str", "choices": sorted(lab.ARCHITECTURES), "default": "amd64"},
            "board": {"type": "str", "choices": ["", *sorted(lab_board.BOARDS)], "default": ""},
            "board_variant": {"type": "str", "choices": sorted(lab_board.VARIANTS), "default": "vendor"},
            "image": {"type": "path"},
            "memory": {"type": "int", "default": 1024},
            "cpus": {"type": "int", "default": 2},
            "disks": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "serial": {"type": "str", "required": True},
                    "size": {"type": "int", "required": True},
                    "bus": {"type": "str", "choices": sorted(lab.BUSES), "default": "virtio"},
                },
            },
            "timeout": {"type": "int", "default": 300},
        },
        required_if=[("state", "started", ("number", "address", "image"))],
        supports_check_mode=True,
    )
    directory = pathlib.Path(module.params["directory"])
    home = directory / module.params["name"]
    try:
        if module.params["state"] == "absent":
            remove(module, directory, home)
        else:
            start(module, directory, home)
    except (MachineError, OSError, subprocess.TimeoutExpired) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
