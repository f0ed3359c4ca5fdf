"""Lets tests find the virtual environment's tools, and our code under the names that Ansible and scripts/stead use."""

import os
import pathlib
import sys

import ansible.module_utils

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Modules import what they share as ansible.module_utils.slurmstead; Ansible finds it through ansible.cfg.
ansible.module_utils.__path__.append(str(ROOT / "plugins" / "module_utils"))
sys.path += [str(ROOT / "scripts"), *(str(path) for path in sorted((ROOT / "plugins").iterdir()) if path.is_dir())]
os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
