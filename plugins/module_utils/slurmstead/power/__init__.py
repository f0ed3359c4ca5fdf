# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Machines that are switched on and off: by their BMC, their board, a plug, a magic packet or a command.

It knows the protocols of the devices; `watch` also asks slurmctld which machines it wants, and `decide` says what to
do. It needs nothing but the standard library, and ipmitool for IPMI. The module power uses it, and the program that the
role power installs on control.
"""
