"""Whether indexes are better kept while rows are added, or dropped and built again.

Kept, each new row is put into each index. Built again, each row of the table, old or new, is sorted once for each index,
several indexes at a time. So it depends on how many rows there are already, on the order in which the keys come, and on
how many sessions load and how many build.

    keep    = new × Σ insertion / (sessions that load, at most the cores)
    rebuild = (old + new) × Σ building / (indexes that are built at a time, at most the cores)

The constants are CPU seconds for one row in one index, and they come from two published series, which the tests repeat:

- pg_bulkload's documentation (PostgreSQL 9.3, two indexes, keys that mostly ascend, everything by one session): 4 GB into
  an empty table 500 s kept, 229 + 51 + 53 s built afterwards; 1 GB more 140 s kept, 62 + 60 + 65 s built again. Insertion
  is 69.8 s/GB, building 25.4 s/GB: a ratio of 2.75.
- 1.5 million rows of 98 bytes, a primary key, an integer and a random text indexed (PostgreSQL 18, two sessions on two
  cores, cached): adding 5, 10, 20, 50, 100 % took 1.2, 2.0, 3.6, 9.6, 18.6 s kept and 2.7, 2.4, 2.8, 4.0, 6.8 s built
  again in parallel, of which copying is 1.2 s for 100 %. Insertion is 7.7 µs, building 1.07 µs: a ratio of 7.2.

Beyond the cache insertion costs reads as well, which this leaves out: it is then on the side of keeping.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pgdyno.loader.asked import IndexChoice

BUILD_US_PER_ROW = 1.07
"""CPU microseconds to sort a row into a new index (the second series)."""
INSERT_TO_BUILD_ASCENDING = 2.75
"""Insertion beside building where each key is larger than the last: always into the rightmost page (the first series)."""
INSERT_TO_BUILD_RANDOM = 7.2
"""The same where keys come in no order (the second series)."""
ASCENDING_CORRELATION = 0.9
"""From this correlation of a key with the rows' order on (``pg_stats``), keys are taken to ascend: as in PostgreSQL's own
cost of index scans, 1 is in order and 0 is none; between them few tables are."""
GAIN_S_MIN = 1.0
"""Dropping an index locks the table and leaves queries without it: not for less than a second."""


@dataclass(frozen=True)
class IndexCost:
    """One index that could be dropped."""

    name: str
    ascending: bool
    """Whether new keys are mostly larger than those before."""

    @property
    def insert_us_per_row(self) -> float:
        """CPU to put a row into it."""
        ratio = INSERT_TO_BUILD_ASCENDING if self.ascending else INSERT_TO_BUILD_RANDOM
        return BUILD_US_PER_ROW * ratio


@dataclass(frozen=True)
class IndexForecast:
    """What both ways would take, in seconds, copying itself left out."""

    keep_s: float
    rebuild_s: float
    choice: Literal["keep", "rebuild"]
    reason: str
    """In words, with the figures."""


def predict(
    indexes: Sequence[IndexCost],
    rows_before: float,
    rows_new: float,
    *,
    sessions: int,
    builds: int,
    cores: int | None = None,
) -> IndexForecast:
    """Both ways, and the shorter one.

    ``sessions`` load at a time, ``builds`` indexes are built at a time, on ``cores`` (default: this machine's; a server
    elsewhere is taken to have as many).
    """
    cores = cores or os.cpu_count() or 1
    inserting_us = rows_new * sum(index.insert_us_per_row for index in indexes)
    building_us = (rows_before + rows_new) * BUILD_US_PER_ROW * len(indexes)
    keep_s = inserting_us / 1e6 / max(1, min(sessions, cores))
    rebuild_s = building_us / 1e6 / max(1, min(builds, len(indexes), cores))
    gains = keep_s - rebuild_s >= GAIN_S_MIN
    how = f"about {keep_s:,.1f} s kept, {rebuild_s:,.1f} s built again"
    share = f"{rows_new:,.0f} new rows on {rows_before:,.0f}"
    return IndexForecast(keep_s, rebuild_s, "rebuild" if gains else "keep", f"{share}: {how}")


def choose(choice: IndexChoice, predicted: IndexForecast, droppable: int) -> tuple[bool, str]:
    """Whether to drop and build again, and why."""
    if droppable == 0:
        return False, "there is no index that may be dropped"
    if choice == "auto":
        return predicted.choice == "rebuild", predicted.reason
    return choice == "rebuild", f"as asked for; {predicted.reason}"
