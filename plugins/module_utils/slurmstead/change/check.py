# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""All checks before a configuration is published, the quickest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansible.module_utils.slurmstead.change.classify import classify
from ansible.module_utils.slurmstead.change.plan import Plan
from ansible.module_utils.slurmstead.conf import lint as conf_lint
from ansible.module_utils.slurmstead.conf import tokens as conf_tokens
from ansible.module_utils.slurmstead.conf.finding import Finding
from ansible.module_utils.slurmstead.gate import gate as gate_gate
from ansible.module_utils.slurmstead.gate import host as gate_host
from ansible.module_utils.slurmstead.slurm.jobs import State


@dataclass(frozen=True)
class Verdict:
    """The plan, and the mistakes that prevent it."""

    plan: Plan
    mistakes: tuple[Finding, ...] = ()
    """If there are any, nothing is published."""
    warnings: tuple[Finding, ...] = ()
    gate_seconds: float = 0.0
    """Duration of the gate; 0 if it was not needed."""


def check(old: Mapping[str, str], new: Mapping[str, str], version: str, state: State, state_directory: str) -> Verdict:
    """Return the verdict on a new set of files; `old` is the set that the daemons use.

    Each step runs only if the previous one found nothing. The plan names the jobs that block it; even then the gate
    checks whether slurmctld can load the files at all, so that a typo is reported before a long wait for jobs.

    Raises OSError if the gate cannot be built.
    """
    plan = classify(old, new, version, state)
    odd = (*conf_tokens.unknown_words(new, version), *conf_lint.warnings(new))
    mistakes = tuple(conf_lint.lint(new) or gate_host.check(new, old))
    if mistakes:
        return Verdict(plan, mistakes, odd)
    passage = gate_gate.passage(new, version, State() if plan.refusals else state, state_directory)
    return Verdict(plan, passage.findings, (*odd, *passage.warnings), passage.seconds)
