"""Latency histograms: nothing is lost, and parts merge to the whole."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.workload import histogram

latencies = st.lists(st.integers(0, histogram.LATENCY_US_MAX), max_size=60)


def of(values: list[int]) -> HdrHistogram:
    return histogram.of_buckets(np.array(values, dtype=np.int64), np.ones(len(values)))


@given(st.integers(1, histogram.LATENCY_US_MAX))
def test_a_bucket_is_hdrs_own_and_never_wider_than_a_thousandth(value: int) -> None:
    bucket = int(histogram.bucket_us(np.array([value]))[0])
    reference = HdrHistogram(1, histogram.LATENCY_US_MAX, histogram.SIGNIFICANT_DIGITS)
    assert reference.get_lowest_equivalent_value(value) == bucket
    assert 0 <= value - bucket <= value / 1000


def test_values_out_of_range_are_counted_at_its_ends() -> None:
    array = histogram.bucket_us(np.array([-5, 0, histogram.LATENCY_US_MAX + 10**9]))
    assert array[0] == array[1] == 0
    assert array[2] == histogram.bucket_us(np.array([histogram.LATENCY_US_MAX]))[0]


@given(latencies, latencies)
def test_parts_merge_to_the_whole(first: list[int], second: list[int]) -> None:
    merged, whole = of(first), of(first + second)
    merged.add(of(second))
    assert merged.get_total_count() == whole.get_total_count() == len(first) + len(second)
    for percentile in (0, 50, 95, 99, 100):
        assert merged.get_value_at_percentile(percentile) == whole.get_value_at_percentile(percentile)


@given(st.lists(st.tuples(st.integers(0, histogram.LATENCY_US_MAX), st.integers(1, 9)), max_size=60))
def test_counting_all_at_once_is_recording_one_by_one(found: list[tuple[int, int]]) -> None:
    reference = HdrHistogram(1, histogram.LATENCY_US_MAX, histogram.SIGNIFICANT_DIGITS)
    for value, count in found:
        assert reference.record_value(int(histogram.bucket_us(np.array([value]))[0]), count)
    values, counts = (np.array([row[i] for row in found], dtype=np.int64) for i in (0, 1))
    made = histogram.of_buckets(values, counts)
    assert made.encode() == reference.encode()
    facts = (made.get_total_count(), made.get_min_value(), made.get_max_value())
    assert facts == (reference.get_total_count(), reference.get_min_value(), reference.get_max_value())


@given(latencies)
def test_an_encoded_histogram_decodes_to_itself(values: list[int]) -> None:
    whole = of(values)
    decoded = histogram.decode(whole.encode().decode())
    assert decoded.get_total_count() == len(values)
    assert decoded.get_value_at_percentile(99) == whole.get_value_at_percentile(99)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 10**7)), max_size=60))
def test_counting_by_second_and_script_keeps_every_transaction(rows: list[tuple[int, int, int]]) -> None:
    second, script, latency = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))
    text = histogram.per_second(second, script, latency)
    counted = {tuple(map(int, key)): int(n) for *key, n in zip(*text, strict=True)}
    expected: dict[tuple[int, ...], int] = {}
    for a, b, value in rows:
        key = (a, b, int(histogram.bucket_us(np.array([value]))[0]))
        expected[key] = expected.get(key, 0) + 1
    assert counted == expected


def test_the_document_holds_the_window_and_nothing_else() -> None:
    table = pa.table(
        {
            "t_begin_ns": [0, 10, 10, 20],
            "t_end_ns": [10, 20, 20, 30],
            "script": ["a", "a", "b", "b"],
            "latency_us": [1, 100, 200, 3000],
            "count": [5, 2, 3, 7],
        }
    )
    made = histogram.document(table, 10, 20)["histograms"]
    assert {name: histogram.decode(text).get_total_count() for name, text in made.items()} == {"a": 2, "b": 3, "all": 5}
    assert histogram.decode(made["all"]).get_max_value() == 200


@given(latencies.filter(bool))
def test_an_encoded_histogram_has_its_buckets(values: list[int]) -> None:
    value, count = histogram.buckets(of(values).encode().decode())
    wanted, times = np.unique(histogram.bucket_us(np.array(values, dtype=np.int64)), return_counts=True)
    assert (value.tolist(), count.tolist()) == (wanted.tolist(), times.tolist())


def test_values_that_occurred_often_are_counted_as_often() -> None:
    second, script, value = np.array([1, 1, 0]), np.array([0, 0, 1]), np.array([5, 5, 7])
    text = histogram.per_second(second, script, value, np.array([2, 3, 4]))
    assert [part.tolist() for part in text] == [[0, 1], [1, 0], [7, 5], [4, 5]]
