"""What a long chain of snapshots costs the volume that stands on it: reads of one with a hundred layers, and of one with a single layer, in turn."""

from __future__ import annotations

import mmap
import os
import random
from contextlib import ExitStack, closing
from statistics import median
from typing import TYPE_CHECKING

import pytest

from pgdyno.machine import awake, snapshot, snapshot_delete, volume
from tests.speed.conftest import Speed, of_volume
from tools.fidelity import fio
from tools.fidelity.cell import REGION_MIB, Job

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse, pytest.mark.needs_fio]

LAYERS = 100
BLOCKS_OF_A_LAYER = 200
BLOCK_BYTES = 4096
ROUNDS = 5
SECONDS = 3
COST_MAX = 1.1
"""Of a read's time with a hundred layers, against one (issue 24, point 1)."""
FAST_MIB_PER_S = 1e6
"""A snapshot is completed at once: five are pending at most."""


def write(device: str, draw: random.Random) -> None:
    """Blocks at random places, each of which the next layer holds."""
    file = os.open(device, os.O_WRONLY | os.O_DIRECT)
    with closing(mmap.mmap(-1, BLOCK_BYTES)) as block:
        try:
            for _ in range(BLOCKS_OF_A_LAYER):
                block[:] = draw.randbytes(BLOCK_BYTES)
                os.pwrite(file, block, draw.randrange((REGION_MIB << 20) // BLOCK_BYTES) * BLOCK_BYTES)
        finally:
            os.close(file)


@pytest.mark.parametrize("depth", [1, 32])
def test_reads_through_a_hundred_layers_take_at_most_a_tenth_longer(
    state_dir: Path, image_dir: Path, depth: int
) -> None:
    del image_dir  # the snapshots' names begin again in one of the test's own
    draw = random.Random(1)
    job = Job("random", "read", 4, depth, SECONDS)
    with ExitStack() as stack:
        stack.enter_context(awake.kept_awake(wanted=awake.possible()))
        document: dict[int, list[Speed]] = {1: [], LAYERS: []}
        volumes = {}
        for layers in document:
            enter_context = stack.enter_context(volume.attached("null:size=1GiB", mount=None, state_dir=state_dir))
            fio.fill(enter_context.block_device)
            for _ in range(layers):
                write(enter_context.block_device, draw)
                snapshot.take([enter_context], rate_mib_per_s=FAST_MIB_PER_S)
            volumes[layers] = enter_context
        stack.callback(lambda: snapshot_delete.delete(snapshot.list_snapshots(state_dir), state_dir))
        for number in range(ROUNDS):
            for layers in (1, LAYERS) if number % 2 == 0 else (LAYERS, 1):
                document[layers].append(of_volume(volumes[layers], job))
    for layers, speeds in document.items():
        print(f"\n{layers} layers, depth {depth}", *(f"  {speed}" for speed in speeds), sep="\n")
    rates = {layers: median(speed.iops for speed in speeds) for layers, speeds in document.items()}
    print(f"{LAYERS} layers: {rates[1] / rates[LAYERS]:.3f} times the time of a read")
    assert rates[LAYERS] * COST_MAX >= rates[1]
