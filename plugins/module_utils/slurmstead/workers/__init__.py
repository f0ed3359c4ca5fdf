# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Workers that pause, reboot, leave and return, through Slurm.

The modules worker_pause, worker_reboot and worker_service come in here.
"""
