# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The form of the files that `nft --file` reads.

It knows nothing of what a table accepts; the rooms firewall, network and vpn build their tables with it.
"""
