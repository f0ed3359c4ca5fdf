# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The jobs that prove a cluster, and the verdicts on what they print.

The module slurm_smoke comes in here.
"""
