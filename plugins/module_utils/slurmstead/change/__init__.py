# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Applies configuration files to Slurm: either they are proven to work, or the last good configuration is restored.

The modules slurm_config and slurm_controller use it; `classify` says what a change needs, `sets` stores its files.
"""
