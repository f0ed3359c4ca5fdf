# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The language of Slurm's configuration files: keys, values, units and what differs between versions of Slurm.

Code that reads or writes such a file comes in here; no file of a machine is opened.
"""
