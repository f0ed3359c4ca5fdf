# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What an inventory says, and everything that is wrong with it, found on the controller before a machine is touched.

The action validate_inventory comes in at `check`. Nothing here knows Ansible's inventory or templating.
"""
