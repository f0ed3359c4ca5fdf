# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""From the files that Slurm should have to a configuration that is proven to work, or back to the last good one.

The modules slurm_config and slurm_controller come in here; `classify` says what a change needs, `sets` keeps its files.
"""
