# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The hardware of a machine: measurement, record, and the resulting line in slurm.conf.

The module slurm_hardware measures; the filters of plugins/filter render the lines.
"""
