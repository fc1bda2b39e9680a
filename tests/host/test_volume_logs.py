"""A log that could not be written is not called complete: by the replay, by `stats`, and by the detach."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import engine
from pgdyno.base.errors import HostError
from pgdyno.machine import volume
from pgdyno.machine.clean import left_in
from tests.host.needs import expect
from tests.support.commands import pgdyno
from tests.support.direct import moved

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.needs_fuse

BLOCK = 4096
WRITES = 3_000


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def write_much(attached: volume.AttachedVolume) -> None:
    moved(attached.block_device, [BLOCK * (number % 1_000) for number in range(WRITES)], write=True)


def test_a_submit_log_that_hit_a_full_disk_is_incomplete(state: Path) -> None:
    with small_disk(state.parent / "tiny") as tiny:
        attached = volume.attach("null:size=64MiB", mount=None, name="v", submit_log=tiny / "log")
        write_much(attached)
        expect(lambda: not attached.stats()["submit_log"]["complete"], "it is said while the volume serves")
        warned = pgdyno("volume", "stats", "v", code=0)
        assert "the submit log is incomplete" in warned.err
        error = pgdyno("volume", "detach", "v", code=3).error
        assert error is not None
        assert error.code == "volume.log.incomplete"
        assert (error.data["log"], error.data["path"]) == ("submit", str(tiny / "log"))
        assert left_in(state) == [], "it is detached all the same"
        assert engine.run_json(["replay", str(tiny / "log")])["complete"] is False


def test_a_log_is_complete_when_it_was_closed_and_only_whole(state: Path) -> None:
    log = state.parent / "log"
    with volume.attached("null:size=64MiB", mount=None, submit_log=log) as attached:
        moved(attached.block_device, [0, BLOCK], write=True)
        assert attached.stats()["submit_log"] == {"path": str(log), "complete": True, "error": None}
    whole = log.read_bytes()
    replayed = engine.run_json(["replay", str(log)])
    assert replayed["complete"]
    assert replayed["identical"] == replayed["grants"] >= 2
    cut = state.parent / "cut"
    for length in (len(whole) - 1, len(whole) - 48, len(whole) - 100):
        cut.write_bytes(whole[:length])
        assert engine.run_json(["replay", str(cut)])["complete"] is False, length


def test_a_write_log_that_cannot_be_written_is_said_at_the_detach(state: Path) -> None:
    with small_disk(state.parent / "tiny") as tiny:
        attached = volume.attach("null:size=64MiB", mount=None, name="v", write_log=tiny / "log")
        write_much(attached)
        with pytest.raises(HostError) as caught:
            attached.detach()
        assert caught.value.code == "volume.log.incomplete"
        assert caught.value.data["log"] == "write"
        assert not attached.alive
        assert left_in(state) == []


def test_a_write_log_that_is_full_is_said_at_the_detach(state: Path) -> None:
    log = state.parent / "log"
    attached = volume.attach("null:size=64MiB", mount=None, name="v", write_log=log, write_log_limit_bytes=1 << 20)
    write_much(attached)
    ended = pgdyno("volume", "detach", "v", code=0)
    assert str(log) in ended.err
    assert "--write-log-limit" in ended.err
