# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""People as data: the file people.yml of a site, lists from spreadsheets, and how one changes the other.

The inventory's check, the filter `people` and the verbs `stead people` use it on the controlling computer; modules that
would lock accounts use `lost`.
"""
