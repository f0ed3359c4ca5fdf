"""Runs Ansible playbooks: their events, progress, interruption and outcome.

`playbook.run` is the only entry point; `cluster/`, `lab/` and `testing` use it.
"""
