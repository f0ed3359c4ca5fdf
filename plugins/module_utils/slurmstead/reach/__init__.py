# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The ground: programs, ssh to other machines, locks, files that survive a power cut.

Every room may use it; it knows nothing about Slurm.
"""
