# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A job's own root file system: what a task sees in an image, and the program that runs it there.

The program that slurmstepd runs for `--container` is made of it.
"""
