"""What a verb does to a real cluster, and its report: doctor, smoke test, hardware, backup, operations on machines.

Each file runs a playbook and turns its results into a report; the verbs in `cli/` call them.
"""
