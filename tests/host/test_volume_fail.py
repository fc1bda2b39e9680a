"""Faults injected into a volume on a real device: what a program sees, and that nothing of it stays."""

from __future__ import annotations

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.base import engine
from pgdyno.base.errors import EXIT_USAGE, InputError
from pgdyno.cli import volume_notes
from pgdyno.cli.main import run
from pgdyno.machine import volume
from pgdyno.machine.clean import clean

from ..support.commands import pgdyno
from ..support.direct import PAGE, moved
from .needs import expect, needs_fuse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def fault(member: int, kind: str = "lose") -> dict[str, Any]:
    return {
        "member": member,
        "kind": kind,
        "reads": True,
        "writes": True,
        "share": 1.0,
        "begins_in_s": 0.0,
        "ends_in_s": None,
    }


@pytest.mark.parametrize(
    ("array", "members", "lines"),
    [
        ({}, [0], ["lost"]),
        ({"columns": 2, "copies": 2}, [1], ["member 1: lost; each stripe has another copy"]),
        ({"columns": 2, "copies": 2}, [0], ["member 0: lost; each stripe has another copy"]),
        ({"columns": 2, "copies": 2}, [0, 3], ["members 0, 3: lost; each stripe has another copy"]),
        ({"columns": 2, "copies": 2}, [2, 3], ["members 2, 3: lost; the array is lost with them"]),
        ({"columns": 4, "copies": 1}, [2], ["member 2: lost; the array is lost with it"]),
        ({"columns": 4, "copies": 1}, [0, 1, 2, 3], ["lost"]),
    ],
)
def test_what_an_array_keeps_without_its_lost_members_is_said(
    array: dict[str, int], members: list[int], lines: list[str]
) -> None:
    assert list(volume_notes.faults(map(fault, members), {"array": array})) == lines
    paused = volume_notes.faults([fault(0, "pause")], {"array": {"columns": 2, "copies": 1}})
    assert list(paused) == ["member 0: paused"]


@pytest.fixture
def bare(state: Path) -> Iterator[volume.AttachedVolume]:
    """A gp3 without a file system, whose requests are logged; nothing is left of it."""
    yield volume.attach("gp3:size=1GiB", mount=None, name="data", submit_log=state.parent / "log")
    for list_volume in volume.list_volumes(state):
        list_volume.detach()
    clean(state)


def assert_fails(device: str, write: bool, offset: int = 0) -> None:
    """A request ends with EIO."""
    with pytest.raises(OSError) as raises:
        moved(device, [offset], write=write)
    assert raises.value.errno == errno.EIO


@needs_fuse
def test_a_pause_holds_a_request_until_it_is_healed(
    state: Path, bare: volume.AttachedVolume, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["volume", "fail", "data", "pause"]) == 0
    assert capsys.readouterr().out == "data: paused\n"
    with ThreadPoolExecutor(1) as writer:
        try:
            written = writer.submit(moved, bare.block_device, [0], write=True)
            expect(lambda: bare.stats()["counters"]["queue_length"] == 1, "the write waits")
            assert run(["volume", "list"]) == 0
            assert "serving; impaired; paused" in capsys.readouterr().out
            assert volume.states()["data"]["status"] == "impaired"
            assert not written.done()
        finally:
            assert run(["volume", "heal", "data"]) == 0
        assert capsys.readouterr().out == "data: no fault\n"
        written.result(60)
    assert run(["volume", "fail", "data", "pause", "--for", "2s", "--json"]) == 0
    (fault,) = json.loads(capsys.readouterr().out)["faults"]
    assert fault["kind"] == "pause"
    assert 0 < fault["ends_in_s"] <= 2
    assert moved(bare.block_device, [0])[0] > fault["ends_in_s"] / 2
    assert bare.stats()["faults"] == []
    assert volume.states()["data"]["status"] == "ok"
    # A directory of the same name is not taken for a run.
    (state.parent / "data").mkdir()
    monkeypatch.chdir(state.parent)
    assert run(["metrics", "cloudwatch", "data"]) == 0
    assert "WRITE IOPS" in capsys.readouterr().out
    bare.detach()
    replayed = engine.run_json(["replay", str(state.parent / "log")])
    assert replayed["complete"]
    assert replayed["identical"] == replayed["grants"] >= 2


@needs_fuse
def test_latency_hits_the_operations_that_it_names(bare: volume.AttachedVolume) -> None:
    assert run(["volume", "fail", "data", "latency", "--add", "300ms", "--writes", "0%"]) == 0
    assert min(moved(bare.block_device, [PAGE * i for i in range(3)])) >= 0.3
    assert min(moved(bare.block_device, [PAGE * i for i in range(20)], write=True)) < 0.3
    counters = bare.stats()["counters"]
    assert counters["read_time_ns"] / counters["read_ops"] >= 300e6


