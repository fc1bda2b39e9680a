"""From what fio saw to a volume: disks with known limits are found again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgdyno.advise.twin.fio import Course, FioJob, Op, table_mean_ns
from pgdyno.advise.twin.fit import fit, limit_of, require_slower_than_the_floor
from pgdyno.base.errors import HostError
from tests.twin.synthetic import Disk, answer, bins

MIB = 1 << 20


def both(rate: float) -> dict[Op, float]:
    return {"read": rate, "write": rate}


@settings(max_examples=25)
@given(
    iops=st.integers(400, 16_000),
    ratio_kib=st.floats(9.0, 240.0),
    bucket_ms=st.integers(0, 1500),
    drawn=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_limits_buckets_and_order_are_found_again(
    iops: int, ratio_kib: float, bucket_ms: int, drawn: bool, seed: int
) -> None:
    disk = Disk(both(iops), iops * ratio_kib * 1024, bucket_ms=bucket_ms, drawn=drawn)
    twin = fit(disk.measured(seed))
    # Completions are counted in whole requests and milliseconds: a request of a MiB is 1/1,000 of a job at the least rate.
    assert twin.reads_per_s == twin.writes_per_s == pytest.approx(iops, rel=0.005)
    assert twin.bytes_per_s == pytest.approx(disk.bytes_per_s, rel=0.01)
    # What goes out before the bucket is empty takes time, too: at 30,000 a second that is below a tenth of these buckets.
    assert twin.iops_bucket_ms == pytest.approx(bucket_ms, abs=10 + 0.05 * bucket_ms)
    assert twin.unit_kib == 256
    assert twin.order == ("gamma" if drawn else "fifo")
    assert bool(twin.notes) == (twin.reads_per_s > 16_000 or (twin.bytes_per_s or 0) > 1000 * MIB)


@pytest.mark.parametrize("unit_kib", [8, 16, 32, 64, 128])
def test_a_unit_of_accounting_is_told_from_a_throughput_limit_of_the_same_rate(unit_kib: int) -> None:
    iops = 4000
    counted = fit(Disk(both(iops), None, unit_kib=unit_kib).measured())
    assert (counted.unit_kib, counted.bytes_per_s) == (unit_kib, None)
    limited = fit(Disk(both(iops), iops * unit_kib * 1024).measured())
    assert limited.unit_kib == 256
    assert limited.bytes_per_s == pytest.approx(iops * unit_kib * 1024, rel=0.01)


def test_a_disk_that_counts_a_mebibyte_as_one_has_no_limit_on_bytes() -> None:
    twin = fit(Disk(both(250), None, unit_kib=1024).measured())
    assert (twin.unit_kib, twin.bytes_per_s) == (1024, None)


def test_reads_and_writes_with_limits_of_their_own_keep_them_to_three_figures() -> None:
    twin = fit(Disk({"read": 12_345, "write": 4_321}, 200 * MIB).measured())
    assert twin.reads_per_s == pytest.approx(12_345, rel=0.006) and twin.reads_per_s % 100 == 0
    assert twin.writes_per_s == pytest.approx(4_321, rel=0.006) and twin.writes_per_s % 10 == 0


def test_service_times_are_what_fio_saw_less_what_fio_costs() -> None:
    disk = Disk(both(3000), 125 * MIB, service_us={"read": 400.0, "write": 700.0})
    twin = fit(disk.measured())
    for rows, mean_ns in ((twin.read_ns, 400_000), (twin.write_ns, 700_000)):
        for row in rows:
            # 2,000 samples of a law whose standard deviation is a quarter of its mean: half a per cent, three times.
            assert table_mean_ns(row, twin.probability_ppm) == pytest.approx(mean_ns, rel=0.02)


def test_sequential_requests_that_share_units_are_seen() -> None:
    assert fit(Disk(both(3000), 500 * MIB, merges=True).measured()).merge_sequential
    assert not fit(Disk(both(3000), 500 * MIB).measured()).merge_sequential


def test_a_rate_that_still_falls_is_noted() -> None:
    times = np.concatenate([np.arange(0, 8, 1 / 3000), np.arange(8, 12, 1 / 300)])
    limit = limit_of(
        answer(FioJob("write", 4, 64, 12), 2000, bins(np.full(10, 1e6)), Course(times, np.full(len(times), 1e6)))
    )
    assert not limit.steady


def test_a_disk_faster_than_twice_the_floor_is_refused_with_both_figures() -> None:
    disk = Disk(both(3000), 125 * MIB, service_us={"read": 400.0, "write": 100.0})
    measurements = disk.measured()
    with pytest.raises(HostError, match=r"write of 8 KiB takes \d+ us on it and \d+ us on an emulated volume"):
        require_slower_than_the_floor("/srv", measurements.alone, measurements.null_alone)
    slow = Disk(both(3000), 125 * MIB).measured()
    require_slower_than_the_floor("/srv", slow.alone, slow.null_alone)


def test_a_disk_that_is_fast_below_its_limits_is_noted() -> None:
    disk = Disk(both(3000), 125 * MIB, service_us={"read": 100.0, "write": 700.0})
    notes = fit(disk.measured()).notes
    assert len(notes) == 1 and "answers a read in" in notes[0]


def test_reads_that_are_faster_than_flash_look_like_a_cache() -> None:
    def notes(read_us: float) -> list[str]:
        disk = Disk(both(3000), 125 * MIB, service_us={"read": read_us, "write": 700.0})
        return [note for note in fit(disk.measured()).notes if note.startswith("this looks like a cache")]

    assert notes(200.0) == []
    (result,) = notes(30.0)
    assert "a read of 8 KiB took" in result
