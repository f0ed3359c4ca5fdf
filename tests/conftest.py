"""Lets tests import the code of the repository under the names by which Ansible and scripts/stead know it."""

import pathlib
import sys

import ansible.module_utils

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Modules import what they share as ansible.module_utils.slurmstead; Ansible finds it through ansible.cfg.
ansible.module_utils.__path__.append(str(ROOT / "plugins" / "module_utils"))
sys.path += [str(ROOT / "scripts"), *(str(path) for path in sorted((ROOT / "plugins").iterdir()) if path.is_dir())]
