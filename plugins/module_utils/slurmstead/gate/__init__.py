# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A rehearsal: the installed slurmctld loads a configuration in separate namespaces before it is published.

`change` uses it, and so does a restore.
"""
