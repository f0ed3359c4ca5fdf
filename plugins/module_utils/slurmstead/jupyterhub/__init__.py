# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Notebooks: which Python packages a machine needs, how they are installed, profiles, and the hub's certificate.

The plugins of the role jupyterhub use it: on the controlling computer for the packages, which machines without Internet
access get from it, and on machines for the rest.
"""
