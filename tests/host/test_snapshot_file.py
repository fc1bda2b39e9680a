"""The list of snapshots: who waits for whom, what is written when, and a file that somebody else has written."""

from __future__ import annotations

import fcntl
import json
import os
import random
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from pgdyno.base.errors import HostError, InputError
from pgdyno.machine import snapshot, snapshot_file
from pgdyno.machine.snapshot_file import SnapshotCatalog, VolumeSnapshot

from ..support.commands import pgdyno

ONE = VolumeSnapshot(
    name="snap-1",
    set_name="snap-1",
    volume="data",
    volume_id="data/1/2/3",
    image="/nowhere/snap-1",
    spec="gp3:size=1GiB,init=fsr",
    store="memory",
    size_bytes=1 << 30,
    stored_bytes=5 << 20,
    held_bytes=5 << 20,
    taken_unix_ns=1,
    pending_s=0.0,
)


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory with one snapshot that has a volume creation credit."""
    monkeypatch.setenv("PGDYNO_STATE_DIR", str(tmp_path))
    image = tmp_path / "snap-1"
    image.mkdir()
    fast = replace(ONE, image=str(image), fast_zones=1, fast_unix_ns=1, fast_spent_unix_ns=1, fast_balance=1.0)
    snapshot_file.write(tmp_path, SnapshotCatalog(last=1, snapshots=[fast]))
    return tmp_path


def test_who_waits_for_another_command_says_for_whom_and_gives_up(
    listed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(snapshot_file, "_NOTE_S", 0.05)
    monkeypatch.setattr(snapshot_file, "PATIENCE_S", 0.2)
    with snapshot_file.locked(listed):
        # Another descriptor, as another process has; the owner is this one.
        ended = pgdyno("volume", "snapshot", "fsr", "snap-1", "--off")
    assert ended.error is not None
    assert isinstance(ended.error, HostError)
    assert (ended.error.code, ended.error.data["pid"]) == ("snapshot.lock.held", os.getpid())
    assert str(os.getpid()) in ended.err.splitlines()[0], "said before it gave up"
    assert snapshot_file.read(listed).snapshots[0].fast_zones == 1
    with snapshot_file.locked(listed):
        pass


def test_the_list_is_free_while_a_snapshot_is_restored_and_a_credit_comes_back(
    listed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore that is stopped holds up nobody."""
    seen = []

    def fails(spec: str, **_: object) -> None:
        with (listed / "snapshots.lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        seen.append((spec, snapshot_file.read(listed).snapshots[0].fast_balance))
        raise InputError("it is refused")

    monkeypatch.setattr(snapshot, "attach", fails)
    monkeypatch.setattr(
        snapshot.snapshot_fast, "_rule", lambda _: {"optimizing_minutes": 0, "per_hour": 1.0, "most": 1.0}
    )
    with pytest.raises(InputError):
        snapshot.restore(snapshot.find("snap-1"), mount=None)
    assert seen == [("gp3:size=1GiB,init=fsr", 0.0)], "a credit was spent"
    assert snapshot_file.read(listed).snapshots[0].fast_balance == 1.0


def test_a_list_that_cannot_be_written_is_as_it_was(listed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (listed / "snapshots.json").read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    ended = pgdyno("volume", "snapshot", "delete", "snap-1")
    assert ended.error is not None
    assert ended.error.code == "host.enospc"
    assert (ended.code, (listed / "snapshots.json").read_bytes()) == (3, before)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{}",
        b"[" * 100_000,
        b'{"last": 1, "snapshots": [], "unlisted": [{}], "saved": []}',
        b'{"last": "x", "snapshots": [], "unlisted": [], "saved": []}',
        b'{"last": Infinity, "snapshots": [], "unlisted": [], "saved": []}',
        b'{"last": 1, "snapshots": {"a": 1}, "unlisted": [], "saved": []}',
        json.dumps({"last": 1, "snapshots": [asdict(ONE) | {"name": "x"}], "unlisted": []}).encode(),
        json.dumps({"last": 1, "snapshots": [asdict(ONE) | {"pending_s": "1"}], "unlisted": []}).encode(),
        json.dumps({"last": 1, "snapshots": [asdict(ONE) | {"image": "snap-1"}], "unlisted": []}).encode(),
    ],
)
def test_a_damaged_list_is_refused_by_its_name(listed: Path, text: bytes) -> None:
    (listed / "snapshots.json").write_bytes(text)
    ended = pgdyno("volume", "snapshots")
    assert ended.error is not None
    assert (ended.code, ended.error.code) == (3, "snapshot.list.damaged")
    assert ended.error.data == {"path": str(listed / "snapshots.json")}


def test_a_list_with_any_bytes_is_read_or_refused(listed: Path) -> None:
    path = listed / "snapshots.json"
    whole = path.read_bytes()
    numbers = random.Random(7)
    for _ in range(300):
        text = bytearray(whole)
        for _ in range(numbers.randint(1, 4)):
            text[numbers.randrange(len(text))] = numbers.randrange(256)
        path.write_bytes(text[: numbers.randint(1, len(text))] if numbers.random() < 0.3 else text)
        try:
            known = snapshot_file.read(listed)
        except HostError as error:
            assert error.code == "snapshot.list.damaged"
        else:
            assert all(item.name.startswith("snap-") for item in known.all)
