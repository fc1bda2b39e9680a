"""What deleting snapshots does to the disk that they are on, to images that stand on them, and to layers that nobody needs."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import random
import shutil
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import engine as _engine
from pgdyno.base.errors import EXIT_HOST, EXIT_OK, PgdynoError
from pgdyno.machine import clean, mounts, snapshot, snapshot_delete, snapshot_file, volume

from ..support.commands import pgdyno
from .needs import expect, needs_fuse

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = needs_fuse
MIB = 1 << 20
FAST_MIB_PER_S = 1e6
"""Completed at once."""


@pytest.fixture
def small(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system of 176 MiB for the content of volumes, which may be attached there although it is small."""
    monkeypatch.setattr(volume, "_ROOM_BYTES", MIB)
    folder = state.parent / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=176m", "none", folder], check=True)
    try:
        yield folder
    finally:
        clean.clean(state)
        subprocess.run(["umount", folder], check=True)
        assert mounts.mounts_below(folder) == []


def write(device: str, begin_mib: int, contents: bytes) -> None:
    """One block of 1 MiB for each byte of ``contents``."""
    with mmap.mmap(-1, MIB) as block:
        file = os.open(device, os.O_WRONLY | os.O_DIRECT)
        try:
            for number, value in enumerate(contents, begin_mib):
                block[:] = bytes([value]) * MIB
                assert os.pwrite(file, block, number * MIB) == MIB
        finally:
            os.close(file)


def read(device: str, count: int) -> bytes:
    """The value of each MiB, every byte of which is compared."""
    values = bytearray()
    with mmap.mmap(-1, MIB) as block:
        file = os.open(device, os.O_RDONLY | os.O_DIRECT)
        try:
            for number in range(count):
                assert os.preadv(file, [block], number * MIB) == MIB
                assert block[:] == block[:1] * MIB
                values.append(block[0])
        finally:
            os.close(file)
    return bytes(values)


def restored(name: str, count: int) -> bytes:
    """What :func:`read` says of a volume that is restored from a snapshot."""
    attached = snapshot.restore(snapshot.find(name), mount=None, name="restored")
    try:
        return read(attached.block_device, count)
    finally:
        attached.detach()


def used_mib(folder: Path) -> float:
    """What the file system has given out."""
    return shutil.disk_usage(folder).used / MIB


def take(*volumes: volume.AttachedVolume) -> str:
    """The name of the first snapshot of a set."""
    return snapshot.take(volumes, rate_mib_per_s=FAST_MIB_PER_S).snapshots[0].name


class Writer:
    """Writes to a part of a device that nothing else uses, until it is told to stop; counts what failed."""

    def __init__(self, device: str, at_mib: int) -> None:
        self.device = device
        self.at_mib = at_mib
        self.written = 0
        self.failed = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                write(self.device, self.at_mib + self.written % 8, bytes([9]))
            except OSError:
                self.failed += 1
            self.written += 1


def test_deleting_a_snapshot_of_a_volume_in_use_takes_no_room_and_fails_no_write(state: Path, small: Path) -> None:
    with volume.attached("null:size=1GiB", mount=None, name="data", store=str(small)) as data:
        write(data.block_device, 0, b"\1" * 80)
        first = take(data)
        write(data.block_device, 0, b"\2" * 10)
        second = take(data)
        before = used_mib(small)
        with Writer(data.block_device, 100) as writer:
            expect(lambda: writer.written >= 8, "a round of writes")
            ended = pgdyno("volume", "snapshot", "delete", first)
            reached = writer.written
            expect(lambda: writer.written >= reached + 8, "writes after it")
        assert (ended.code, writer.failed) == (EXIT_OK, 0)
        assert [list_snapshot.name for list_snapshot in snapshot.list_snapshots()] == [second]
        assert used_mib(small) <= before + 8 - 9, "what the second one overwrote has been given back"
        assert read(data.block_device, 80) == b"\2" * 10 + b"\1" * 70
        assert restored(second, 80) == b"\2" * 10 + b"\1" * 70
    assert pgdyno("volume", "snapshot", "delete", second).code == EXIT_OK
    assert used_mib(small) < 1
    assert snapshot_file.read(state).all == []


