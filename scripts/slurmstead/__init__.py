"""The command behind scripts/stead: it runs the playbooks of this repository and says how they went."""
