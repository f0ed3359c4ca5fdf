# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What a machine is, what is remembered of it, and what that makes of its line in slurm.conf.

The module slurm_hardware measures, the filters of plugins/filter render.
"""