def test_the_layers_of_a_detached_volume_are_merged_where_a_copy_of_one_would_not_fit(state: Path, small: Path) -> None:
    with volume.attached("null:size=1GiB", mount=None, name="data", store=str(small)) as data:
        write(data.block_device, 0, b"\1" * 90)
        names = [take(data)]
        for value in (2, 3):
            write(data.block_device, value, bytes([value]))
            names.append(take(data))
    assert pgdyno("volume", "snapshot", "delete", names[0], names[1]).code == EXIT_OK
    assert [path.name for path in (small / "snapshots").iterdir()] == [names[2]]
    assert used_mib(small) < 93
    assert restored(names[2], 90) == b"\1\1\2\3" + b"\1" * 86
    assert pgdyno("volume", "snapshot", "delete", names[2]).code == EXIT_OK
    assert used_mib(small) < 1


def test_a_snapshot_that_failed_on_a_full_disk_ends_no_later_clean_up(state: Path, small: Path) -> None:
    """Neither of another volume and store nor of its own, and its layer goes with its volume."""
    with volume.attached("null:size=1GiB", mount=None, name="other") as other:
        write(other.block_device, 0, b"\1" * 2)
        kept = Path(snapshot.find(take(other)).image)
    with volume.attached("null:size=1GiB", mount=None, name="data", store=str(small)) as data:
        write(data.block_device, 0, b"\1")
        own = take(data)
        # Of what is on the disk nothing is free now, and an image needs some for its map.
        with (small / "filler").open("wb") as filler, contextlib.suppress(OSError):
            while True:
                filler.write(b"x" * MIB)
                filler.flush()
        with contextlib.suppress(OSError):
            write(data.block_device, 2, b"\2")
        failed = pgdyno("volume", "snapshot", "data")
        assert failed.error is not None
        assert (failed.code, failed.error.code) == (EXIT_HOST, "image.unwritable")
        assert pgdyno("volume", "snapshot", "delete", snapshot.find("snap-1").name).code == EXIT_OK
        assert not kept.exists(), "a layer of another volume, in another store"
        assert read(data.block_device, 1) == b"\1"
    (small / "filler").unlink()
    assert pgdyno("volume", "snapshot", "delete", own).code == EXIT_OK
    assert list((small / "snapshots").iterdir()) == []
    assert snapshot_file.read(state).all == []


def test_what_earlier_versions_left_is_among_the_leftovers_and_is_cleaned(state: Path) -> None:
    """Layers that no snapshot, image or volume needs, below an unfinished one: what one failed snapshot used to keep for ever."""
    with volume.attached("null:size=1GiB", mount=None, name="data") as data:
        for number in range(4):
            write(data.block_device, number, bytes([number + 1]))
            take(data)
    known = snapshot_file.read(state)
    folder = Path(known.snapshots[0].image).parent
    (Path(known.snapshots[-1].image) / "image.json").unlink()
    known.snapshots, known.unlisted = [], known.snapshots
    snapshot_file.write(state, known)
    assert len(clean.left_in(state)) == 4
    assert len(pgdyno("doctor", "--clean").out.splitlines()) >= 4
    assert clean.left_in(state) == []
    assert list(folder.iterdir()) == []
    assert snapshot_file.read(state).all == []


def test_an_image_that_was_moved_keeps_what_it_stands_on(state: Path) -> None:
    images = state.parent / "images"
    with volume.attached("null:size=1GiB", mount=None, name="data") as data:
        write(data.block_device, 0, b"\1\2\3")
        base = take(data)
        restoring = snapshot.restore(snapshot.find(base), mount=None, name="other")
        write(restoring.block_device, 1, b"\7")
        command = pgdyno("volume", "detach", "other", "--save-image", images / "first", code=EXIT_OK)
        assert str(snapshot.find(base).image) in command.out + command.err, "it says what the image stands on"
    layer = Path(snapshot.find(base).image)
    (images / "first").rename(images / "second")
    ended = pgdyno("volume", "snapshot", "delete", base, "--json", code=EXIT_OK)
    [kept] = json.loads(ended.out)["kept"]
    assert kept == {"image": str(layer), "why": "image_missing", "images": [str(images / "first")]}
    with volume.attached("null:size=1GiB", mount=None, name="third", image=images / "second") as third:
        assert read(third.block_device, 4) == b"\1\7\3\0"
    shutil.rmtree(layer)
    with pytest.raises(PgdynoError) as refused:
        volume.attach("null:size=1GiB", mount=None, name="fourth", image=images / "second")
    assert refused.value.code == "image.base.missing"
    assert refused.value.data == {"image": str(images / "second"), "base": str(layer)}
    assert snapshot_delete.collect(state).kept == ()


