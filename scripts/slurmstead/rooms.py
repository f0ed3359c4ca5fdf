"""Modules of the plugins' rooms, which Ansible finds through ansible.cfg."""

import importlib
from typing import Any

import ansible.module_utils

from slurmstead.paths import ROOT


def module(name: str) -> Any:
    """Import a module such as `sandbox.images`."""
    directory = str(ROOT / "plugins" / "module_utils")
    if directory not in ansible.module_utils.__path__:
        ansible.module_utils.__path__.append(directory)
    return importlib.import_module(f"ansible.module_utils.slurmstead.{name}")
