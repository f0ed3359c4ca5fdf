# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The archive of a cluster, and the reasons to refuse its restore.

The modules cluster_backup and cluster_restore use it.
"""
