"""Copies of snapshots in other regions, the archive, and the baseline of hard disk volumes: what is charged, and what restores."""

from __future__ import annotations

import json
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pgdyno.base.errors import EXIT_OK, EXIT_USAGE, InputError
from pgdyno.cli.main import run
from pgdyno.experiment.events import EventTable
from pgdyno.machine import snapshot, snapshot_copy, snapshot_delete, snapshot_file, volume
from pgdyno.machine.clean import clean, left_in
from pgdyno.machine.journal import HostJournal
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster
from pgdyno.world.events import Acts

from .needs import needs_fuse

pytestmark = needs_fuse
BLOCK = 512 << 10
MIB = 1 << 20
FAST_MIB_PER_S = 1e6
"""Completed at once."""
FAST = ("--rate", "900GiB/s")
TAKE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from pgdyno.machine import snapshot, snapshot_delete, volume
from pgdyno.machine.journal import HostJournal
with snapshot_delete.temporary(HostJournal(Path(sys.argv[1])), "run"):
    snapshot.take([volume.find("run")], rate_mib_per_s=1e6)
    snapshot.take([volume.find("run-tail")], rate_mib_per_s=1e6)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def write(attached: volume.AttachedVolume, begin: int, count: int, value: int) -> None:
    """So many blocks of 512 KiB with one value."""
    with mmap.mmap(-1, BLOCK) as block:
        block[:] = bytes([value]) * BLOCK
        file = os.open(attached.block_device, os.O_WRONLY | os.O_DIRECT)
        try:
            for number in range(begin, begin + count):
                assert os.pwrite(file, block, number * BLOCK) == BLOCK
        finally:
            os.close(file)


def values(name: str) -> list[int]:
    """The value of each of the first 24 blocks on a volume that is restored from a snapshot."""
    attached = snapshot.restore(snapshot.find(name), mount=None, name="restored")
    try:
        with Path(attached.block_device).open("rb") as device:
            return [device.read(BLOCK)[-1] for _ in range(24)]
    finally:
        attached.detach()


def stored_mib() -> dict[str, float]:
    """What each snapshot stores."""
    return {list_snapshot.name: list_snapshot.stored_bytes / MIB for list_snapshot in snapshot.list_snapshots()}


def chain(data: volume.AttachedVolume) -> float:
    """The provider's example in MiB: 10, then 4 changed, then 2 added. What the first one stores, with what the calibration wrote."""
    for begin, count, value in ((0, 20, 1), (0, 8, 2), (20, 4, 3)):
        write(data, begin, count, value)
        snapshot.take([data], rate_mib_per_s=FAST_MIB_PER_S)
    first = stored_mib()["snap-1"]
    assert first >= 10
    assert stored_mib() == {"snap-1": first, "snap-2": 4, "snap-3": 2}
    return first


