# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A node on which one job is alone: settings of its kernel, its units during a job, and how equal measurements are.

The program that Prolog and Epilog run on quiet nodes is made of it, and `stead quiet measure` judges with it.
"""
