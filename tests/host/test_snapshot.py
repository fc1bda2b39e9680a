"""Snapshots of volumes in use: what was answered before one instant is in them, and nothing from after."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import EXIT_OK, EXIT_USAGE, InputError
from pgdyno.cli.main import run
from pgdyno.machine import snapshot, snapshot_delete, volume

from .needs import expect, needs_fuse

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = needs_fuse
BLOCK = 4096
BLOCKS = 64
FAST_MIB_PER_S = 1e6
"""Completed at once."""


class Counter:
    """Writes 1, 2, 3, … to one device and then to the other, each after the answer to the write before."""

    def __init__(self, devices: list[str]) -> None:
        self.devices = devices
        self.answered = 0
        self.submitted = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Counter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with contextlib.ExitStack() as stack:
            block = stack.enter_context(mmap.mmap(-1, BLOCK))
            files = [os.open(device, os.O_WRONLY | os.O_DIRECT) for device in self.devices]
            for file in files:
                stack.callback(os.close, file)
            while not self._stop.is_set():
                self.submitted += 1
                block[:] = self.submitted.to_bytes(8, "little") * (BLOCK // 8)
                for file in files:
                    os.pwrite(file, block, self.submitted % BLOCKS * BLOCK)
                self.answered = self.submitted

    def reach(self, number: int) -> None:
        """Wait until so many are answered."""
        expect(lambda: self.answered >= number, f"{number} writes")


def last(device: str) -> int:
    """The last number on a device, of which all before are there too, each block whole."""
    with mmap.mmap(-1, BLOCK * BLOCKS) as content:
        file = os.open(device, os.O_RDONLY | os.O_DIRECT)
        try:
            assert os.preadv(file, [content], 0) == BLOCK * BLOCKS
        finally:
            os.close(file)
        blocks = [content[at : at + BLOCK] for at in range(0, BLOCK * BLOCKS, BLOCK)]
    assert all(block == block[:8] * (BLOCK // 8) for block in blocks), "a block that was torn"
    numbers = sorted(int.from_bytes(block[:8], "little") for block in blocks)
    assert numbers == list(range(numbers[-1] - BLOCKS + 1, numbers[-1] + 1))
    return numbers[-1]


@contextlib.contextmanager
def pair(
    instance: str | None = "db", spec: str = "null:size=1GiB", store: str = "memory"
) -> Iterator[list[volume.AttachedVolume]]:
    """Two volumes without file systems."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(volume.attached(spec, mount=None, name=name, instance=instance, store=store))
            for name in ("first", "second")
        ]


def restored_last(taken: list[snapshot.Snapshot]) -> list[int]:
    """The last numbers on volumes that are restored from snapshots."""
    results = []
    for other in taken:
        attached = snapshot.restore(other, mount=None, name="restored")
        try:
            results.append(last(attached.block_device))
        finally:
            attached.detach()
    return results


@pytest.mark.parametrize(("spec", "store"), [("null:size=1GiB", "memory"), ("gp3:size=1GiB", "disk")])
def test_a_set_is_of_one_instant(state: Path, spec: str, store: str) -> None:
    """The second device is never ahead of the first, and neither lacks what was answered before."""
    sets = []
    folder = state.parent / "content"
    folder.mkdir()
    at = str(folder) if store == "disk" else store
    with pair(spec=spec, store=at) as volumes, Counter([volume.block_device for volume in volumes]) as counter:
        for number in range(1, 3):
            counter.reach(number * 2 * BLOCKS)
            answered = counter.answered
            taken = snapshot.take(volumes, rate_mib_per_s=FAST_MIB_PER_S)
            sets.append((answered, list(taken.snapshots), counter.submitted))
            assert store == "disk" or taken.waited_s < 0.2, "memory is copied meanwhile, and nothing else is waited for"
        counter.reach(counter.answered + BLOCKS)
    for answered, taken_snapshots, submitted in sets:
        first, second = restored_last(taken_snapshots)
        assert answered <= second <= first <= second + 1
        assert first <= submitted


def test_snapshots_that_are_taken_one_after_the_other_do_not_belong_together(state: Path) -> None:
    """This is what the test above would find."""
    with pair() as volumes, Counter([volume.block_device for volume in volumes]) as counter:
        counter.reach(2 * BLOCKS)
        first = snapshot.take(volumes[:1], rate_mib_per_s=FAST_MIB_PER_S)
        counter.reach(counter.answered + 2)
        second = snapshot.take(volumes[1:], rate_mib_per_s=FAST_MIB_PER_S)
    ahead = restored_last([*first.snapshots, *second.snapshots])
    assert ahead[0] < ahead[1]