def test_copies_cost_what_their_region_lacks_and_outlive_their_originals(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with volume.attached("null:size=1GiB", mount=None, name="data") as data:
        first = chain(data)
        for name in ("snap-1", "snap-3", "snap-2"):
            assert run(["volume", "snapshot", "copy", name, "--region", "eu-west-1", *FAST]) == EXIT_OK
        out = capsys.readouterr().out
        assert f"snap-4: snap-1 in eu-west-1, {first:g} MiB copied in 1 s\n" in out
        assert [stored_mib()[f"snap-{number}"] for number in (4, 5, 6)] == [first, 6, 0]
        assert snapshot.find("snap-5").copy_of == "snap-3"
        assert run(["volume", "snapshot", "copy", "snap-1", "--region", "eu-west-1"]) == EXIT_USAGE
        assert "is in eu-west-1 already, as `snap-4`" in capsys.readouterr().err
        assert run(["volume", "snapshot", "copy", "snap-1", "--region", "us-east-2", *FAST, "--json"]) == EXIT_OK
        copied = json.loads(capsys.readouterr().out)
        assert copied["transfer_usd"] == pytest.approx(first / 1024 * 0.02)
        assert run(["volume", "snapshot", "delete", copied["copies"][0]["name"]]) == EXIT_OK
        with pytest.raises(InputError, match="is not the name of a region"):
            snapshot_copy.copy([snapshot.find("snap-1")], "Ireland", state)
        [slow] = snapshot_copy.copy([snapshot.find("snap-1")], "us-west-2", state, rate_mib_per_s=0.001)
        with pytest.raises(InputError, match=f"`{slow.name}` is pending"):
            snapshot.restore(slow, mount=None)
        assert run(["volume", "snapshot", "delete", "snap-1", "snap-2", slow.name]) == EXIT_OK
        assert stored_mib() == {"snap-3": first + 2, "snap-4": first, "snap-5": 6, "snap-6": 0}
        write(data, 0, 1, 4)
        assert values("snap-4") == [1] * 20 + [0] * 4
        assert values("snap-5") == [2] * 8 + [1] * 12 + [3] * 4
        assert run(["volume", "snapshot", "delete", "snap-4", "snap-6", "snap-3"]) == EXIT_OK
        assert stored_mib() == {"snap-5": first + 2}
    assert values("snap-5") == [2] * 8 + [1] * 12 + [3] * 4
    folder = state.parent / "images/snapshots"
    snapshot_delete.delete([snapshot.find("snap-5")], state)
    assert list(folder.iterdir()) == []


def test_an_archived_snapshot_is_a_full_copy_for_90_days_at_least(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with volume.attached("null:size=1GiB", mount=None, name="data") as data:
        first = chain(data)
        assert run(["volume", "snapshot", "archive", "snap-2"]) == EXIT_OK
        assert f"snap-2 is archived: {first:g} MiB" in capsys.readouterr().out
        # What it alone held outside the archive is the next one's now.
        assert stored_mib() == {"snap-1": first, "snap-2": first, "snap-3": 6}
        assert run(["volume", "snapshots", "--json"]) == EXIT_OK
        listed = json.loads(capsys.readouterr().out)
        assert [snapshot["state"] for snapshot in listed["snapshots"]] == ["completed", "archived", "completed"]
        assert listed["usd_per_month"] == pytest.approx((first + 6) / 1024 * 0.05 + first / 1024 * 0.0125)
        archived = snapshot.find("snap-2")
        for refused in (
            lambda: snapshot.restore(archived, mount=None),
            lambda: snapshot_copy.archive([archived], state),
        ):
            with pytest.raises(InputError, match="`snap-2` is in the archive") as error:
                refused()
            assert "unarchive snap-2" in error.value.remedy
        # The volume stands on the third, which is archived: the next one is charged for what the first lacks.
        snapshot_copy.archive([snapshot.find("snap-3")], state)
        write(data, 24, 2, 5)
        snapshot.take([data], rate_mib_per_s=FAST_MIB_PER_S)
        assert stored_mib() == {"snap-1": first, "snap-2": first, "snap-3": first + 2, "snap-4": 7}
        capsys.readouterr()
        assert run(["volume", "snapshot", "unarchive", "snap-2", "snap-3", "--json"]) == EXIT_OK
        early = 90 / (730 / 24) * (2 * first + 2) / 1024 * 0.0125
        assert json.loads(capsys.readouterr().out)["early_usd"] == pytest.approx(early, rel=1e-3)
        assert stored_mib() == {"snap-1": first, "snap-2": 4, "snap-3": 2, "snap-4": 1}
        assert values("snap-2") == [2] * 8 + [1] * 12 + [0] * 4
        with pytest.raises(InputError, match="is not in the archive"):
            snapshot_copy.unarchive([snapshot.find("snap-1")], state)
        assert run(["volume", "snapshot", "archive", "snap-1"]) == EXIT_OK
        assert run(["volume", "snapshot", "delete", "snap-1"]) == EXIT_OK
        assert "The archive is charged for at least 90 days: less than $0.01" in capsys.readouterr().out
        assert stored_mib() == {"snap-2": first, "snap-3": 2, "snap-4": 1}
        snapshot_delete.delete(snapshot.list_snapshots(), state)


def test_a_hard_disk_volume_does_its_baseline_while_a_snapshot_is_pending(state: Path) -> None:
    """Never faster, however busy this machine is; the model's own test has the exact rate."""
    with volume.attached("st1:size=125GiB", mount=None, name="cold") as cold:
        write(cold, 0, 2, 1)
        snapshot.take([cold], rate_mib_per_s=1e-3)
        begin = time.monotonic()
        write(cold, 0, 16, 2)
        # 40 MiB/s for each TiB; without a pending snapshot it would be 30.5 MiB/s. The bucket holds one unit of 1 MiB.
        assert time.monotonic() - begin >= (8 - 1) / (40 * 125 / 1024) - 0.1
        snapshot_delete.delete(snapshot.list_snapshots(), state)


def test_the_snapshots_of_a_run_that_was_killed_are_deleted_and_no_others(state: Path) -> None:
    """The user's own volumes stay, also one whose name begins like the run's."""
    with (
        volume.attached("null:size=1GiB", mount=None, name="run"),
        volume.attached("null:size=1GiB", mount=None, name="run-tail"),
    ):
        command = [sys.executable, "-c", TAKE_AND_DIE, str(state)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        assert left_in(state) != []
        assert "deleted the snapshot snap-1" in clean(state)
        assert left_in(state) == []
        assert [list_snapshot.volume for list_snapshot in snapshot.list_snapshots()] == ["run-tail"]
        snapshot_delete.delete(snapshot.list_snapshots(), state)


def test_an_event_takes_a_snapshot_of_a_volume_or_of_all_and_it_is_deleted_after_the_volumes(state: Path) -> None:
    journal = HostJournal(state)
    with (
        snapshot_delete.temporary(journal, "run"),
        volume.attached("null:size=1GiB", mount=None, name="run", instance="run") as data,
        volume.attached("null:size=1GiB", mount=None, name="run-1", instance="run") as wal,
    ):
        write(data, 0, 2, 1)
        # It touches no server.
        acts = Acts({"data": data, "wal": wal}, Cluster(find_binaries(), state.parent / "none"), lambda _: None)
        for on, count in (("data", 1), ("all", 3)):
            document = {"at": "1s", "do": "snapshot", "on": on, "rate": "10GiB/s"}
            result = acts(EventTable.model_validate(document))
            assert " pending 0 s, held up requests for at most " in result
            assert len(snapshot.list_snapshots()) == count
    assert snapshot_file.read(state).all == [], "their layers went with them"
    assert journal.entries() == []
