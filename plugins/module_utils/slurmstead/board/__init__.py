# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Modules on a board whose BMC writes their disks: a copy of an image with the account inside, and how it gets there.

An image is changed as a file, by debugfs and e2fsck of e2fsprogs, so neither root nor a processor of its architecture
is needed.
"""
