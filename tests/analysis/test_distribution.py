"""Distributions: merged whole, percentiles last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.analysis.distribution import HDR_FILE, ValueCounts, decoded, latency_ms, merge, volume_latency_ms
from pgdyno.results import open_experiment
from pgdyno.workload.histogram import LATENCY_US_MAX, SIGNIFICANT_DIGITS

if TYPE_CHECKING:
    from pathlib import Path

BUCKETS = st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 50)), min_size=1, max_size=40)


def test_percentile_is_the_smallest_value_that_so_many_do_not_exceed() -> None:
    distribution = ValueCounts.of((value, 1) for value in range(1, 21))
    assert distribution.percentile(50) == 10
    assert distribution.percentile(95) == 19
    assert distribution.percentile(100) == 20
    assert distribution.percentile(0) == 1


def test_no_values_have_no_percentile() -> None:
    assert merge([]).percentile(50) is None
    assert ValueCounts.of([(3, 0)]).total == 0


@given(BUCKETS, BUCKETS, st.floats(0, 100))
def test_merging_is_counting_together(a: list[tuple[float, int]], b: list[tuple[float, int]], percent: float) -> None:
    together = ValueCounts.of(a + b)
    merged = merge([ValueCounts.of(a), ValueCounts.of(b)])
    assert merged.total == together.total == sum(count for _, count in a + b)
    assert merged.percentile(percent) == together.percentile(percent)


@given(BUCKETS)
def test_percentiles_never_fall(buckets: list[tuple[float, int]]) -> None:
    values = [ValueCounts.of(buckets).percentile(percent) or 0 for percent in range(101)]
    assert values == sorted(values)


@pytest.mark.parametrize("unit", [1, 1000])
def test_a_histogram_is_decoded_as_its_library_reads_it(unit: int) -> None:
    written = HdrHistogram(unit, LATENCY_US_MAX, SIGNIFICANT_DIGITS)
    for value in (*range(1, 5000, 7), *(1 << bits for bits in range(31)), LATENCY_US_MAX):
        written.record_value(value, 3)
    text = written.encode()
    library = HdrHistogram.decode(text)
    result = decoded(text)
    filled = [place for place, count in enumerate(library.counts) if count]
    values = [library.get_highest_equivalent_value(library.get_value_from_index(place)) for place in filled]
    assert result.values.tolist() == values
    assert result.counts.tolist() == [library.counts[place] for place in filled]


def test_hdr_file_and_table_of_seconds_say_the_same(experiment: Path, tmp_path: Path) -> None:
    import shutil

    run = open_experiment(experiment).runs[0]
    whole = latency_ms(run)
    assert whole.total == run.record.account.succeeded
    copy = tmp_path / experiment.name
    shutil.copytree(experiment, copy)
    (copy / "runs" / run.path.name / HDR_FILE).unlink()
    from_seconds = latency_ms(open_experiment(copy).runs[0])
    assert from_seconds.total == whole.total
    for percent in (1, 50, 95, 99, 99.9):
        assert from_seconds.percentile(percent) == pytest.approx(whole.percentile(percent), rel=2e-3)


def test_volume_latency_is_of_the_measure_phase_alone(experiment: Path) -> None:
    """During warm-up the made-up volume was ten times slower."""
    for run in open_experiment(experiment).runs:
        counts = volume_latency_ms(run)
        usual = 9.4 if run.record.arm.startswith("gp3") else 0.41
        assert counts["read"].percentile(50) == pytest.approx(usual, rel=0.25)
        assert (counts["read"].percentile(99) or 0) < 5 * usual
