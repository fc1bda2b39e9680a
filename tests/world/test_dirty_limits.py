"""The lock on the kernel's dirty limits, as runs, clean-ups and doctors meet at it; nothing of the kernel is changed."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import pytest

from pgdyno.errors import HostError
from pgdyno.world import dirty_limits
from pgdyno.world.dirty_limits import DirtyLimits, abandoned
from pgdyno.world.process import boot_id

take = dirty_limits._lock


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DirtyLimits:
    """Those of a run, with a record of the test's own."""
    monkeypatch.setattr(dirty_limits, "_set", lambda _name, _value: None)
    return DirtyLimits(128 << 20, 1, record=tmp_path / "dirty_limits.json")


def test_who_only_looks_does_not_refuse_a_run(limits: DirtyLimits, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = itertools.count()
    monkeypatch.setattr(dirty_limits, "_lock", lambda path: None if next(tries) < 3 else take(path))
    limits.acquire()
    assert limits.facts["vm.dirty_bytes"]["new"] > 0
    limits.release()


def test_another_run_that_holds_them_does(limits: DirtyLimits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dirty_limits, "LOOK_S", 0.01)
    limits.acquire()
    try:
        with pytest.raises(HostError, match=f"another run .process {os.getpid()}."):
            DirtyLimits(64 << 20, 1, record=tmp_path / "dirty_limits.json").acquire()
        assert not abandoned(tmp_path / "dirty_limits.json"), "it lives"
    finally:
        limits.release()
    assert not abandoned(tmp_path / "dirty_limits.json")


def test_a_run_that_ends_while_one_looks_is_no_killed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = tmp_path / "dirty_limits.json"
    record.write_text(json.dumps({"pid": 1, "boot_id": boot_id(), "old": {}}))
    assert abandoned(record), "nobody holds it"

    def ends_first(path: Path) -> int | None:
        path.write_text("")
        return take(path)

    monkeypatch.setattr(dirty_limits, "_lock", ends_first)
    assert not abandoned(record)
