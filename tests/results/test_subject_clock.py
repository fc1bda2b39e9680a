"""The subject's time: instants and durations of a dilated world, and nothing else, are made shorter."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.results.tables import SubjectClock

ZERO_NS = 86_400_000_000_000


@given(st.integers(0, 10**15), st.integers(0, 10**15), st.integers(1, 1000))
def test_what_lasts_so_many_times_longer_lasts_as_long(begin: int, length: int, dilation: int) -> None:
    clock = SubjectClock(ZERO_NS, dilation)
    lasted = clock.instant_ns(ZERO_NS + begin + length) - clock.instant_ns(ZERO_NS + begin)
    assert abs(lasted - length / dilation) <= 1
    assert clock.instant_ns(np.array([ZERO_NS + begin]))[0] == clock.instant_ns(ZERO_NS + begin)
    assert clock.host_s(lasted / 1e9) <= (length + dilation) / 1e9 + 1e-6


def test_without_dilation_nothing_changes() -> None:
    table = pa.table({"t_ns": [5, ZERO_NS], "read_time_ms": [3, 4]})
    assert SubjectClock(ZERO_NS).table(table) is table
    assert SubjectClock(ZERO_NS).instant_ns(7) == 7


def test_a_table_keeps_counts_cpu_time_and_what_the_volume_counted_itself() -> None:
    columns = {
        "t_ns": [ZERO_NS + 8_000, ZERO_NS + 16_000],
        "reads": [10, 20],
        "read_time_ms": [800, 1600],
        "blk_read_time_ms": [None, 17],
        "wal_sync_time_ms": [12.5, 126.0],
        "cpu_ns": [1_000, 2_000],
        "read_time_ns": [1, 2],
    }
    pydict = SubjectClock(ZERO_NS, 8).table(pa.table(columns)).to_pydict()
    assert pydict == columns | {
        "t_ns": [ZERO_NS + 1_000, ZERO_NS + 2_000],
        "read_time_ms": [100, 200],
        "blk_read_time_ms": [None, 2],
        "wal_sync_time_ms": [1.5625, 15.75],
    }


def test_microseconds_go_to_the_nearest() -> None:
    assert SubjectClock(0, 8).durations_us(np.array([0, 3, 4, 8, 12])).tolist() == [0, 0, 1, 1, 2]
