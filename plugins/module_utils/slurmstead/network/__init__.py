# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The inside network of a control node that is a router: its addresses, names, and what it forwards.

It knows the texts for dnsmasq and nft, how to find another DHCP server, and which networks overlap. The module router,
the filters of the role router and the rules of the inventory use it. dhcp.py also runs on its own, before dnsmasq.
"""
