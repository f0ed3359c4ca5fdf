# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Machines that are in the network and not in the inventory: what is there, what each is, and whether it is known.

`look` runs on control, `measure` on a machine that accepts the operator's key; `judge` compares what they found with
the inventory by serial and host key. The action discover uses them. Nothing here changes a machine.
"""
