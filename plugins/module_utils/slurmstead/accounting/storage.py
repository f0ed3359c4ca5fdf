# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""slurmdbd's database in MariaDB, reached over the Unix socket: no password exists."""

from __future__ import annotations

import gzip
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import zlib

from ansible.module_utils.slurmstead.reach import durable
from ansible.module_utils.slurmstead.reach.commands import PATH, run

DATABASE = "slurm_acct_db"
USER = "slurm"

SETTINGS = pathlib.Path("/etc/mysql/mariadb.conf.d/90-slurmstead.cnf")
"""Our settings of MariaDB; a machine that has them has, or had, the role accounting."""

PLACE = pathlib.Path("/var/lib/slurmstead/accounting")
"""Directory of dumps, readable only by root."""

TO_RESTORE = "restore.sql.gz"
"""Name of the dump that the next run loads; it stays until the load is complete."""

SETUP = f"""\
CREATE DATABASE IF NOT EXISTS {DATABASE};
CREATE USER IF NOT EXISTS '{USER}'@'localhost' IDENTIFIED VIA unix_socket;
ALTER USER '{USER}'@'localhost' IDENTIFIED VIA unix_socket;
GRANT ALL ON {DATABASE}.* TO '{USER}'@'localhost';
"""
"""Creates the database and its user; can be repeated."""

IS_SET_UP = f"""\
SELECT COUNT(*) FROM mysql.db WHERE Db = '{DATABASE}' AND User = '{USER}' AND Host = 'localhost';
SELECT COUNT(*) FROM mysql.global_priv WHERE User = '{USER}' AND Priv LIKE '%unix_socket%';
SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '{DATABASE}';
"""

CLIENT = ("mariadb", "--batch", "--skip-column-names")
DUMP = ("mariadb-dump", "--single-transaction", "--quick", "--skip-dump-date", "--routines", DATABASE)
"""A dump of one moment, while slurmdbd writes."""

ASK = ("sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=Cluster")
"""A question that only a working slurmdbd answers."""

SMALLEST, LARGEST, SHARE = 64, 4096, 16
"""Of the machine's memory MariaDB gets this part as its buffer, within these limits in MiB."""

LONG = 7200.0
"""Seconds for a dump, or to load one."""


class StorageError(Exception):
    """MariaDB or slurmdbd refused; the message says what."""


