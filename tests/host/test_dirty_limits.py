"""The lock on the kernel's dirty limits, as runs, clean-ups and doctors meet at it; nothing of the kernel is changed."""

from __future__ import annotations

import errno
import itertools
import json
import os
from pathlib import Path

import pytest

from pgdyno.base.errors import HostError
from pgdyno.machine import dirty_limits
from pgdyno.machine.clean import clean
from pgdyno.machine.dirty_limits import DirtyLimits
from pgdyno.machine.machine_record import MachineRecord
from pgdyno.machine.process import boot_id

from .test_journal import die_leaving

try_once = MachineRecord._try


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DirtyLimits:
    """Those of a run, with a record of the test's own."""
    monkeypatch.setattr(dirty_limits, "_set", lambda _name, _value: None)
    monkeypatch.setattr(dirty_limits, "lower_limit", lambda value, set_limit: set_limit(value))
    return DirtyLimits(128 << 20, 1, kept=dirty_limits.record(tmp_path / "dirty_limits.json"))


def test_who_only_looks_does_not_refuse_a_run(limits: DirtyLimits, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = itertools.count()
    monkeypatch.setattr(MachineRecord, "_try", lambda kept: None if next(tries) < 3 else try_once(kept))
    limits.acquire()
    assert limits.facts["vm.dirty_bytes"]["new"] > 0
    limits.release()


def test_another_run_that_holds_them_does(limits: DirtyLimits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dirty_limits, "LOOK_S", 0.01)
    record = dirty_limits.record(tmp_path / "dirty_limits.json")
    assert not record.in_use()
    limits.acquire()
    try:
        with pytest.raises(HostError) as refused:
            DirtyLimits(64 << 20, 1, kept=record).acquire()
        assert (refused.value.code, refused.value.data) == ("host.dirty_limits.taken", {"pid": os.getpid()})
        assert record.in_use()
        assert not record.abandoned(), "it lives"
    finally:
        limits.release()
    assert not record.in_use()
    assert not record.abandoned()


def test_an_experiment_keeps_them_between_its_runs_and_names_itself(
    limits: DirtyLimits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dirty_limits, "LOOK_S", 0.01)
    record = dirty_limits.record(tmp_path / "dirty_limits.json")
    with dirty_limits.reserved(record):
        for _ in range(2):
            limits.acquire()
            limits.release()
            with pytest.raises(HostError) as refused, dirty_limits.reserved(record):
                pass
            assert (refused.value.code, refused.value.data) == ("host.dirty_limits.taken", {"pid": os.getpid()})
            assert record.in_use()
    assert not record.in_use()
    assert not record.abandoned()


def test_a_run_that_ends_while_one_looks_is_no_killed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = dirty_limits.record(tmp_path / "dirty_limits.json")
    record.path.write_text(json.dumps({"pid": 1, "boot_id": boot_id(), "old": {}}))
    assert record.abandoned(), "nobody holds it"

    def ends_first(kept: MachineRecord) -> int | None:
        kept.path.write_text("")
        return try_once(kept)

    monkeypatch.setattr(MachineRecord, "_try", ends_first)
    assert not record.abandoned()


@pytest.mark.parametrize("refused", [dirty_limits._NAMES, ("dirty_background_bytes",)], ids=["all", "one"])
def test_limits_that_cannot_be_set_stay_as_they_were(
    refused: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = dirty_limits.record(tmp_path / "dirty_limits.json")
    before = {"dirty_bytes": 0, "dirty_ratio": 20, "dirty_background_bytes": 0, "dirty_background_ratio": 10}
    kernel = dict(before)

    def write(name: str, value: int) -> None:
        if name in refused:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), f"/proc/sys/vm/{name}")
        pair = next(pair for pair in dirty_limits._PAIRS if name in pair)
        kernel.update(dict.fromkeys(pair, 0) | {name: value})

    monkeypatch.setattr(dirty_limits, "_set", write)
    monkeypatch.setattr(dirty_limits, "current_limits", lambda: dict(kernel))
    with pytest.raises(HostError, match="Read-only file system") as caught:
        DirtyLimits(128 << 20, 1, kept=record).acquire()
    assert "privileged" in caught.value.remedy
    assert kernel == before
    assert record.path.read_bytes() == b"", "nothing is left to put back"
    handle = record.take()
    assert handle is not None, "the lock was given up"
    os.close(handle)


def test_a_clean_up_that_may_not_put_limits_back_says_so_and_does_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_written: object) -> list[str]:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "/proc/sys/vm/dirty_bytes")

    left = tmp_path / "left"
    state = tmp_path / "state"
    die_leaving(state, left)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    kept = MachineRecord(tmp_path / "dirty_limits.json", refused, dirty_limits.record().what)
    kept.path.write_text(json.dumps({"pid": 1, "boot_id": boot_id(), "old": {}}))
    monkeypatch.setattr(dirty_limits, "record", lambda: kept)
    with pytest.raises(HostError, match="the kernel's dirty limits of a killed run") as caught:
        clean(state)
    assert "where /proc/sys and /sys are writable" in caught.value.remedy
    assert not left.exists(), "what could be removed is"