def test_an_image_of_an_image_says_what_it_stands_on(state: Path) -> None:
    images = state.parent / "images"
    with volume.attached("null:size=1GiB", mount=None, name="data") as data:
        data.detach(save_image=images / "lower")
    with volume.attached("null:size=1GiB", mount=None, name="data", image=images / "lower") as data:
        command = pgdyno("volume", "detach", "data", "--save-image", images / "upper", code=EXIT_OK)
        assert str(images / "lower") in command.out + command.err
    shutil.rmtree(images / "lower")
    refused = pgdyno("volume", "attach", "null:size=1GiB", "--no-mount", "--image", images / "upper")
    assert refused.error is not None
    assert (refused.error.code, refused.error.data) == (
        "image.base.missing",
        {"image": str(images / "upper"), "base": str(images / "lower")},
    )


def test_a_clean_up_that_is_killed_at_any_instant_loses_nothing(state: Path, small: Path) -> None:
    moments = random.Random(3)
    with volume.attached("null:size=1GiB", mount=None, name="data", store=str(small)) as data:
        for begin, contents in ((0, b"\1" * 50), (10, b"\2" * 30), (35, b"\3" * 20)):
            write(data.block_device, begin, contents)
            last = take(data)
    expected = b"\1" * 10 + b"\2" * 25 + b"\3" * 20
    known = snapshot_file.read(state)
    known.unlisted, known.snapshots = known.snapshots[:2], known.snapshots[2:]
    snapshot_file.write(state, known)
    unlisted, needed = ([snapshot.image for snapshot in some] for some in (known.unlisted, known.snapshots))
    wanted = json.dumps({"unlisted": unlisted, "needed": needed, "merge": True, "dry_run": False})
    killed = 0
    for number in range(30):
        command = [_engine.checked(), "volume", "collect"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as engine:
            assert engine.stdin is not None
            engine.stdin.write(wanted + "\n")
            engine.stdin.flush()
            try:
                engine.wait(moments.uniform(0.0, 0.04))
            except subprocess.TimeoutExpired:
                engine.kill()
                killed += 1
        if number % 6 == 0:
            assert restored(last, 55) == expected
    assert killed > 3, "else nothing was tried"
    done = snapshot_delete.collect(state)
    assert done.kept == ()
    assert [path.name for path in (small / "snapshots").iterdir()] == [last]
    assert restored(last, 55) == expected
    assert used_mib(small) < 56
    assert snapshot_delete.delete(snapshot.list_snapshots(), state).kept == ()


def test_sets_and_what_is_restored_of_restored_ones_keep_their_contents_whatever_is_deleted(state: Path) -> None:
    """In random order, every byte compared after each deletion."""
    numbers = random.Random(5)
    contents: dict[str, bytes] = {}
    values = iter(range(1, 256))

    def change(attached: volume.AttachedVolume, content: bytearray) -> None:
        for _ in range(3):
            at = numbers.randrange(len(content))
            content[at] = next(values)
            write(attached.block_device, at, content[at : at + 1])

    with contextlib.ExitStack() as stack:
        pair = [
            stack.enter_context(volume.attached("null:size=1GiB", mount=None, name=name, instance="db"))
            for name in ("data", "wal")
        ]
        states = [bytearray(8), bytearray(8)]
        for _ in range(3):
            for attached, content in zip(pair, states, strict=True):
                change(attached, content)
            taken = snapshot.take(pair, rate_mib_per_s=FAST_MIB_PER_S).snapshots
            contents |= {item.name: bytes(content) for item, content in zip(taken, states, strict=True)}
        base = "snap-3"
        for name in ("child", "grandchild"):
            content = bytearray(contents[base])
            child = snapshot.restore(snapshot.find(base), mount=None, name=name)
            stack.callback(child.detach)
            change(child, content)
            base = take(child)
            contents[base] = bytes(content)
        for _ in range(3):
            gone = numbers.choice(list(contents))
            del contents[gone]
            assert snapshot_delete.delete([snapshot.find(gone)], state).notable == []
            assert [read(item.block_device, 8) for item in pair] == [bytes(content) for content in states]
        assert {name: restored(name, 8) for name in contents} == contents
    while contents:
        gone = numbers.choice(list(contents))
        del contents[gone]
        assert snapshot_delete.delete([snapshot.find(gone)], state).notable == []
        assert {name: restored(name, 8) for name in contents} == contents
    assert list((state.parent / "images/snapshots").iterdir()) == []
