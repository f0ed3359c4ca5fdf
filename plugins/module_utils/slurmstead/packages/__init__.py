# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What apt would change on a machine, in which order machines are upgraded, and what then waits for a restart.

The modules package_upgrade and cluster_versions come in here.
"""
