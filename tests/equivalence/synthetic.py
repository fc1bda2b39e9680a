"""A record that nobody measured."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from tools.equivalence.record import Block, Record, Result
from tools.equivalence.same import Asked

ASKED = Asked(statements={"BEGIN": 1, "END": 1, "SELECT ?": 10}, commits=1.0002, wal_bytes=540.0)


def blocks(count: int, native: float = 1.0, spread: float = 0.005) -> list[Block]:
    """So many blocks of 1,000 transactions a second; pgdyno's driver makes ``native`` times as many, and runs differ by ``spread``."""
    draws = random.Random(7)

    def run(times: float) -> float:
        return 1000 * times * draws.lognormvariate(0, spread)

    return [Block(first=run(1), again=run(1), native=run(native)) for _ in range(count)]


def result(native: float = 1.0, spread: float = 0.005, sent: Asked = ASKED) -> Result:
    """A workload in eight blocks."""
    return Result(
        workload="tpcb-like",
        original="pgbench",
        protocol="prepared",
        blocks=tuple(blocks(8, native, spread)),
        asked_original=ASKED,
        asked_native=sent,
    )


def record(*results: Result) -> Record:
    """With one workload that could not be measured."""
    return Record(
        build_hash="5c0ffee",
        begin=datetime(2026, 11, 22, tzinfo=UTC),
        kernel="6.18",
        processor="A processor",
        postgres="18.6",
        sysbench="sysbench 1.0.20",
        seconds=10,
        awake=True,
        results=list(results),
        missing={"legacy": "there is no script"},
    )
