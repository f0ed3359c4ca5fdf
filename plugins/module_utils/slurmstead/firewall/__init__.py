# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The firewall of a machine: which packets from outside it accepts.

It knows our own nftables table and nothing of others', how sshd is reached here, and how a table is tried before it
stays. The module firewall uses it.
"""
