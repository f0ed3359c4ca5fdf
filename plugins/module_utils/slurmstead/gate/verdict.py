# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The gated slurmctld's verdict on a configuration: pure functions on its output and its queue."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible.module_utils.slurmstead.conf import finding as conf_finding
from ansible.module_utils.slurmstead.conf.finding import Finding
from ansible.module_utils.slurmstead.slurm import jobs as slurm_jobs
from ansible.module_utils.slurmstead.slurm import state
from ansible.module_utils.slurmstead.slurm.jobs import Job, State

SAID = re.compile(r"^(?:\[[^\]]*\] )?slurm\w*: (?:(error|fatal|warning): )?(.*)$")
PARSE_ERROR = re.compile(r"Parse error in file (\S+) line (\d+)")
UNKNOWN_KEY = re.compile(r"Parsing error at unrecognized key: (\S+)")
RECOVERED = re.compile(r"Recovered JobId=(\d+) (?:Assoc|StepId|has)")

NOISE = re.compile(
    r"Job accounting information gathered|Even though we are collecting|pmix|PMIx|No memory enforcing|"
    r"state file|Trying backup state|state save file|cannot stat|Configured MailProg|"
    r"Trying to recover|last_config_lite|priority_last_decay|Invalid RPC|connect|Unable to contact|"
    # The queue gives more exact information about removed nodes and jobs.
    r"lookup failure for node|has vanished from configuration|invalid node specified|JobId=|"
    r"without --systemd|Lua|dbus|topology\.conf: No such|Unable to (?:register|resolve)|does not match|"
    r"glob parsing|\"Include\" failed|Node ping|Nodes .* not responding|error in completing|Registered PMIx|agent"
)
"""Errors that also occur with a good configuration, or only because of the gate."""

FULL = "MaxJobCount limit"
"""What slurmctld reports when the state has too many jobs. 24.11 then forgets the rest, 22.05 does not."""

CONSEQUENCE = re.compile(r"Unable to process|Could not open/read/parse|[Ff]ailed to initialize")
"""Fatal messages that follow the actual cause."""

OF_KEY = {
    "not a valid controller": ("SlurmctldHost", "use the name of this machine that `hostname` prints"),
    "CLUSTER NAME MISMATCH": (
        "ClusterName",
        "keep the name, or, without any jobs, stop slurmctld and delete clustername in StateSaveLocation",
    ),
}
"""Messages without a line, with the key that they concern, and what to do."""

MOST = 6
"""Maximum number of lines of a daemon's output to show."""


def messages(log: str) -> list[tuple[str, str]]:
    """Return the level and text of each line of a daemon's output.

    >>> messages("slurmctld: error: Parsing error at unrecognized key: Foo\\nslurmctld: started")
    [('error', 'Parsing error at unrecognized key: Foo'), ('', 'started')]
    """
    found = []
    for line in log.splitlines():
        match = SAID.match(line)
        if match:
            found.append((match[1] or "", match[2].strip()))
    return found


def findings(log: str, files: Mapping[str, str]) -> list[Finding]:
    """Return slurmctld's complaints: for each source line only the first.

    A complaint without a line is kept if it was fatal to slurmctld, or if there is no other.
    """
    found: dict[tuple[str, int] | str, Finding] = {}
    errors: list[Finding] = []
    for level, text in messages(log):
        if level not in ("error", "fatal") or (level == "error" and NOISE.search(text)):
            continue
        finding = _finding(text, files)
        if finding.line:
            found.setdefault((finding.file, finding.line), finding)
        elif level == "error":
            errors.append(finding)
        elif not (found and CONSEQUENCE.match(text)):
            found.setdefault(text, finding)
    return (list(found.values()) or list(dict.fromkeys(errors)))[:MOST]


def _finding(text: str, files: Mapping[str, str]) -> Finding:
    if state.UNREADABLE.search(text):
        return Finding(f"slurmctld says: {state.advised(text)}")
    key, parse = UNKNOWN_KEY.search(text), PARSE_ERROR.search(text)
    if key:
        return conf_finding.at(files, *conf_finding.key_line(files, key[1]), f"slurmctld knows no key {key[1]} here")
    if parse:
        return conf_finding.at(files, parse[1].rpartition("/")[2], int(parse[2]), "slurmctld cannot read this line")
    for words, (name, advice) in OF_KEY.items():
        if words in text:
            return conf_finding.at(files, *conf_finding.key_line(files, name), f"slurmctld says: {text}", advice)
    return conf_finding.at(files, *conf_finding.locate(files, text), f"slurmctld says: {text}")


def died_of(log: str, most: int = 3) -> str:
    """Return a daemon's last distinct errors, which contain the cause; without errors, its last output.

    >>> died_of("slurmctld: error: no key file\\nslurmctld: fatal: failed to initialize auth plugin")
    'no key file; failed to initialize auth plugin'
    """
    said = messages(log)
    texts = [text for level, text in said if level == "fatal" or (level == "error" and not NOISE.search(text))]
    return state.advised("; ".join(list(dict.fromkeys(texts))[-most:]) or log.strip().rpartition("\n")[2])


def recovered(log: str) -> frozenset[str]:
    """Return the numbers of the jobs that it loaded from the state."""
    return frozenset(RECOVERED.findall(log))


def job_findings(log: str, live: State, gated: State) -> list[Finding]:
    """Return a finding for each job that the configuration would end, requeue or forget.

    The copied state is some seconds old (SAVE_MAX_WAIT in src/slurmctld/state_save.c): a job missing from it does not
    count as lost, unless there are too many jobs, and a job pending in it was only requeued if slurmctld reports that.
    If no controller runs, the gate's queue is the only source.
    """
    known, after = recovered(log), slurm_jobs.by_number(gated)
    if live.heard:
        started = {number for number, job in after.items() if job.pending and job.reason not in slurm_jobs.KILLED_BY}
        doubted = known - started | ({job.number for job in live.live} - after.keys() if FULL in log else set())
        lost = slurm_jobs.lost((job for job in live.live if job.number in doubted), after)
    else:
        lost = slurm_jobs.lost((Job(number, "RUNNING") for number in known if _hurt(after.get(number))), after)
    return [
        Finding(f"{slurm_jobs.in_words([job])} would be {fate}", advice="let it end, cancel it, or keep what it needs")
        for job, fate in sorted(lost, key=lambda pair: int(pair[0].number))
    ]


def _hurt(job: Job | None) -> bool:
    return job is not None and job.reason in slurm_jobs.KILLED_BY
