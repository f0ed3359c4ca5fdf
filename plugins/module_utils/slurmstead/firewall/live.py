# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The table in the kernel, and the trial of a new one: it is removed again unless it is confirmed in time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ansible.module_utils.slurmstead.firewall.table import FAMILY, NAME, REPLACE
from ansible.module_utils.slurmstead.reach import durable
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.reach.trial import SECONDS, Trial

FILE = Path("/etc/slurmstead/firewall.nft")
"""The table that each boot loads: the last confirmed one."""

UNIT = "slurmstead-firewall.service"
UNIT_FILES = {
    "unit": Path("/etc/systemd/system") / UNIT,
    "nftables_unit": Path("/etc/systemd/system/nftables.service.d/slurmstead.conf"),
}
"""The unit that loads the table, and the addition to Debian's, by the module's option that has their text."""

TRIAL = Trial(Path("/run/slurmstead/firewall"), "slurmstead-firewall-rollback", "exec nft --file previous")
"""Its file `new` is the table on trial, `previous` restores the one before it."""


class FirewallError(Exception):
    """nft or systemd refused; the message says what."""


def _must(*command: str) -> str:
    code, out, err = run(*command, seconds=SECONDS)
    if code:
        raise FirewallError(f"`{' '.join(command)}` failed: {err.strip() or out.strip() or f'exit code {code}'}")
    return out


def listed() -> str:
    """Return the table in the kernel as nft lists it, without counts; empty without one."""
    code, out, _ = run("nft", "--stateless", "list", "table", FAMILY, NAME)
    return "" if code else out


def listed_from(path: Path) -> str:
    """Return what `listed` would return if this file were loaded, from a network namespace of its own.

    :raises FirewallError: nft refuses the file
    """
    words = 'nft --file "$0" && nft --stateless list table "$1" "$2"'
    return _must("unshare", "--net", "sh", "-c", words, str(path), FAMILY, NAME)


def check(path: Path) -> None:
    """Let nft check a file against the kernel's rules; raises FirewallError."""
    _must("nft", "--check", "--file", str(path))


def on_trial() -> bool:
    """Return whether an earlier run left a table on trial."""
    return TRIAL.new.exists()


def begin(text: str, seconds: int) -> None:
    """Load a table on trial. Unless `confirm` is called within that many seconds, systemd restores the one before it.

    :raises FirewallError: nft or systemd refuses; the previous table is loaded
    """
    TRIAL.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = listed()
    durable.write(TRIAL.directory / "previous", f"{REPLACE}{before}".encode(), 0o600)
    durable.write(TRIAL.new, text.encode(), 0o600)
    try:
        check(TRIAL.new)
        error = TRIAL.arm(seconds)
        if error:
            raise FirewallError(f"systemd does not start the timer of the rollback: {error}")
        _must("nft", "--file", str(TRIAL.new))
    except FirewallError:
        roll_back()
        raise


def roll_back() -> bool:
    """Restore the table before the trial now; return whether there was a trial."""
    return TRIAL.roll_back()


def confirm() -> None:
    """End the trial: the table stays, and each boot loads it.

    :raises FirewallError: it was rolled back before
    """
    try:
        new = TRIAL.confirm()
    except FileNotFoundError:
        raise FirewallError("the previous firewall was restored before the new one was confirmed") from None
    keep(new.read_text())


def keep(text: str) -> None:
    """Let each boot load this table."""
    FILE.parent.mkdir(parents=True, exist_ok=True)
    durable.write(FILE, text.encode())
    _must("systemctl", "enable", "--quiet", "--now", UNIT)


def is_kept() -> bool:
    """Return whether the unit that loads the table runs and is enabled."""
    _, out, _ = run("systemctl", "show", "--property=ActiveState,UnitFileState", UNIT)
    return {"ActiveState=active", "UnitFileState=enabled"} <= set(out.splitlines())


def outdated_units(texts: Mapping[str, str]) -> list[str]:
    """Return the names in UNIT_FILES of the unit files that differ from these texts."""
    return [name for name, path in UNIT_FILES.items() if not path.is_file() or path.read_text() != texts[name]]


def write_units(texts: Mapping[str, str]) -> None:
    """Write the unit files and let systemd read them."""
    for name, path in UNIT_FILES.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        durable.write(path, texts[name].encode())
    _must("systemctl", "daemon-reload")


def remove() -> None:
    """Remove the table, its file and its units."""
    roll_back()
    run("systemctl", "disable", "--quiet", "--now", UNIT)
    for path in (FILE, *UNIT_FILES.values()):
        path.unlink(missing_ok=True)
    run("systemctl", "daemon-reload")
    if listed():
        _must("nft", "delete", "table", FAMILY, NAME)
