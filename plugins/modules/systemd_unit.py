#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Describe the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: systemd_unit
short_description: Manage a systemd unit, which may be missing
description:
  - Works like M(ansible.builtin.systemd_service), except if the unit does not exist. Check mode then reports a change
    instead of a failure, because the unit is not installed yet. A missing unit counts as stopped.
  - Accepts the arguments of M(ansible.builtin.systemd_service).
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options: {}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Start slurmd now and at boot
  systemd_unit:
    name: slurmd.service
    state: started
    enabled: true
"""

RETURN = r"""
status: {description: Properties of the unit in systemd., type: dict, returned: where the unit exists}
"""
