#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Run one machine of the lab as a container."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_container
short_description: Run one machine of the lab as a container
description:
  - Starts a container with systemd (systemd-nspawn) from the image of a virtual machine and waits until it accepts a
    login, or ends it and removes its files.
  - A running container is left alone. Containers share the kernel of this computer and need root there.
  - Everything that belongs to a lab is in one directory. Nothing listens beyond loopback.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  state: {type: str, choices: [started, absent], default: started, description: Whether the container runs or is gone.}
  directory: {type: path, required: true, description: The directory of the lab.}
  name: {type: str, required: true, description: The name of the machine.}
  number: {type: int, description: A number from 1 to 254 that no other machine of the lab has.}
  address: {type: str, description: Address on the network between the nodes, with its prefix length.}
  architecture: {type: str, default: amd64, description: Architecture of the machine; must be this computer's.}
  image: {type: path, description: Directory of the image; it holds disk.}
  shared:
    description: Directories that all containers of the lab have in common.
    type: list
    elements: path
    default: []
  timeout: {type: int, default: 60, description: Seconds that a container may take to accept a login.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Start a container
  lab_container:
    directory: /root/.local/state/slurmstead/lab/default
    name: node1
    number: 1
    address: 10.77.0.1/24
    image: /root/.cache/slurmstead/images/bookworm-amd64-0123456789ab
    shared: [/srv/share]
"""

RETURN = r"""
port: {description: TCP port on loopback that leads to the container's sshd., type: int, returned: started}
"""

import contextlib
import json
import os
import pathlib
import platform
import shutil
import socket
import subprocess
import time

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.lab import container as lab
from ansible.module_utils.slurmstead.lab import machine
from ansible.module_utils.slurmstead.lab.steps import (
    MachineError,
    end_process,
    free_port,
    locked,
    make_host_key,
    make_lab_key,
    run,
)

CONSOLE_LINES = 25
UPLINK_SECONDS = 10
KERNEL_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}


def process_of(container: lab.Container, role: str) -> int | None:
    """Return the id of the process that runs a container (`machine`) or its uplink (`uplink`)."""
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if lab.owns(container, (path / "cmdline").read_text(errors="replace").rstrip("\0").split("\0")) == role:
                return int(path.name)
    return None


def children(pid: int) -> list[int]:
    """Return the running child processes of a process."""
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def spawn(command: list[str], home: pathlib.Path, log: str, file: int, **environment: str) -> int:
    """Start a process that outlives this one and inherits an open file; return its id.

    Its output is appended to the file `log` in `home`.
    """
    with (home / log).open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=home,
            env={**os.environ, **environment},
            pass_fds=[file],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return process.pid


def tail(path: pathlib.Path) -> str:
    """Return the last lines of a file."""
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-CONSOLE_LINES:]) or "(nothing)"
    except FileNotFoundError:
        return "(nothing)"


def unmount(namespace: pathlib.Path) -> None:
    """Remove a network namespace and its interfaces, once no process is in it."""
    if os.path.ismount(namespace) or namespace.exists():
        subprocess.run(["umount", str(namespace)], capture_output=True)
        namespace.unlink(missing_ok=True)


def make_bridge(directory: pathlib.Path) -> None:
    """Create the lab's bridge unless it exists."""
    bridge = directory / lab.BRIDGE
    with locked(directory / "bridge.lock"):
        if bridge.exists() and namespace_is_mounted(bridge):
            return
        bridge.touch()
        for command in lab.bridge_commands(str(bridge)):
            run(*command)


def namespace_is_mounted(path: pathlib.Path) -> bool:
    """Return whether a network namespace is mounted on a file; after a crash of this computer none is."""
    return f" {path} nsfs " in pathlib.Path("/proc/self/mounts").read_text()


def connect(container: lab.Container, home: pathlib.Path, mac: str, port: int, life: int) -> None:
    """Create a container's namespace with its interface to the bridge and its uplink.

    `life` is the read end of a pipe; the uplink ends, and its port is closed, once no process has the write end.
    """
    (home / lab.NAMESPACE).touch()
    bridge = str(home.parent / lab.BRIDGE)
    for command in lab.cable_commands(container, bridge, mac):
        run(*command)
    (home / lab.UPLINK_SOCKET).unlink(missing_ok=True)
    spawn(lab.uplink_command(container, bridge, life), home, "uplink.log", life)
    answer = ask_uplink(home, lab.forwarding(port))
    if "error" in answer:
        raise MachineError(f"slirp4netns does not forward port {port}: {answer['error']}")


def ask_uplink(home: pathlib.Path, request: dict[str, object]) -> dict[str, object]:
    """Send slirp4netns a request as soon as it listens, and return its answer."""
    deadline = time.monotonic() + UPLINK_SECONDS
    directory = os.open(home, os.O_PATH)
    try:
        while True:
            with socket.socket(socket.AF_UNIX) as client:
                try:
                    client.connect(f"/proc/self/fd/{directory}/{lab.UPLINK_SOCKET}")
                except OSError:
                    if time.monotonic() > deadline:
                        raise MachineError(
                            f"slirp4netns did not start; its output:\n{tail(home / 'uplink.log')}"
                        ) from None
                    time.sleep(0.02)
                    continue
                client.sendall(json.dumps(request).encode())
                client.shutdown(socket.SHUT_WR)
                answer: dict[str, object] = json.loads(client.makefile().read())
                return answer
    finally:
        os.close(directory)


def end(container: lab.Container, home: pathlib.Path) -> bool:
    """End a container and its uplink, and remove its network and cgroups; return whether any of these existed."""
    found = False
    while pid := process_of(container, "machine"):
        found = True
        # When the first process ends, the kernel ends all others; then nspawn cleans up and exits.
        for child in children(pid):
            end_process(child)
        end_process(pid)
    while pid := process_of(container, "uplink"):
        found = True
        end_process(pid)
    bridge = home.parent / lab.BRIDGE
    if namespace_is_mounted(bridge):
        subprocess.run(lab.unplug_command(container, str(bridge)), capture_output=True)
    unmount(home / lab.NAMESPACE)
    for cgroup in lab.cgroups(container, pathlib.Path("/proc/self/mounts").read_text()):
        for path in sorted(pathlib.Path(cgroup).rglob("*/"), reverse=True):
            if path.is_dir():
                remove_cgroup(path)
        remove_cgroup(pathlib.Path(cgroup))
    return found


def remove_cgroup(path: pathlib.Path, seconds: float = 5) -> None:
    """Remove a cgroup once it has no processes left."""
    deadline = time.monotonic() + seconds
    while path.exists():
        try:
            path.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def wait_for_login(container: lab.Container, home: pathlib.Path, timeout: float) -> None:
    """Wait until a command can be run in a container over ssh."""
    command = ["ssh", "-F", str(home / "ssh_config"), "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]
    deadline = time.monotonic() + timeout
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                [*command, container.name, "true"], capture_output=True, stdin=subprocess.DEVNULL, timeout=20
            )
            if done.returncode == 0:
                return
        if process_of(container, "machine") is None:
            trouble = "ended while it booted"
        elif time.monotonic() > deadline:
            trouble = f"does not accept a login after {timeout:.0f} s"
        else:
            time.sleep(0.2)
            continue
        raise MachineError(f"{container.name} {trouble}; the end of its console:\n{tail(home / 'console.log')}")


def make_files(container: lab.Container, home: pathlib.Path, node: machine.Machine, image: str) -> None:
    """Create the keys and first-boot files of a new container; the name of its image last, to mark completion."""
    key = make_lab_key(home.parent)
    for path in lab.directories(container):
        pathlib.Path(path).mkdir(exist_ok=True)
    for _, source in container.shared:
        pathlib.Path(source).mkdir(parents=True, exist_ok=True)
    if (home / "image").exists():
        return
    public = key.with_suffix(".pub").read_text()
    files = machine.first_boot_files(node, public, make_host_key(home, container.name))
    (home / "credentials").write_text(files)
    for path, text in lab.FIRST_FILES.items():
        file = home / "changes" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for unit in lab.MASKED_UNITS:
        link = home / "changes/etc/systemd/system" / unit
        link.unlink(missing_ok=True)
        link.symlink_to("/dev/null")
    (home / "image.new").write_text(image)
    (home / "image.new").rename(home / "image")


def start(module: AnsibleModule, directory: pathlib.Path, container: lab.Container) -> None:
    """Bring a container up."""
    given, home = module.params, directory / container.name
    kernel = KERNEL_ARCHITECTURES.get(given["architecture"])
    if kernel != platform.machine():
        raise MachineError(
            f"{container.name} is {given['architecture']}, this computer is {platform.machine()}: a container cannot "
            "differ; start this lab without --native"
        )
    if os.geteuid() != 0:
        raise MachineError("containers are mounted and booted by root; run this as root")
    if (directory / machine.SWITCH).exists():
        raise MachineError(
            f"the lab in {directory} consists of virtual machines; give this one another name (--name), or remove that "
            "one with lab down"
        )
    running = process_of(container, "machine") is not None
    if module.check_mode:
        module.exit_json(changed=not running)
    home.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    make_bridge(directory)
    if not running:
        end(container, home)
        node = machine.Machine(container.name, container.number, given["address"], given["architecture"], 0, 0)
        make_files(container, home, node, given["image"])
        port = free_port()
        (home / "port").write_text(str(port))
        (home / "ssh_config").write_text(machine.ssh_config(node, str(home), str(directory / "key"), port))
        (directory / "ssh_config").write_text(machine.lab_ssh_config(str(directory)))
        life, alive = os.pipe()
        connect(container, home, node.cluster_mac, port, life)
        boot(container, home, alive)
        os.close(alive)
    wait_for_login(container, home, given["timeout"])
    module.exit_json(changed=not running, port=int((home / "port").read_text()))


def boot(container: lab.Container, home: pathlib.Path, alive: int) -> None:
    """Start the process of a container whose files and network exist; it keeps the file `alive` open until it ends."""
    # A container keeps the image that its overlay is based on, even if a newer image was built.
    image = (home / "image").read_text()
    systemd = pathlib.Path("/run/systemd/system").is_dir()
    command = lab.nspawn_command(container, systemd=systemd, autofs=pathlib.Path(lab.AUTOFS).exists())
    mounts = pathlib.Path("/proc/self/mounts").read_text()
    environment = {**lab.ENVIRONMENT, "CGROUPS": " ".join(lab.cgroups(container, mounts))}
    # All processes of the container are in a namespace that ends with `unshare`, so killing it is a power cut.
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    wrapper = [*namespaces, "sh", "-c", lab.START, "sh", str(home), container.root, image]
    pid = spawn([*wrapper, *command], home, "console.log", alive, **environment)
    (home / "pid").write_text(str(pid))


def remove(module: AnsibleModule, directory: pathlib.Path, container: lab.Container) -> None:
    """End a container and remove its files; after the last one, also the bridge and the lab's directory."""
    home = directory / container.name
    # An interruption can leave the bridge without containers.
    left = (directory / "bridge.lock").exists() and not any(directory.glob("*/ssh_config"))
    changed = home.exists() or process_of(container, "machine") is not None or left
    if changed and not module.check_mode:
        end(container, home)
        with locked(directory / "bridge.lock"):
            shutil.rmtree(home, ignore_errors=True)
            if not any(directory.glob("*/ssh_config")):
                unmount(directory / lab.BRIDGE)
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
            "architecture": {"type": "str", "default": "amd64"},
            "image": {"type": "path"},
            "shared": {"type": "list", "elements": "path", "default": []},
            "timeout": {"type": "int", "default": 60},
        },
        required_if=[("state", "started", ("number", "address", "image"))],
        supports_check_mode=True,
    )
    directory = pathlib.Path(module.params["directory"])
    name = module.params["name"]
    shared = tuple((path, f"{directory}/shared{path}") for path in module.params["shared"])
    container = lab.Container(name, module.params["number"] or 0, directory.name, str(directory / name), shared)
    try:
        if module.params["state"] == "absent":
            remove(module, directory, container)
        else:
            start(module, directory, container)
    except (MachineError, OSError, subprocess.TimeoutExpired) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
