#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Load a machine's firewall."""

from __future__ import annotations

DOCUMENTATION = r"""
module: firewall
short_description: Load a machine's firewall, which is removed again if the machine can no longer be reached
description:
  - Keeps the nftables table C(inet slurmstead). Other tables are left alone.
  - A changed table is checked, then loaded on trial. The action plugin of the same name then opens a new connection to
    the machine. If that fails, or the controlling computer is lost, systemd restores the previous table.
  - From the ports of Slurm's daemons, only these daemons answer.
  - Each boot loads the last table that was confirmed, before the network is up.
  - Refuses to close ssh to the address from which this run connects.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  state:
    description: What happens to the table; C(confirmed) ends a trial.
    type: str
    choices: [present, absent, confirmed]
    default: present
  unit: {type: str, description: Text of the systemd unit that loads the table at boot.}
  nftables_unit: {type: str, description: Addition to nftables.service that loads the table after each flush.}
  cluster: {type: list, elements: str, default: [], description: Addresses from which everything is accepted.}
  ssh_from: {type: list, elements: str, default: [], description: Addresses and networks for ssh; empty means all.}
  tcp: {type: list, elements: int, default: [], description: TCP ports that are open to all networks.}
  udp: {type: list, elements: int, default: [], description: UDP ports that are open to all networks.}
  interfaces: {type: list, elements: str, default: [], description: Interfaces from which everything is accepted.}
  inside: {type: list, elements: str, default: [], description: 'Interfaces from which DHCP, DNS and NTP are accepted.'}
  vpn: {type: list, elements: int, default: [], description: TCP ports for the peers of the VPN.}
  slurm: {type: list, elements: str, default: [], description: 'Ports and ranges of ports of Slurm''s daemons.'}
  slurm_user: {type: str, default: slurm, description: The user of slurmctld and slurmdbd; it need not exist here.}
  deadline: {type: int, default: 120, description: Seconds after which an unconfirmed table is removed.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Load the firewall now and at boot
  firewall:
    cluster: [192.168.1.101, 192.168.1.102]
    unit: "{{ lookup('ansible.builtin.template', 'firewall.service.j2') }}"
    nftables_unit: "{{ lookup('ansible.builtin.template', 'nftables.service.j2') }}"
"""

RETURN = r"""
trial: {description: Whether a table was loaded that has to be confirmed., type: bool, returned: always}
"""

import os
import pathlib
import pwd
import shutil
import tempfile
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.firewall import live, sshd, table
from ansible.module_utils.slurmstead.reach import difference

OPENINGS = ("cluster", "ssh_from", "tcp", "udp", "interfaces", "inside", "vpn", "slurm")


def refusal(openings: table.Openings, here: sshd.Connection | None, interface: str = "") -> str:
    """Return why this table would lock this run out; empty if it does not.

    :param interface: the one by which the connection comes
    """
    allowed = [*openings.ssh_from, *openings.cluster, "127.0.0.0/8", "::1"]
    if not here or not openings.ssh_from or table.contains(allowed, here.client):
        return ""
    if interface == table.VPN and here.port in openings.vpn:
        return ""
    return (
        f"firewall_ssh_from is {', '.join(openings.ssh_from)}, which excludes {here.client}, the address from which "
        f"this run connects; nothing was changed. Add {here.client} or its network to firewall_ssh_from"
    )


def daemon_users(name: str) -> list[int]:
    """Return the numeric IDs of the users of Slurm's daemons; a machine without Slurm has root only."""
    try:
        return [0, pwd.getpwnam(name).pw_uid]
    except KeyError:
        return [0]


def main() -> None:
    """Run the module."""
    # Others than root read what is in the directories that this creates, whatever root's umask.
    os.umask(0o022)
    lists: dict[str, Any] = {
        name: {"type": "list", "elements": "int" if name in ("tcp", "udp", "vpn") else "str", "default": []}
        for name in OPENINGS
    }
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent", "confirmed"], "default": "present"},
            "unit": {"type": "str"},
            "nftables_unit": {"type": "str"},
            "slurm_user": {"type": "str", "default": "slurm"},
            "deadline": {"type": "int", "default": 120},
            **lists,
        },
        required_if=[("state", "present", ("unit", "nftables_unit"))],
        supports_check_mode=True,
    )
    act = {"present": present, "absent": absent, "confirmed": confirmed}[module.params["state"]]
    try:
        module.exit_json(**act(module))
    except (live.FirewallError, OSError, ValueError) as error:
        hint = (
            "; its kernel may lack nf_tables: then set firewall_enabled: false" if "not supported" in str(error) else ""
        )
        module.fail_json(msg=f"the firewall was not changed: {error}{hint}")


def present(module: AnsibleModule) -> dict[str, Any]:
    """Load the wanted table on trial if it differs, and keep the unit."""
    here = sshd.connection()
    ports = {*sshd.ports(), *([here.port] if here else [])}
    daemons = daemon_users(module.params["slurm_user"])
    lists = {name: module.params[name] for name in OPENINGS}
    openings = table.Openings(ssh_ports=sorted(ports), daemons=daemons, **lists)
    refused = refusal(openings, here, sshd.interface(here.client) if here else "")
    if refused:
        module.fail_json(msg=refused)
    text = table.text(openings)
    if not shutil.which("nft", path="/usr/sbin:/usr/bin"):
        if module.check_mode:
            return {"changed": True, "trial": False, "diff": shown("", text)}
        module.fail_json(msg="nft is not installed here; run `stead up` without --tags")
    if live.on_trial() and not module.check_mode:
        live.roll_back()
    kept = live.FILE.read_text() if live.FILE.is_file() else ""
    new_units = live.outdated_units(module.params)
    new_table = live.listed() != wanted_listing(text)
    changed = bool(new_units) or new_table or kept != text or not live.is_kept()
    if changed and not module.check_mode:
        if new_units:
            live.write_units(module.params)
        if new_table:
            live.begin(text, module.params["deadline"])
        else:
            live.keep(text)
    return {"changed": changed, "trial": new_table and not module.check_mode, "diff": shown(kept, text)}


def wanted_listing(text: str) -> str:
    """Return how nft lists the table of a text."""
    with tempfile.NamedTemporaryFile("w", prefix="firewall-") as file:
        file.write(text)
        file.flush()
        return live.listed_from(pathlib.Path(file.name))


def absent(module: AnsibleModule) -> dict[str, Any]:
    """Remove the table and everything that loads it."""
    found = bool(live.listed()) or any(path.exists() for path in (live.FILE, *live.UNIT_FILES.values()))
    if found and not module.check_mode:
        live.remove()
    return {"changed": found, "trial": False}


def confirmed(module: AnsibleModule) -> dict[str, Any]:
    """End the trial of the table."""
    if not module.check_mode:
        live.confirm()
    return {"changed": True, "trial": False}


def shown(old: str, new: str) -> list[dict[str, str]]:
    """Return the change as Ansible shows it."""
    return [{"prepared": difference.text(live.FILE, old, new)}]


if __name__ == "__main__":
    main()
