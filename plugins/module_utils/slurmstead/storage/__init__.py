# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Disks and volumes: what is on them, and what may be made of a blank one.

The module local_volume comes in here. Nothing here writes to a disk that is not blank.
"""
