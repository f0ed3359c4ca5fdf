"""The verbs that work on a real cluster: doctor, smoke test, hardware, backup, operations on machines.

Each file runs a playbook and turns its results into a report; `cli/` calls it.
"""
