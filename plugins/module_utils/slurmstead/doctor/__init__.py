# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The problems of a cluster: `facts` collects the facts of each machine, `findings` judges those of all machines.

The action plugins of playbooks/run-doctor.yml use it.
"""
