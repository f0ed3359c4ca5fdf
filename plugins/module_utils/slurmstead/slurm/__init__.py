# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A running Slurm: what its commands print, and its state on the disk.

Everything that asks slurmctld or slurmd comes in here; nothing else parses squeue, sinfo or scontrol.
"""
