# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The facts of a machine that the doctor needs: each module reads some of them, and writes nothing."""
