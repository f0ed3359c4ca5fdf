"""Runs Ansible: a playbook with a deadline and a signal, its events, its outcome and the progress that people see.

`playbook.run` is the one way in; `cluster/`, `lab/` and `testing` use it.
"""
