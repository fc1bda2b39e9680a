"""What ``PGDYNO_TRANSPORT=auto`` comes to on a machine: measured by the first attach since boot, and remembered.

The engine puts up two volumes that nothing else uses, one for each way, and measures in turn what its daemon spends on a request
(``volume measure-transports``, a third of a second), and how long that takes. io_uring is used where in every round it spends less
and answers no later.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from pgdyno import _engine
from pgdyno.errors import PgdynoError
from pgdyno.host import paths, transport
from pgdyno.host.journal import Journal
from pgdyno.host.process import boot_id, own_name

if TYPE_CHECKING:
    from pathlib import Path

Round = dict[str, list[list[int]]]
"""``cpu_ns`` that the daemon spent on a request and ``took_ns`` until its answer; each for /dev/fuse and for io_uring, of one that waits
alone and of one among 32."""
FILE = "transport.json"
"""Below :data:`pgdyno.host.paths.MACHINE_DIR`: it is of this boot, and goes with it."""
MANY_RATIO = 0.9
"""A request among 32 takes at most this share of the CPU by /dev/fuse: a smaller gain is not worth a second way."""
ALONE_RATIO = 1.0
"""And a request that waits alone no more: a commit waits alone for its WAL."""
LATER_NS = 15_000
"""A request takes at most so much longer: about the hand-over that the calibration of a volume takes off. Where other programs run
the thread that tells the kernel of answers waits for a CPU, and they are a hundred microseconds late."""
MEASURE_S = 20.0
"""It takes a third of a second; an engine that takes longer than this hangs."""


@dataclass(frozen=True)
class Decided:
    """What ``auto`` comes to, and why."""

    transport: Literal["classic", "uring"]
    reason: str


def decided(asked: transport.Transport, store: str, state: Path) -> Decided | None:
    """What is used where ``asked`` is ``auto``; measured, if no attach since boot has done it with this engine.

    ``None`` where nothing is to be decided: another way was asked for, or the volume is on a disk, which does without.
    """
    if asked != "auto" or store != "memory":
        return None
    missing = transport.missing()
    if missing is not None:
        return Decided("classic", missing)
    try:
        build = _engine.facts().build_hash
        return _remembered(build) or _remember(build, _measured(state))
    except PgdynoError as error:
        return Decided("classic", f"it could not be measured: {error.message}")


def remembered() -> Decided | None:
    """What was measured since boot by the engine in use; ``None`` where nothing was."""
    with contextlib.suppress(PgdynoError):
        return _remembered(_engine.facts().build_hash)
    return None


def judged(rounds: list[Round]) -> Decided:
    """The decision on rounds, of which the first finds the machine cold and does not count."""
    counted = rounds[1:]
    alone, many = ([_ratio(*(way[at] for way in one["cpu_ns"])) for one in counted] for at in range(2))
    later_ns = [uring - classic for one in counted for classic, uring in zip(*one["took_ns"], strict=True)]
    better = max(many) <= MANY_RATIO and max(alone) <= ALONE_RATIO and max(later_ns) <= LATER_NS
    return Decided(
        "uring" if better else "classic",
        f"measured on this machine: over io_uring a request that waits alone takes {median(alone):.2f} times the daemon's CPU by"
        f" /dev/fuse, one among 32 takes {median(many):.2f} times, and they are answered {median(later_ns) / 1e3:.0f} µs later",
    )


def _ratio(classic: int, uring: int) -> float:
    return uring / max(1, classic)


def _measured(state: Path) -> Decided:
    scratch = paths.MACHINE_DIR / own_name("transports")
    # What a killed attach leaves there are empty directories: its mounts end with the process that has them.
    with transport.offered("uring"), Journal(state).directory(scratch) as folder:
        command = ["volume", "measure-transports", "--state-dir", str(folder)]
        return judged(_engine.run_json(command, timeout_s=MEASURE_S)["rounds"])


def _file() -> Path:
    return paths.MACHINE_DIR / FILE


def _remembered(build: str) -> Decided | None:
    try:
        found: dict[str, Any] = json.loads(_file().read_text(encoding="utf-8"))
        is_of_here = (found["boot_id"], found["build_hash"]) == (boot_id(), build)
        return Decided(found["transport"], found["reason"]) if is_of_here else None
    except (OSError, ValueError, KeyError):
        return None


def _remember(build: str, found: Decided) -> Decided:
    text = json.dumps({"boot_id": boot_id(), "build_hash": build, **asdict(found)})
    unfinished = _file().with_suffix(f".{os.getpid()}")
    # Who cannot write there measures again.
    with contextlib.suppress(OSError):
        paths.make_state_dir(paths.MACHINE_DIR)
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(_file())
    return found
