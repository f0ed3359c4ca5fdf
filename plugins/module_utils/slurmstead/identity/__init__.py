# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Who is who: users and groups, the MUNGE key and its credentials, users of the broker.

The modules for accounts, keys and the broker come in here.
"""