@pytest.mark.parametrize(
    ("file_system", "store"),
    [("ext4", "memory"), ("ext4", "disk"), pytest.param("xfs", "memory", marks=pytest.mark.needs_xfs)],
)
def test_a_file_system_is_restored_as_it_was(
    state: Path, file_system: str, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of several snapshots has its own content, whatever became of the volume; each restores alone."""
    mount, again = state.parent / "mnt", state.parent / "again"
    folder = state.parent / "content"
    folder.mkdir()
    at = "memory" if store == "memory" else str(folder)
    attach = ["volume", "attach", "gp3:size=1GiB", "--mount", str(mount), "--name", "data", "--store", at]
    assert run([*attach, "--file-system", file_system]) == EXIT_OK
    contents = {}
    for number in (1, 2, 3):
        contents[f"snap-{number}"] = os.urandom(1 << 20)
        (mount / "file").write_bytes(contents[f"snap-{number}"])
        (mount / f"only-{number}").write_text("there")
        subprocess.run(["sync", "--file-system", mount], check=True)
        capsys.readouterr()
        assert run(["volume", "snapshot", "data", "--rate", "100GiB/s"]) == EXIT_OK
        assert capsys.readouterr().out.startswith(f"snap-{number}: data, ")
        (mount / f"only-{number}").unlink()
    assert run(["volume", "snapshots", "--json"]) == EXIT_OK
    listed = json.loads(capsys.readouterr().out)
    first, *others = (snapshot["stored_bytes"] for snapshot in listed["snapshots"])
    assert all(2 << 20 <= item < first for item in others), "only what changed"
    assert listed["usd_per_month"] == pytest.approx(listed["stored_bytes"] / 2**30 * 0.05)
    for name in ("snap-2", "snap-1"):
        assert run(["volume", "restore", name, "--mount", str(again), "--name", "again"]) == EXIT_OK
        number = int(name.removeprefix("snap-"))
        assert (again / "file").read_bytes() == contents[name]
        assert [path.name for path in again.glob("only-*")] == [f"only-{number}"]
        (again / "file").write_text("changed, and the snapshot is not")
        assert volume.find("again").facts["file_system"] == file_system
        assert run(["volume", "detach", "again"]) == EXIT_OK
    assert run(["volume", "detach", "data"]) == EXIT_OK
    assert run(["volume", "restore", "snap-3", "gp3:size=2GiB,init=lazy", "--mount", str(again)]) == EXIT_OK
    assert (again / "file").read_bytes() == contents["snap-3"]
    assert run(["volume", "detach", "gp3-1"]) == EXIT_OK


def test_what_is_restored_can_have_snapshots_of_its_own(state: Path) -> None:
    mount = state.parent / "mnt"
    with volume.attached("null:size=1GiB", mount=mount, name="data") as data:
        (mount / "one").write_text("1")
        subprocess.run(["sync", "--file-system", mount], check=True)
        [first] = snapshot.take([data], rate_mib_per_s=FAST_MIB_PER_S).snapshots
    restored = snapshot.restore(first, mount=mount, name="other")
    (mount / "two").write_text("2")
    subprocess.run(["sync", "--file-system", mount], check=True)
    [second] = snapshot.take([restored], rate_mib_per_s=FAST_MIB_PER_S).snapshots
    assert second.stored_bytes < first.stored_bytes <= second.held_bytes, "it is incremental to the one before"
    image = state.parent / "images/saved"
    restored.detach(save_image=image)
    with volume.attached("null:size=1GiB", mount=mount, name="third", image=image):
        assert {(mount / name).read_text() for name in ("one", "two")} == {"1", "2"}


def test_a_snapshot_is_pending_until_its_bytes_are_stored(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mount = state.parent / "mnt"
    with volume.attached("gp3:size=1GiB", mount=mount, name="first"):
        assert run(["volume", "snapshot", "first"]) == EXIT_OK
        out = capsys.readouterr().out
        assert "at twice and at half the rate" in out
        [taken] = snapshot.list_snapshots(state)
        assert taken.pending_s == pytest.approx(taken.stored_bytes / 2**20 / 40)
        assert taken.left_s(taken.taken_unix_ns / 1e9 + taken.pending_s - 1) == pytest.approx(1, abs=1e-3)
        assert taken.left_s(taken.taken_unix_ns / 1e9 + taken.pending_s) == 0
    # Of a volume of its own: that snapshot may be pending still.
    with volume.attached("gp3:size=1GiB", mount=mount, name="data") as data:

        def change() -> None:
            (mount / "file").write_bytes(os.urandom(BLOCK))
            subprocess.run(["sync", "--file-system", mount], check=True)

        change()
        slow = snapshot.take([data], rate_mib_per_s=1e-6).snapshots[0]
        with pytest.raises(InputError, match=f"`{slow.name}` is pending"):
            snapshot.restore(slow, mount=None)
        for _ in range(4):
            change()
            snapshot.take([data], rate_mib_per_s=1e-6)
        with pytest.raises(InputError, match="`data` has 5 pending snapshots, and a volume of type gp3 has at most 5"):
            snapshot.take([data], rate_mib_per_s=FAST_MIB_PER_S)
        assert len(snapshot.list_snapshots(state)) == 6
    with volume.attached("st1:size=125GiB", mount=None, name="cold") as cold:
        snapshot.take([cold], rate_mib_per_s=1e-6)
        with pytest.raises(InputError, match="of type st1 has at most 1"):
            snapshot.take([cold])


def test_what_no_snapshot_can_be_taken_of_is_refused_with_the_rule(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pair(instance=None) as volumes:
        assert run(["volume", "snapshot", "first", "second"]) == EXIT_USAGE
        err = capsys.readouterr().err
        assert "cannot be of one instant" in err
        assert "--instance" in err
        volumes[0].fail({"kind": "lose"})
        with pytest.raises(InputError) as refused:
            snapshot.take(volumes[:1])
        assert (refused.value.code, refused.value.data) == ("snapshot.volume.lost", {"volume": "first"})
        assert run(["volume", "snapshot", "--instance", "db"]) == EXIT_USAGE
        assert "no instance is called `db`" in capsys.readouterr().err
    assert snapshot.list_snapshots(state) == []
    with pair() as volumes:
        volumes[1].fail({"kind": "lose"})
        with pytest.raises(InputError, match="is lost"):
            snapshot.take(volumes)
        assert snapshot.list_snapshots(state) == [], "either all of a set are taken or none"
        assert not list((state.parent / "images").glob("snapshots/*"))


def test_what_other_snapshots_need_outlives_a_deleted_one(state: Path) -> None:
    """Of a chain of six, in any order, under a volume that goes on; nothing is left when all are deleted."""
    mount, again = state.parent / "mnt", state.parent / "again"
    folder = state.parent / "images/snapshots"
    contents: dict[str, bytes] = {}

    def sound() -> None:
        for name, content in contents.items():
            attached = snapshot.restore(snapshot.find(name), mount=again, name="again")
            assert (again / "file").read_bytes() == content
            attached.detach()

    def removed(*names: str) -> None:
        assert run(["volume", "snapshot", "delete", *names]) == EXIT_OK
        for name in names:
            del contents[name]

    with volume.attached("null:size=1GiB", mount=mount, name="data") as data:
        for number in range(1, 7):
            (mount / "file").write_bytes(contents.setdefault(f"snap-{number}", os.urandom(1 << 20)))
            subprocess.run(["sync", "--file-system", mount], check=True)
            snapshot.take([data], rate_mib_per_s=FAST_MIB_PER_S)
        stored = sum(list_snapshot.stored_bytes for list_snapshot in snapshot.list_snapshots())
        removed("snap-3", "snap-4")
        first = snapshot.find("snap-1")
        removed("snap-1")
        assert snapshot.find("snap-2").held_bytes >= snapshot.find("snap-2").stored_bytes >= first.stored_bytes
        assert sum(list_snapshot.stored_bytes for list_snapshot in snapshot.list_snapshots()) < stored
        sound()
        removed("snap-6")
        assert (folder / "snap-6").is_dir(), "the volume stands on it"
        before = blocks(folder)
        (mount / "file").write_bytes(contents.setdefault("snap-7", os.urandom(1 << 20)))
        subprocess.run(["sync", "--file-system", mount], check=True)
        snapshot.take([data], rate_mib_per_s=FAST_MIB_PER_S)
        removed("snap-5")
        assert blocks(folder) < before + (2 << 20), "the volume reads them, and nothing of them is there twice"
        assert (mount / "file").read_bytes() == contents["snap-7"]
        sound()
        image = state.parent / "images/saved"
        data.detach(save_image=image)
    removed("snap-7")
    assert {path.name for path in folder.iterdir()} == {"snap-2"}, "the rest was merged into it and into the image"
    sound()
    removed("snap-2")
    assert snapshot.list_snapshots() == []
    assert list(folder.iterdir()) == [], "what the image needs was merged into it"
    with volume.attached("null:size=1GiB", mount=mount, name="third", image=image):
        assert len((mount / "file").read_bytes()) == 1 << 20


def blocks(folder: Path) -> int:
    """Bytes that the layers in a folder take."""
    return sum(512 * data.stat().st_blocks for data in folder.glob("*/data"))


def test_a_layer_that_two_snapshots_share_stays_and_counts_once(state: Path) -> None:
    mount = state.parent / "mnt"
    with volume.attached("null:size=1GiB", mount=mount, name="data") as data:
        (mount / "file").write_bytes(b"x" * (8 << 20))
        subprocess.run(["sync", "--file-system", mount], check=True)
        [base] = snapshot.take([data], rate_mib_per_s=FAST_MIB_PER_S).snapshots
        with contextlib.ExitStack() as stack:
            other = snapshot.restore(base, mount=state.parent / "other", name="other")
            stack.callback(other.detach)
            tips = [snapshot.take([item], rate_mib_per_s=FAST_MIB_PER_S).snapshots[0] for item in (data, other)]
    before = sum(list_snapshot.stored_bytes for list_snapshot in snapshot.list_snapshots())
    assert snapshot_delete.delete([base], state).stored_bytes_less <= before - base.stored_bytes
    first, second = (snapshot.find(tip.name) for tip in tips)
    assert first.held_bytes == first.stored_bytes, "it has what both need"
    assert second.held_bytes > 8 << 20 > second.stored_bytes
    assert Path(base.image).is_dir()
    snapshot_delete.delete([first], state)
    assert snapshot.find(second.name).stored_bytes == second.held_bytes
    assert not Path(base.image).exists()
