# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The checks of an inventory, which find all its mistakes on the controller before any machine is changed.

The action validate_inventory calls `check`. Nothing here depends on Ansible's inventory or templating.
"""
