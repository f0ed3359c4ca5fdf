# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What a virtual machine of the lab is made of.

The module lab_machine comes in here.
"""
