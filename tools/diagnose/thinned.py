"""A record as if the sessions had been looked at less often: what the rules need of the rate, from watches that had more.

A look sees an instant, so a watch with fewer looks is the same watch with some of them taken out.
"""

from __future__ import annotations

import dataclasses
import shutil
from typing import TYPE_CHECKING

from tools.diagnose.measure import WATCH

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from tools.diagnose.record import Measured

TABLE = "probe/wait_events.parquet"
EARLY_SHARE = 0.05
"""Of the time between two looks: a look that is due may come so much early, as the one before it came late."""


def thinned(measured: Measured, apart_ms: float, scratch: Path) -> Measured:
    """A copy below ``scratch``, in which looks at the sessions begin at least ``apart_ms`` after one another."""
    import pyarrow.parquet as pq

    folder = scratch / measured.facts.key
    shutil.copytree(measured.folder, folder)
    for path in (folder / WATCH).glob(f"*/runs/*/{TABLE}"):
        table = pq.read_table(path)
        kept = set(kept_looks(sorted(set(table["t_begin_ns"].to_pylist())), apart_ms))
        pq.write_table(_of_looks(table, kept), path)
    return dataclasses.replace(measured, folder=folder)


def kept_looks(begins_ns: Sequence[int], apart_ms: float) -> list[int]:
    """Those of some looks, in the order of time, that a watch with so much between them would have taken."""
    numbers: list[int] = []
    for begin_ns in begins_ns:
        if not numbers or begin_ns - numbers[-1] >= (1 - EARLY_SHARE) * apart_ms * 1e6:
            numbers.append(begin_ns)
    return numbers


def _of_looks(table: pa.Table, kept: set[int]) -> pa.Table:
    return table.filter([begin_ns in kept for begin_ns in table["t_begin_ns"].to_pylist()])
