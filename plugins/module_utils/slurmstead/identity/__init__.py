# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Identities: users and groups, the MUNGE key and its credentials, users of the broker.

The modules for accounts, keys and the broker use it.
"""
