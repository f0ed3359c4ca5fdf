# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The language of Slurm's configuration files: keys, values, units and what differs between versions of Slurm.

All code that parses or renders such a file uses it; it opens no files itself.
"""
