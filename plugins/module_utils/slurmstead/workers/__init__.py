# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Pausing, rebooting, removing and returning workers, through Slurm.

The modules worker_pause, worker_reboot and worker_service use it, and a program on control, which takes workers back.
"""
