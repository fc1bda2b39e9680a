"""Volumes of this checkout beside those of another one, in pairs: what came between them moves neither a rate nor a latency.

A pair's volumes with a limit take turns. Those without one are driven at the same time: what the host takes of the CPU it takes of
both, and with more cost per request one gets fewer of them done.

``PGDYNO_PEER`` names the other `pgdyno`, for example ``OTHER/.venv/bin/pgdyno`` of a checkout of an older commit. Both answer by
/dev/fuse, as older ones do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from pgdyno.analysis.statistics import Estimate, ratio_interval
from pgdyno.machine import awake
from tools.fidelity import fio
from tools.fidelity.cell import Job
from tools.fidelity.fio import Measured

PEER = "PGDYNO_PEER"
pytestmark = [
    pytest.mark.bench,
    pytest.mark.needs_fuse,
    pytest.mark.needs_fio,
    pytest.mark.skipif(PEER not in os.environ, reason=f"${PEER} names no `pgdyno` of another checkout"),
]

PEER_PROGRAM = [os.environ.get(PEER, "")]
TOLERANCE = 0.01
"""Of rates and of medians (issue 24)."""
HALF_WIDTH_MAX = 0.02
"""Of the interval: a machine on which pairs differ more shows nothing."""


@contextmanager
def attached(program: list[str], folder: Path, spec: str) -> Iterator[str]:
    """The filled block device of a volume that a checkout's command attaches, with state of its own."""
    places = {"PGDYNO_STATE_DIR": str(folder / "state"), "PGDYNO_IMAGE_DIR": str(folder / "images")}
    # The engine and the sources that this checkout's tests are given are not the peer's.
    ours = ("PGDYNO_ENGINE", "PYTHONPATH") if program == PEER_PROGRAM else ()
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment |= places | {"PGDYNO_TRANSPORT": "classic"}

    def volume(*words: str) -> str:
        command = [*program, "volume", *words]
        return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout

    document = json.loads(volume("attach", spec, "--no-mount", "--name", "beside", "--json"))
    try:
        device = str(document["block_device"])
        fio.fill(device)
        yield device
    finally:
        volume("detach", "beside")


Devices = dict[str, str]
"""The block devices of the peer's volume and of this checkout's, by ``peer`` and ``this``."""


def in_turn(number: int) -> tuple[str, str]:
    """Who is first and who is second: every second time the other one."""
    return ("peer", "this") if number % 2 == 0 else ("this", "peer")


def one_by_one(devices: Devices, job: Job, number: int) -> dict[str, Measured]:
    """What fio sees of the one volume and then of the other."""
    return {who: fio.run(devices[who], job, seed=number) for who in in_turn(number)}


def at_once(devices: Devices, job: Job, number: int) -> dict[str, Measured]:
    """What two fios see of the two volumes at the same time."""
    with ThreadPoolExecutor() as pool:
        running = {who: pool.submit(fio.run, devices[who], job, seed=number) for who in in_turn(number)}
        return {who: item.result() for who, item in running.items()}


def pairs(
    spec: str,
    jobs: list[Job],
    folder: Path,
    measure: Callable[[Devices, Job, int], dict[str, Measured]],
    attaches: int,
    rounds: int,
) -> dict[Job, list[tuple[Measured, Measured]]]:
    """What fio sees of the peer's volume and of this checkout's, in each round of each attach."""
    programs = {"peer": PEER_PROGRAM, "this": [sys.executable, "-m", "pgdyno"]}
    pairs: dict[Job, list[tuple[Measured, Measured]]] = {job: [] for job in jobs}
    for attach in range(attaches):
        with ExitStack() as stack:
            stack.enter_context(awake.kept_awake(wanted=awake.possible()))
            devices = {who: stack.enter_context(attached(programs[who], folder / who, spec)) for who in in_turn(attach)}
            for number in range(rounds):
                for job in jobs:
                    measured = measure(devices, job, number)
                    pairs[job].append((measured["peer"], measured["this"]))
    return pairs


def compared(measured: list[tuple[Measured, Measured]], figure: Callable[[Measured], float]) -> Estimate:
    """This checkout's figure as a multiple of the peer's, over all pairs."""
    return ratio_interval([(figure(this), figure(peer)) for peer, this in measured])


def faults(what: str, ratio: Estimate) -> list[str]:
    """Why it has moved, or cannot be said to have stayed; printed in either case."""
    assert ratio.low is not None
    assert ratio.high is not None
    text = f"{what} is {ratio.mean:.4f} ({ratio.low:.4f} to {ratio.high:.4f}) times the peer's, {ratio.n} pairs"
    print(text)
    moved = abs(ratio.mean - 1) > TOLERANCE
    blurred = (ratio.high - ratio.low) / 2 > HALF_WIDTH_MAX
    return [text] if moved or blurred else []


def iops(measured: Measured) -> float:
    """Requests a second."""
    return measured.iops


def median_ms(measured: Measured) -> float:
    """The median latency."""
    return measured.latency_ms[50.0]


def test_the_rate_of_a_volume_without_limits_has_not_moved(state_dir: Path) -> None:
    """Pairs differ by a tenth, and 200 of them give the mean within 0.014.

    Daemons' threads and memory lie otherwise in each attach, which moves all of its rounds.
    """
    jobs = [Job("random", "read", 4, 32, 2), Job("random", "write", 4, 32, 2)]
    results = []
    for job, measured in pairs("null:size=1GiB", jobs, state_dir, at_once, attaches=20, rounds=10).items():
        results += faults(f"null, {job}, IOPS", compared(measured, iops))
    assert results == []


@pytest.mark.parametrize("spec", ["gp3:size=100GiB", "io2bx:size=100GiB,iops=8000"])
def test_neither_a_limit_nor_a_latency_has_moved(spec: str, state_dir: Path) -> None:
    """Cells of the fidelity record: above the limit, and one request at a time."""
    above, single = Job("random", "70/30", 4, 64, 6, ramp_s=2), Job("random", "read", 4, 1, 6)
    document = pairs(spec, [above, single], state_dir, one_by_one, attaches=4, rounds=1)
    results = []
    for job, figure in ((above, iops), (above, median_ms), (single, median_ms)):
        what = f"{spec}, {job}, {figure.__name__}"
        results += faults(what, compared(document[job], figure))
    assert results == []
