# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A running Slurm: the output of its commands, and its state on the disk.

All code that queries slurmctld or slurmd uses it; nothing else parses squeue, sinfo or scontrol.
"""
