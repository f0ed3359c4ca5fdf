"""The command behind scripts/stead: runs the playbooks of this repository and reports their results."""
