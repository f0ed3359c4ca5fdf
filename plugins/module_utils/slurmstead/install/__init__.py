# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Debian on a blank machine that boots over the network: which disk, what is on it afterwards, and what control serves.

machine.py is the program that runs on the new machine, serve.py the one on control. The module install_window and the
filters of the role install use the room.
"""
