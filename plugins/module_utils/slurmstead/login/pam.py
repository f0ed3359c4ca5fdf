# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Our blocks in PAM's files (pam.d(5)). Lines that a block replaces are kept in it as comments."""

from __future__ import annotations

import re

LIST = "/etc/slurmstead/login-users"
"""Users who need no job, one a line."""

BEGIN, END, KEPT = "# BEGIN slurmstead login", "# END slurmstead login", "# was: "

_BLOCK = re.compile(rf"^{BEGIN}\n(.*?)^{END}\n", re.MULTILINE | re.DOTALL)

_NEEDS_NO_JOB = (
    f"pam_listfile.so quiet item=user sense=allow onerr=fail file={LIST}",
    "pam_succeed_if.so quiet user ingroup sudo",
)
_ADMINISTRATORS = [f"account sufficient {module}" for module in _NEEDS_NO_JOB]
_REFUSE = "account required pam_deny.so"

# pam_systemd would move the session out of the job's control group. A whole substack counts as one module of a jump.
_SESSION = [
    f"session [success=1 default=ignore] {_NEEDS_NO_JOB[0]}",
    f"session [success=ignore default=1] {_NEEDS_NO_JOB[1]}",
    "session substack common-session",
    "session required pam_unix.so",
]
_ADOPT = "account required pam_slurm_adopt.so action_no_jobs=deny action_adopt_failure=deny action_generic_failure=deny"

# Debian runs programs of packages by cron, and units of their users, with numbers below 1000.
_PEOPLE_ONLY = "account sufficient pam_succeed_if.so quiet uid < 1000"

ACCOUNT = {
    "sshd": [*_ADMINISTRATORS, _ADOPT],
    "cron": [_PEOPLE_ONLY, *_ADMINISTRATORS, _REFUSE],
    "atd": [_PEOPLE_ONLY, *_ADMINISTRATORS, _REFUSE],
    "systemd-user": [_PEOPLE_ONLY, *_ADMINISTRATORS, _REFUSE],
}
"""Lines after the last one of type account, by file."""

SU = [f"auth requisite pam_listfile.so item=ruser sense=allow onerr=fail file={LIST}"]
"""Lines after pam_rootok, so root is not asked."""

SERVICES = (*ACCOUNT, "su", "su-l")

BACKGROUND = ("cron", "atd")
"""Debian's files of these do not ask pam_systemd, so their processes are outside of the user's slice and its limits."""

_INTO_SLICE = [
    "session [success=ignore default=1] pam_succeed_if.so quiet uid >= 1000",
    "session optional pam_systemd.so class=background",
    # A jump past the last line fails.
    "session optional pam_permit.so",
]


class PamError(Exception):
    """A file does not have the line after which ours belong."""


def plain(text: str) -> str:
    """Return a file without our blocks."""

    def before(block: re.Match[str]) -> str:
        kept = [line.removeprefix(KEPT) for line in block[1].splitlines(keepends=True) if line.startswith(KEPT)]
        return "".join(kept)

    return _BLOCK.sub(before, text)


def closed(service: str, text: str) -> str:
    """Return a file with our blocks, which close the service to users without a job.

    :raises PamError: the file lacks the line after which ours belong
    """
    lines = plain(text).splitlines(keepends=True)
    if service in ("su", "su-l"):
        if service == "su-l" and not _places(lines, r"auth\s.*pam_rootok\.so"):
            # Debian's includes su's.
            return "".join(lines)
        _insert(service, lines, _places(lines, r"auth\s.*pam_rootok\.so"), SU)
        return "".join(lines)
    _insert(service, lines, _places(lines, r"account\s|@include\s+common-account\b"), ACCOUNT[service])
    if service == "sshd":
        places = _places(lines, r"@include\s+common-session\s*$")
        if len(places) != 1:
            raise PamError(f"/etc/pam.d/{service} has {len(places)} lines `@include common-session`, expected one")
        lines[places[0]] = _block([f"{KEPT}{lines[places[0]].rstrip()}", *_SESSION])
    return "".join(lines)


def limited(service: str, text: str) -> str:
    """Return a file with our block, which puts what cron and at run into the slice of its user."""
    return plain(text) + (_block(_INTO_SLICE) if service in BACKGROUND else "")


def _places(lines: list[str], pattern: str) -> list[int]:
    return [number for number, line in enumerate(lines) if re.match(rf"-?{pattern}", line)]


def _insert(service: str, lines: list[str], places: list[int], new: list[str]) -> None:
    if not places:
        raise PamError(f"/etc/pam.d/{service} has no line after which ours belong; restore Debian's file")
    lines.insert(places[-1] + 1, _block(new))


def _block(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in (BEGIN, *lines, END))
