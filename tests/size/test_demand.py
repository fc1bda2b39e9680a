"""Percentiles, and how operations are counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.advise.size import capped
from pgdyno.advise.size.demand import MIB, demand_of, quantile
from pgdyno.advise.size.measured import DeviceSamples, IntervalSample
from pgdyno.base.catalog import Catalog
from pgdyno.base.errors import InputError
from pgdyno.base.specification import Charge
from tests.size.loads import demand, steady

SSD = Charge(256 << 10)
HDD = Charge(1 << 20, whole_units=True)


@given(
    values=st.lists(st.floats(0, 1e6), min_size=1, max_size=300),
    percentile=st.floats(50, 100),
    length=st.floats(0.1, 900),
)
def test_a_percentile_is_the_least_value_that_so_much_of_the_time_keeps(
    values: list[float], percentile: float, length: float
) -> None:
    series, seconds = np.array(values), np.full(len(values), length)
    value = quantile(series, seconds, percentile)
    assert value in values
    assert np.mean(series <= value) >= percentile / 100 - 1e-6
    smaller = series[series < value]
    assert not smaller.size or np.mean(series <= smaller.max()) < percentile / 100 + 1e-6


def test_a_longer_interval_weighs_more() -> None:
    values, seconds = np.array([100.0, 900.0]), np.array([99.0, 1.0])
    assert quantile(values, seconds, 99) == 100.0
    assert quantile(values, seconds, 99.5) == 900.0


def test_headroom_and_percentile_make_what_is_needed() -> None:
    result = demand(*[(1000.0, 16.0)] * 99, (5000.0, 16.0))
    assert (result.iops.median, result.iops.at_percentile, result.iops.maximum) == (1000, 1000, 5000)
    assert result.needed_iops == pytest.approx(1200)
    assert result.needed_mib_per_s == pytest.approx(1000 * 16 / 1024 * 1.2)
    assert (result.read_share, result.request_kib) == pytest.approx((0.5, 16))
    assert demand(*[(1000.0, 16.0)] * 99, (5000.0, 16.0), percentile=100).iops.at_percentile == 5000


@pytest.mark.parametrize(
    ("kib", "charge", "iops", "mib_per_s"),
    [
        (8, SSD, 1000, 1000 * 8 / 1024),
        (256, SSD, 1000, 250),
        (1024, SSD, 4000, 1000),  # the provider's own example: 1,024 KiB count as 4
        (300, SSD, 2000, 1000 * 300 / 1024),
        (8, HDD, 1000, 1000),  # a random read of 8 KiB costs a full MiB
        (1024, HDD, 1000, 1000),
        (8, Charge(256 << 10, read_tokens=2, write_tokens=3), 2500, 1000 * 8 / 1024),
    ],
)
def test_operations_are_counted_as_the_provider_does(kib: float, charge: Charge, iops: float, mib_per_s: float) -> None:
    ops, size = steady(1000, kib).load.charged(charge)
    assert ops[0] == pytest.approx(iops)
    assert size[0] / MIB == pytest.approx(mib_per_s)


@given(requests=st.integers(1, 64), members=st.sampled_from([2, 4, 8]), chunk_kib=st.sampled_from([64, 256, 1024]))
def test_an_array_splits_requests_as_a_drawing_of_offsets_does(requests: int, members: int, chunk_kib: int) -> None:
    """Pieces of a request that begins at a page drawn evenly, against the formula."""
    length = requests * 8
    pages = range(chunk_kib // 8)
    pieces = np.mean([(page * 8 + length - 1) // chunk_kib + 1 for page in pages])
    load = steady(1000, length).load.of_member(members, chunk_kib << 10)
    assert load.reads_per_s[0] + load.writes_per_s[0] == pytest.approx(1000 * pieces / members)
    assert load.read_bytes_per_s[0] * members == pytest.approx(500 * length * 1024)


def test_a_load_of_nothing_is_refused() -> None:
    for samples in ((), (IntervalSample(1, 0, 0, 0, 0),)):
        with pytest.raises(InputError, match="did nothing"):
            demand_of(DeviceSamples("live", "sda", samples), 99, 0.2)


def _with_queues(ops: list[float], queues: list[float], limited: bool | None = None) -> DeviceSamples:
    samples = tuple(
        IntervalSample(1, value, 0, value * 8192, 0, queue, exceeded={"iops": 1.0} if limited else {})
        for value, queue in zip(ops, queues, strict=True)
    )
    return DeviceSamples("iostat", "nvme1n1", samples)


def test_a_plateau_with_a_long_queue_looks_capped() -> None:
    rising = [100.0 * place for place in range(1, 31)]
    measured = _with_queues(rising + [3010.0] * 10, [2.0] * 30 + [30.0] * 10)
    result = capped.find(demand_of(measured, 99, 0.2))
    assert result is not None and result.share == pytest.approx(11 / 40) and "3,010 IOPS" in result.sentence


@pytest.mark.parametrize(
    ("ops", "queues"),
    [
        ([100.0 * place for place in range(1, 41)], [2.0] * 40),  # no plateau
        ([3000.0] * 40, [30.0] * 40),  # all of it, and a request takes 10 ms: nothing to compare with
        ([100.0] * 30 + [3000.0] * 10, [2.0] * 30 + [3.0] * 10),  # a plateau that nobody waits at
        ([100.0, 3000.0], [2.0, 30.0]),  # too few
    ],
)
def test_what_is_no_plateau_is_not_called_one(ops: list[float], queues: list[float]) -> None:
    assert capped.find(demand_of(_with_queues(ops, queues), 99, 0.2)) is None


def test_a_rate_at_which_requests_wait_far_too_long_is_a_limit_for_the_whole_time() -> None:
    """The bulk load of a post: 750 IOPS, 2,048 in flight, so 2.7 s a request."""
    result = capped.find(demand_of(_with_queues([750.0] * 5, [2048.0] * 5), 99, 0.2))
    assert result is not None and result.share == 1.0 and result.level == 750 and result.is_certain
    assert result.wanted_iops == pytest.approx(204_800)
    assert capped.find(demand_of(_with_queues([750.0] * 5, [30.0] * 5), 99, 0.2)) is None, "40 ms, as of a disk"


def test_the_next_steps_end_at_what_was_wanted_and_name_a_volume_once() -> None:
    demand = demand_of(_with_queues([750.0] * 5, [2048.0] * 5), 99, 0.2)
    result = capped.find(demand)
    assert result is not None
    specs = {1.0: "gp3", 2.0: "gp3", 4.0: "gp3:iops=3600", 8.0: "gp3:iops=7200"}
    steps = list(capped.steps(result, demand, lambda times: (specs[times], times)))
    assert [(step.times, step.spec) for step in steps] == [(1, "gp3"), (4, "gp3:iops=3600"), (8, "gp3:iops=7200")]
    assert [step.needed_iops for step in steps] == pytest.approx([900, 3600, 7200])
    less = replace(result, wanted_iops=1000.0)
    assert [step.times for step in capped.steps(less, demand, lambda times: (specs[times], times))] == [1]


@pytest.mark.parametrize(
    ("spec", "rate"), [("gp2:size=250GiB", 750), ("gp2:size=250GiB", 3000), ("2xgp3:size=250GiB", 6000)]
)
def test_the_limit_of_what_was_bought_is_known_without_a_queue(catalog: Catalog, spec: str, rate: float) -> None:
    """gp2 stands at its baseline when credits are gone, and at 3,000 on credits; an array at its members' together."""
    samples = tuple(IntervalSample(1, rate * 0.99, 0, rate * 4096, 0) for _ in range(3))
    demand = demand_of(DeviceSamples("CloudWatch", "vol-1", samples), 99, 0.2)
    result = capped.find(demand, catalog.resolve(spec))
    assert result is not None and result.level == pytest.approx(rate) and result.share == 1.0
    half = tuple(IntervalSample(1, rate / 2 + 100, 0, rate * 4096, 0) for _ in range(3))
    assert capped.find(demand_of(DeviceSamples("CloudWatch", "vol-1", half), 99, 0.2), catalog.resolve(spec)) is None


def test_a_load_above_what_was_bought_is_of_another_volume(catalog: Catalog) -> None:
    samples = tuple(IntervalSample(60, 30_000, 0, 30_000 * 8192, 0) for _ in range(3))
    with pytest.raises(InputError) as refused:
        capped.find(demand_of(DeviceSamples("CloudWatch", "vol-1", samples), 99, 0.2), catalog.resolve("gp3"))
    assert refused.value.code == "size.bought.exceeded"
    assert refused.value.data == {"unit": "IOPS", "measured": 30_000, "maximum": 3000}


def test_the_providers_own_word_comes_first() -> None:
    result = capped.find(demand_of(_with_queues([100.0] * 4, [1.0] * 4, limited=True), 99, 0.2))
    assert result is not None and result.share == 1.0 and "provider says" in result.sentence
