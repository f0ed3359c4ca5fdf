#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Describe the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: systemd_unit
short_description: Bring a unit of systemd into a state
description:
  - M(ansible.builtin.systemd_service) with a difference where the unit does not exist. A dry run then reports a change
    and no failure, because what brings the unit has not been put in place. A unit that is to be stopped is.
  - Takes the arguments that M(ansible.builtin.systemd_service) takes.
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
status: {description: What systemd says of the unit., type: dict, returned: where the unit exists}
"""
