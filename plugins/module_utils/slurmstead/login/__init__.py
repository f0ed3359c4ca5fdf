# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Who may be on a worker without a job: the PAM files of sshd, su, cron, at and systemd --user.

It knows our own blocks in these files and nothing else of them, and how they are tried before they stay. The module
login uses it.
"""
