"""Proves the method of one machine, as the module power_test does, with shorter times. It runs on the control node."""

from __future__ import annotations

import json
import pathlib
import sys

from ansible.module_utils.slurmstead.power import proof, shutdown
from ansible.module_utils.slurmstead.power.watch import Configuration
from ansible.module_utils.slurmstead.slurm.daemons import Slurm

PLACE = pathlib.Path("/share/power")


def main() -> None:
    """Prove; the argument is the name of the machine."""
    proof.QUIET, proof.PAUSE, shutdown.ANSWER = 2.0, 0.3, 0.3
    sleepers = Configuration.read((PLACE / "power.json").read_text()).sleepers
    machines = {one.machine.name: one.machine for one in sleepers}
    machine, nodes = machines[sys.argv[1]], Slurm().nodes
    started, _ = proof.check(machine, nodes)
    off = proof.down(machine)
    others = {name: one.host for name, one in machines.items() if one is not machine}
    _, taken = proof.up(machine, started, others, nodes, 60)
    print(json.dumps({"off": off, "on": taken}))


if __name__ == "__main__":
    main()
