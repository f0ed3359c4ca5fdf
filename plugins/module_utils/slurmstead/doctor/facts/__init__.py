# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What is to be known of a machine to judge its cluster: each module reads one part of it, and writes nothing."""
