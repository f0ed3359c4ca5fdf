# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Slurm's records of jobs: the database of slurmdbd, and which cluster its records belong to.

It knows how MariaDB is set up, dumped and restored, and when slurmctld must forget the cluster ID that it invented
before there was a database. The modules accounting_database, cluster_backup and cluster_restore use it.
"""
