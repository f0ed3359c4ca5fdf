# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What is wrong with a cluster: `facts` is what each machine reports, `findings` are the verdicts on all of them.

The action plugins behind playbooks/run-doctor.yml come in here.
"""
