# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The archive of a cluster, and when it may not be restored.

The modules cluster_backup and cluster_restore come in here.
"""
