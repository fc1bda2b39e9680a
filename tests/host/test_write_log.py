"""The write log: everything that reached the volumes of an instance, and what was answered, in one order."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import EXIT_OK, InputError
from pgdyno.cli.main import run
from pgdyno.machine import volume

from . import write_log
from .needs import needs_fuse

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.machine.volume import Cache

pytestmark = needs_fuse
BLOCK = 4096


def write_block(device: str, number: int, byte: bytes) -> None:
    """Write one block past all caches, and flush."""
    with mmap.mmap(-1, BLOCK) as block:
        block[:] = byte * BLOCK
        file = os.open(device, os.O_WRONLY | os.O_DIRECT)
        try:
            os.pwrite(file, block, number * BLOCK)
            os.fsync(file)
        finally:
            os.close(file)


@pytest.mark.parametrize("file_system", ["ext4", pytest.param("xfs", marks=pytest.mark.needs_xfs)])
def test_a_replay_of_the_log_is_the_content_of_the_volume(state: Path, file_system: str) -> None:
    log, image, mount = (state.parent / name for name in ("log", "images/saved", "mnt"))
    with volume.attached("gp3:size=1GiB", mount=mount, name="v", write_log=log, file_system=file_system) as result:
        result.mark("begin")
        for number in range(40):
            (mount / f"file-{number}").write_bytes(os.urandom(3000 * number))
        os.sync()
        for number in range(0, 40, 3):
            (mount / f"file-{number}").unlink()
        progress = result.mark("removed")
        assert not progress["full"]
        assert result.stats()["write_log"]["events"] >= progress["events"]
        result.detach(save_image=image)
    read = write_log.read(log)
    assert read.header["volumes"] == [
        {"name": "v", "spec": result.spec["spec"], "size_bytes": 1 << 30, "cache": "none"}
    ]
    assert read.replay(0) == (image / "data").read_bytes()
    assert read.marks() == ["begin", "removed"]
    assert [event.at_ns for event in read.events] == sorted(event.at_ns for event in read.events)
    requests = {
        number for number, event in enumerate(read.events) if event.kind in (write_log.WRITE, write_log.DISCARD)
    }
    answers = [item.small for item in read.of(write_log.ANSWER)]
    assert sorted(answers) == sorted(requests), "everything is answered, and once"
    first, last = (number for number, event in enumerate(read.events) if event.kind == write_log.MARK)
    used = [event.kind for event in read.events[first:last]]
    assert write_log.FLUSH not in used, (
        "a device without a cache is sent none, except when its loop device comes and goes"
    )


@pytest.mark.parametrize(("cache", "flushed"), [("none", False), ("volatile", True)])
def test_flushes_come_to_a_device_with_a_volatile_cache(state: Path, cache: Cache, flushed: bool) -> None:
    log = state.parent / "log"
    with volume.attached("null:size=1GiB", mount=None, name="v", write_log=log, cache=cache) as result:
        result.mark("before")
        write_block(result.block_device, 77, b"a")
        result.mark("after")
    read = write_log.read(log)
    assert read.header["volumes"][0]["cache"] == cache
    first, last = (number for number, event in enumerate(read.events) if event.kind == write_log.MARK)
    between = [event.kind for event in read.events[first + 1 : last]]
    assert between == [write_log.WRITE, write_log.ANSWER] + [write_log.FLUSH] * flushed
    assert read.replay(0)[77 * BLOCK : 78 * BLOCK] == b"a" * BLOCK


def test_volumes_of_one_instance_are_in_one_order(state: Path) -> None:
    log = state.parent / "log"
    with (
        volume.attached("null:size=1GiB", mount=None, name="a", write_log=log, instance="db") as first,
        volume.attached("null:size=1GiB", mount=None, name="b", instance="db", cache="volatile") as second,
    ):
        first.mark("before")
        for number in range(10):
            write_block((first, second)[number % 2].block_device, number, b"x")
        with pytest.raises(InputError, match="begins with the first volume"):
            volume.attach("null:size=1GiB", mount=None, name="c", write_log=log, instance="db")
    read = write_log.read(log)
    assert [volume["name"] for volume in read.header["volumes"]] == ["a", "b"]
    (mark,) = (number for number, event in enumerate(read.events) if event.kind == write_log.MARK)
    writes = [event for event in read.events[mark:] if event.kind == write_log.WRITE]
    assert [(write.volume, write.first // BLOCK) for write in writes] == [(number % 2, number) for number in range(10)]


def test_a_full_log_says_so_and_ends_while_the_volume_serves_on(state: Path) -> None:
    log, mount = state.parent / "log", state.parent / "mnt"
    with volume.attached(
        "null:size=1GiB", mount=mount, name="v", write_log=log, write_log_limit_bytes=64 << 20
    ) as result:
        assert not result.mark("begin")["full"]
        (mount / "file").write_bytes(bytes(96 << 20))
        os.sync()
        assert result.stats()["write_log"]["full"]
        assert result.mark("end")["full"]
        assert (mount / "file").read_bytes() == bytes(96 << 20)
    read = write_log.read(log)
    assert read.header["full"]
    assert read.header["data_bytes"] <= 64 << 20
    assert read.marks() == ["begin"]


def test_a_log_is_of_volumes_that_were_empty(state: Path) -> None:
    log, image = state.parent / "log", state.parent / "images" / "saved"
    with volume.attached("null:size=1GiB", mount=None, name="v") as result:
        with pytest.raises(InputError, match="no write log"):
            result.mark("nowhere")
        result.detach(save_image=image)
    with pytest.raises(InputError, match="has an image"):
        volume.attach("null:size=1GiB", mount=None, name="w", image=image, write_log=log)


def test_the_log_is_asked_for_on_the_command_line(state: Path) -> None:
    log = state.parent / "log"
    flags = ["--no-mount", "--name", "v", "--write-log", str(log), "--write-log-limit", "64MiB", "--cache", "volatile"]
    assert run(["volume", "attach", "null:size=1GiB", *flags]) == EXIT_OK
    assert run(["volume", "mark", "v", "here"]) == EXIT_OK
    assert run(["volume", "detach", "v"]) == EXIT_OK
    assert write_log.read(log).marks() == ["here"]
