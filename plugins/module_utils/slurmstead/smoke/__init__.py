# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The jobs of the smoke test, and the verdicts on their output.

The module slurm_smoke uses it.
"""
