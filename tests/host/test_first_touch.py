"""A volume that was made from a snapshot, on a real device: which requests wait, what its counters say, and that its log replays."""

from __future__ import annotations

import json
import mmap
import os
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import engine
from pgdyno.base.errors import InputError
from pgdyno.cli.main import run
from pgdyno.machine import volume

from ..support.direct import moved
from .needs import expect, needs_fuse

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
HELD_MIB = 96
"""At the 15 MiB/s of `lazy_double` it takes more than six seconds to come."""
TURN_S = 0.5 / 15
"""Of one block of 512 KiB at that rate."""


@pytest.fixture
def image(state: Path) -> Path:
    """A volume of 1 GiB whose bytes from 256 MiB on are written, saved."""
    path = state.parent / "images" / "saved"
    with volume.attached("null:size=1GiB", mount=None) as first:
        written = mmap.mmap(-1, MIB)
        written.write(b"\x5a" * MIB)
        device = os.open(first.block_device, os.O_WRONLY | os.O_DIRECT)
        try:
            for place in range(HELD_MIB):
                os.pwritev(device, [written], (256 + place) * MIB)
        finally:
            os.close(device)
        first.detach(save_image=path)
    return path


@needs_fuse
def test_the_first_read_of_a_block_waits_and_the_log_replays(
    state: Path, image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = state.parent / "log"
    spec = "gp3:size=1GiB,init=lazy_double"
    with volume.attached(spec, mount=None, name="cold", image=image, submit_log=log) as cold:
        late = [(256 + HELD_MIB) * MIB - place * MIB for place in (1, 2, 3)]
        first = moved(cold.block_device, late)
        assert run(["volume", "list"]) == 0
        assert "serving; initialized " in capsys.readouterr().out
        again = moved(cold.block_device, late)
        lacking = moved(cold.block_device, [(600 + place) * MIB for place in range(3)])
        # A turn at the shared rate, less what the path itself takes.
        assert min(first) > 0.9 * TURN_S
        assert min(again) < 0.9 * TURN_S
        assert min(lacking) < 0.9 * TURN_S
        counters = cold.stats()["counters"]
        assert counters["first_touch_blocks"] >= len(late)
        assert counters["first_touch_ns"] >= 0.9e9 * TURN_S * len(late)
        assert cold.facts["restored_bytes"] >= HELD_MIB * MIB
        expect(lambda: cold.stats()["counters"]["initialized_ppm"] == 1_000_000, "all of it comes in the background")
        assert run(["volume", "list"]) == 0
        assert "initialized" not in capsys.readouterr().out
        with pytest.raises(InputError, match="chosen when it is made"):
            cold.modify("gp3:size=1GiB,init=fsr", rule="2026", optimizing_s=0)
        cold.detach()
    replayed = engine.run_json(["replay", str(log)])
    assert replayed["complete"]
    assert replayed["first_difference"] is None
    assert replayed["identical"] == replayed["grants"] >= len(first) + len(again) + len(lacking)


@needs_fuse
def test_a_fast_restored_volume_waits_for_nothing_and_has_taken_a_credit(
    image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with volume.attached("gp3:size=1GiB,init=fsr", mount=None, name="fast", image=image) as fast:
        counters = fast.stats()["counters"]
        assert counters["initialized_ppm"] is None
        assert counters["first_touch_blocks"] is None
        # The snapshot has 1 GiB: ten credits, of which this volume took one, and ten more in an hour.
        assert counters["restore_credits_most_millionths"] == 10_000_000
        assert 9_000_000 <= counters["restore_credits_millionths"] < 9_500_000
        assert run(["metrics", "names", "--json"]) == 0
        names = {metric["name"] for metric in json.loads(capsys.readouterr().out)["metrics"]}
        assert {"FastSnapshotRestoreCreditsBucketSize", "FastSnapshotRestoreCreditsBalance"} <= names


@needs_fuse
def test_a_volume_without_an_image_has_nothing_to_load_and_says_so(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mount = state.parent / "mnt"
    assert run(["volume", "attach", "gp3:size=1GiB,init=lazy", "--mount", str(mount), "--name", "empty"]) == 0
    try:
        assert "init= changes nothing" in capsys.readouterr().err
        counters = volume.find("empty", state).stats()["counters"]
        assert (counters["initialized_ppm"], counters["first_touch_blocks"]) == (1_000_000, 0)
    finally:
        assert run(["volume", "detach", "empty"]) == 0
