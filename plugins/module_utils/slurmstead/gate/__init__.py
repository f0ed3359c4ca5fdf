# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A rehearsal: the real slurmctld starts in namespaces of its own and tries a configuration before it is published.

`change` comes in here, and so does a restore.
"""