def buffer_size(memory: int) -> int:
    """Return the size of MariaDB's buffer on a machine, both in MiB.

    >>> [buffer_size(memory) for memory in (512, 3900, 32000, 512000)]
    [64, 243, 2000, 4096]
    """
    return min(max(memory // SHARE, SMALLEST), LARGEST)


def settings(buffer: int) -> str:
    """Return our settings of MariaDB; `buffer` in MiB. Slurm warns of others (accounting.html)."""
    lines = [
        "# Written by Slurmstead (role accounting).",
        "[mariadbd]",
        f"innodb_buffer_pool_size = {buffer}M",
        "innodb_lock_wait_timeout = 900",
        # MariaDB 11.6.2 has it on: a transaction then fails with error 1020, which slurmdbd does not expect.
        "loose-innodb_snapshot_isolation = OFF",
        "max_allowed_packet = 64M",
    ]
    return "\n".join([*lines, ""])


def memory() -> int:
    """Return the memory of this machine in MiB."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20


def client_conf(host: str, cluster: str = "any") -> str:
    """Return a slurm.conf with which clients ask slurmdbd, also while the cluster's own does not name it.

    :param cluster: the one whose default accounts are shown
    """
    kind = "AccountingStorageType=accounting_storage/slurmdbd"
    return f"ClusterName={cluster}\nSlurmctldHost={host}\nAuthType=auth/munge\n{kind}\nAccountingStorageHost={host}\n"


def query(text: str, seconds: float = 60.0) -> list[str]:
    """Return the lines that MariaDB answers. Raises StorageError."""
    code, out, err = run(*CLIENT, seconds=seconds, text=text)
    if code:
        raise StorageError(f"MariaDB: {(err or out).strip() or f'exit code {code}'}")
    return out.splitlines()


def is_used() -> bool:
    """Say whether this machine keeps records: slurmdbd starts at boot, or was switched off, and MariaDB runs."""
    if not SETTINGS.exists():
        return False
    return not (run("systemctl", "--quiet", "is-enabled", "slurmdbd.service")[0] and run(*CLIENT, text="SELECT 1")[0])


def is_set_up() -> bool:
    """Say whether the database and its user exist. Raises StorageError."""
    return "0" not in query(IS_SET_UP)


def asked(
    host: str, *command: str, cluster: str = "any", seconds: float = 30.0, text: str = ""
) -> tuple[int, str, str]:
    """Run a client of slurmdbd at a host; see `run`."""
    with tempfile.NamedTemporaryFile("w", prefix="accounting-") as file:
        file.write(client_conf(host, cluster))
        file.flush()
        return run("env", f"SLURM_CONF={file.name}", *command, seconds=seconds, text=text)


def unanswered(host: str) -> str:
    """Return why slurmdbd does not answer; empty if it does."""
    code, out, err = asked(host, *ASK)
    said = (err or out).strip().splitlines()
    return (said[0] if said else f"sacctmgr exited with {code}") if code else ""


def is_registered(host: str, cluster: str) -> bool:
    """Say whether slurmdbd knows a cluster."""
    return cluster in asked(host, *ASK)[1].split()


def register(host: str, cluster: str) -> None:
    """Make slurmdbd know a cluster, so that it has an ID before slurmctld reports. Raises StorageError."""
    code, out, err = asked(host, "sacctmgr", "--immediate", "add", "cluster", cluster)
    if code and not is_registered(host, cluster):
        raise StorageError(f"slurmdbd does not accept the cluster {cluster}: {(err or out).strip()}")


def dump() -> bytes:
    """Return the compressed content of the database. Raises StorageError."""
    try:
        with tempfile.TemporaryFile() as packed:
            _dump(packed.fileno())
            packed.seek(0)
            return packed.read()
    except OSError as error:
        raise StorageError(f"their dump cannot be written to {tempfile.gettempdir()}: {error.strerror}") from None


def _dump(target: int) -> None:
    """Write the compressed content of the database to a file descriptor."""
    environment = {**os.environ, "PATH": PATH, "LC_ALL": "C"}
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(DUMP, stdout=subprocess.PIPE, stderr=errors, env=environment) as process,
    ):
        assert process.stdout
        with (
            os.fdopen(os.dup(target), "wb") as packed,
            gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6, mtime=0) as file,
        ):
            shutil.copyfileobj(process.stdout, file)
        code = process.wait(LONG)
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
    if code:
        raise StorageError(f"mariadb-dump: {said or f'exit code {code}'}")


def hand_over(packed: bytes, place: pathlib.Path = PLACE) -> None:
    """Keep a dump for the next run of the role accounting, which loads it."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    durable.write(place / TO_RESTORE, packed, mode=0o600)


def waits(place: pathlib.Path = PLACE) -> bool:
    """Say whether a dump has to be loaded."""
    return (place / TO_RESTORE).exists()


def _check(waiting: pathlib.Path) -> None:
    """Read a dump to its end. Raises StorageError."""
    try:
        with gzip.open(waiting) as packed:
            while packed.read(1 << 20):
                pass
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise StorageError(
            f"the dump {waiting} is damaged ({error}); restore another backup, or remove this file to keep the records "
            "that are in the database"
        ) from None


def restore(place: pathlib.Path = PLACE) -> str:
    """Replace the database by the dump that waits; return where its content before is kept. Raises StorageError.

    slurmdbd must not run. If it is interrupted, it can be repeated.
    """
    waiting = place / TO_RESTORE
    _check(waiting)
    kept = place / f"before-restore-{time.strftime('%Y-%m-%dT%H.%M.%S')}.sql.gz"
    had = bool(query(f"SHOW TABLES FROM {DATABASE}"))
    if had:
        durable.write(kept, dump(), mode=0o600)
    query(f"DROP DATABASE {DATABASE}; CREATE DATABASE {DATABASE};", LONG)
    with gzip.open(waiting) as packed:
        with subprocess.Popen(
            [*CLIENT, DATABASE], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PATH": PATH}
        ) as process:
            assert process.stdin and process.stderr
            try:
                shutil.copyfileobj(packed, process.stdin)
                process.stdin.close()
            except BrokenPipeError:
                pass
            said = process.stderr.read().decode(errors="replace").strip()
            code = process.wait(LONG)
    if code:
        raise StorageError(f"the dump {waiting} cannot be loaded: {said}")
    waiting.rename(place / "restored.sql.gz")
    durable.sync(place)
    return str(kept) if had else ""
