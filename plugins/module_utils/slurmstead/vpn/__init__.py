# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The VPN of a control node: the peers of a site's vpn.yml, and the texts for WireGuard and nft.

The filters of the role vpn, and the rules of the inventory, use it.
"""
