"""Dumps of the records: a damaged one is noticed before anything is lost."""

from __future__ import annotations

import gzip
import pathlib

import pytest

from ansible.module_utils.slurmstead.accounting import storage
from ansible.module_utils.slurmstead.accounting.storage import StorageError


def test_a_dump_that_does_not_fit_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "DUMP", ("echo", "records"))
    with open("/dev/full", "wb") as full, pytest.raises(OSError, match="No space left"):
        storage._dump(full.fileno())


def test_a_truncated_dump_replaces_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    asked: list[str] = []
    monkeypatch.setattr(storage, "query", asked.append)
    (tmp_path / storage.TO_RESTORE).write_bytes(gzip.compress(b"records" * 100)[:-9])

    with pytest.raises(StorageError, match="is damaged"):
        storage.restore(tmp_path)

    assert asked == []
