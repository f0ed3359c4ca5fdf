# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What a virtual machine or a container of the lab is made of.

The modules lab_machine and lab_container come in here.
"""
