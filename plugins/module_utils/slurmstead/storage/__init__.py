# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Disks and volumes: their content, and the creation of volumes on blank disks.

The module local_volume uses it. Nothing here writes to a disk that is not blank.
"""
