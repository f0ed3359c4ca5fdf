# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Upgrades: the changes that apt would make on a machine, the order of machines, and necessary restarts.

The modules package_upgrade and cluster_versions use it.
"""
