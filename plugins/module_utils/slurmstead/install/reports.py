# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What a new machine reported, of which nothing is trusted, and whether that is what a run waits for."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ansible.module_utils.slurmstead.discover.identity import FINGERPRINT, SERIAL
from ansible.module_utils.slurmstead.reach.commands import printable

PATTERNS = {"host_key": FINGERPRINT, "serial": SERIAL}
"""What becomes part of a command or of the inventory; a report of anything else does not count."""

HINTS = {
    "started": "did not boot over the network. Switch it on, and let its firmware boot over the network from the card "
    "with router_mac first (without Secure Boot). If it was on already, restart it: --restart cuts its power",
    "writing": "did not choose a disk. Its screen shows what it does",
    "installed": "did not finish. Its screen shows what it does",
}


def latest(text: str) -> list[dict[str, str]]:
    """Return the reports of the machine's last boot.

    >>> latest('{"stage": "started"}\\n{"stage": "failed"}\\n{"stage": "started", "serial": "A"}\\n')
    [{'stage': 'started', 'serial': 'A'}]
    """
    found: list[dict[str, str]] = []
    for line in text.splitlines():
        report = _read(line)
        found = [report] if report["stage"] == "started" else [*found, report]
    return found


def _read(line: str) -> dict[str, str]:
    """Return a report.

    >>> _read('{"stage": "installed", "host_key": "{{ 1 }}"}')
    {'stage': 'installed'}
    """
    texts = {key: printable(str(value)) for key, value in json.loads(line).items()}
    return {key: text for key, text in texts.items() if key not in PATTERNS or PATTERNS[key].fullmatch(text)}


def reached(text: str, stage: str) -> Mapping[str, str] | None:
    """Return all that was reported, if the machine has reached a stage, or has failed; None if it is still to come.

    >>> reached('{"stage": "started", "serial": "A"}', "installed"), reached('{"stage": "started"}', "started")
    (None, {'stage': 'started'})
    """
    reports = latest(text)
    merged = {key: value for report in reports for key, value in report.items()}
    stages = [report["stage"] for report in reports]
    if stages and stages[-1] in ("refused", "failed"):
        return merged
    return merged if stage in stages else None
