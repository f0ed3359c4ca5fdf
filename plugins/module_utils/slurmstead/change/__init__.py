# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Applies configuration files to Slurm: either they are proven to work, or the last good configuration is restored.

The module slurm_config uses it: `classify` says what a change needs, `sets` stores its files. Others that stop or
restart slurmctld use `decisions`, which keeps what an administrator set at run time.
"""