@needs_fuse
def test_errors_are_eio_in_their_range_and_end_with_the_fault(
    bare: volume.AttachedVolume, capsys: pytest.CaptureFixture[str]
) -> None:
    device = bare.block_device
    assert run(["volume", "fail", "data", "error", "--reads", "0%", "--offset", "1MiB", "--length", "64KiB"]) == 0
    assert "I/O errors on 100 % of writes from byte 1,048,576 on for 0 MiB" in capsys.readouterr().out
    assert_fails(device, write=True, offset=1 << 20)
    moved(device, [0], write=True)
    moved(device, [1 << 20])
    assert bare.stats()["counters"]["failed_ops"] == 1
    assert run(["volume", "heal", "data"]) == 0
    moved(device, [1 << 20], write=True)
    assert run(["volume", "fail", "data", "error", "--once"]) == 0
    assert_fails(device, write=False)
    moved(device, [0])


@needs_fuse
def test_a_lost_volume_can_only_be_detached(state: Path, bare: volume.AttachedVolume) -> None:
    assert run(["volume", "fail", "data", "lose"]) == 0
    assert [fault["kind"] for fault in bare.heal()["faults"]] == ["lose"]
    assert_fails(bare.block_device, write=False)
    with pytest.raises(InputError, match="is lost, so its content cannot be saved"):
        bare.detach(save_image=state.parent / "image")


@needs_fuse
@pytest.mark.parametrize(("spec", "survives"), [("2xgp3:size=1GiB", False), ("raid10:2xgp3:size=1GiB", True)])
def test_a_mirror_does_without_a_lost_member(state: Path, spec: str, survives: bool) -> None:
    with volume.attached(spec, mount=None, name="array") as array:
        assert run(["volume", "fail", "array", "lose", "--member", "0"]) == 0
        for write in (False, True):
            if survives:
                moved(array.block_device, [0], write=write)
            else:
                assert_fails(array.block_device, write)
        with pytest.raises(InputError, match="has no member 2"):
            array.fail({"kind": "lose", "member": 2})
    clean(state)


@needs_fuse
def test_a_paused_file_system_with_unwritten_pages_is_detached(state: Path) -> None:
    mount = state.parent / "mnt"
    with volume.attached("gp3:size=1GiB", mount=mount, name="data") as data:
        (mount / "dirty").write_bytes(b"x" * (4 << 20))
        data.fail({"kind": "pause"})
        data.detach()
        assert not os.path.ismount(mount)
    clean(state)


@needs_fuse
def test_a_request_of_a_paused_volume_whose_daemon_is_killed_ends_with_an_error(
    state: Path, bare: volume.AttachedVolume
) -> None:
    bare.fail({"kind": "pause"})
    with ThreadPoolExecutor(1) as writer:
        written = writer.submit(moved, bare.block_device, [0], write=True)
        try:
            expect(lambda: bare.stats()["counters"]["queue_length"] == 1, "the write waits")
        finally:
            os.kill(bare.daemon.pid, 9)
        with pytest.raises(OSError, match="Input/output error"):
            written.result(60)
    bare.detach()
    assert volume.list_volumes(state) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["latency"], "needs either --add or --scenario"),
        (["latency", "--add", "500"], "`500` is not a time"),
        (["latency", "--add", "1s", "--scenario", "sustained"], "needs either --add or --scenario"),
        (["latency", "--scenario", "sustained", "--for", "1s"], "a scenario has its own duration"),
        (["latency", "--add", "1s", "--reads", "101%"], "--reads: `101%` is not a share"),
        (["error", "--reads", "0%", "--writes", "0%"], "hits neither reads nor writes"),
        (["error", "--offset", "1MiB"], "needs its length"),
        (["pause", "--for", "soon"], "--for: `soon` is not understood"),
        (["pause"], "no volume is called `nothing`"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(
    state: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["volume", "fail", "nothing", *arguments]) == EXIT_USAGE
    assert message in capsys.readouterr().err


@needs_fuse
def test_the_providers_ranges_hold(bare: volume.AttachedVolume) -> None:
    with pytest.raises(InputError, match="adds 10 to 60000 ms to requests of gp3, not 1 ms"):
        bare.fail({"kind": {"latency": {"added_ns": 1_000_000}}})
    with pytest.raises(InputError, match="reaches past the end of the volume"):
        bare.fail({"kind": {"error": {"offset": 1 << 30, "bytes": 1}}})
    bare.fail({"kind": {"scenario": "increasing"}})
    assert len(bare.heal()["faults"]) == 0


@needs_fuse
def test_a_fault_of_no_length_is_refused(bare: volume.AttachedVolume) -> None:
    error = pgdyno("volume", "fail", "data", "pause", "--for", "0s", code=EXIT_USAGE).error
    assert error is not None
    assert error.code == "volume.fault.empty"
    assert bare.stats()["faults"] == []
