# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The parts of a virtual machine or container of the lab.

The modules lab_machine and lab_container use it.
"""
