"""Each metric of one minute, against the rates at which the counters grew."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.advise.metrics.cloudwatch import BY_NAME, METRICS, Period, minutes
from pgdyno.advise.metrics.samples import CounterHistory

from .samples import GP3, IO2, SECOND_NS, make_samples

EXPECTED = {
    "VolumeReadBytes": 60 * 1000 * 8192,
    "VolumeWriteBytes": 60 * 500 * 16384,
    "VolumeReadOps": 60_000,
    "VolumeWriteOps": 30_000,
    "VolumeTotalReadTime": 30,
    "VolumeTotalWriteTime": 60,
    "VolumeIdleTime": 15,
    "VolumeQueueLength": 1.5,
    "VolumeAvgReadLatency": 0.5,
    "VolumeAvgWriteLatency": 2.0,
    "VolumeAvgIOPS": 1_500,
    "VolumeAvgThroughput": 16_000,
    "VolumeIOPSExceededCheck": 0,
    "VolumeThroughputExceededCheck": 0,
    "VolumeStalledIOCheck": 0,
}


def whole_minute(samples: CounterHistory) -> Period:
    """The first whole minute."""
    return next(minute for minute in minutes(samples) if minute.whole)


def value(name: str, samples: CounterHistory) -> float | None:
    return BY_NAME[name].value(samples, whole_minute(samples))


def test_a_minute_of_gp3_has_every_metric_but_those_of_other_types() -> None:
    samples = make_samples()
    document = {metric.name: metric.value(samples, whole_minute(samples)) for metric in METRICS}
    known = {name: figure for name, figure in document.items() if figure is not None}
    assert known == pytest.approx(EXPECTED)


def test_provisioned_iops_volumes_say_what_was_delivered_and_consumed() -> None:
    samples = make_samples(spec=IO2, io_units=2_000)
    assert value("VolumeThroughputPercentage", samples) == pytest.approx(100 * 1_500 / 16_000)
    assert value("VolumeConsumedReadWriteOps", samples) == pytest.approx(120_000)


def test_before_a_modification_the_share_is_of_what_was_provisioned_then() -> None:
    slower = IO2 | {"limits": {"iops": 3000, "throughput_mib_per_s": 4000}}
    samples = make_samples(spec=IO2, earlier=((50, GP3), (110, slower)))
    shares = [BY_NAME["VolumeThroughputPercentage"].value(samples, minute) for minute in minutes(samples)]
    assert shares == [
        None,
        pytest.approx(50.0),
        pytest.approx(100 * 1_500 / 16_000),
        pytest.approx(100 * 1_500 / 16_000),
    ]


def test_the_credits_of_fast_snapshot_restore_are_those_at_the_minutes_end() -> None:
    levels = {"restore_credits_millionths": (7.13e6, 7.13e6), "restore_credits_most_millionths": (8e6, 8e6)}
    samples = make_samples(levels=levels)
    assert value("FastSnapshotRestoreCreditsBalance", samples) == pytest.approx(7.13)
    assert value("FastSnapshotRestoreCreditsBucketSize", samples) == 8


@pytest.mark.parametrize(("waited_share", "check"), [(0.49, 0.0), (0.51, 1.0), (1.0, 1.0)])
def test_a_limit_is_exceeded_when_half_of_the_minute_was_waited_for_it(waited_share: float, check: float) -> None:
    samples = make_samples(exceeded_iops_ns=waited_share * SECOND_NS, exceeded_throughput_ns=0.1 * SECOND_NS)
    assert value("VolumeIOPSExceededCheck", samples) == check
    assert value("VolumeThroughputExceededCheck", samples) == 0.0


def test_a_part_of_a_minute_is_judged_by_its_own_length() -> None:
    samples = make_samples(11, exceeded_iops_ns=0.9 * SECOND_NS)
    (part,) = minutes(samples)
    assert not part.whole
    assert BY_NAME["VolumeIOPSExceededCheck"].value(samples, part) == 1.0
    assert BY_NAME["VolumeQueueLength"].value(samples, part) == pytest.approx(1.5)


def test_a_volume_that_answers_nothing_all_the_minute_is_stalled() -> None:
    nothing = dict.fromkeys(("read_ops", "write_ops", "read_time_ns", "write_time_ns"), 0.0)
    assert value("VolumeStalledIOCheck", make_samples(**nothing, busy_ns=SECOND_NS)) == 1.0
    assert value("VolumeStalledIOCheck", make_samples(**nothing, busy_ns=0)) == 0.0, "an idle volume is not stalled"
    assert value("VolumeAvgReadLatency", make_samples(**nothing, busy_ns=0)) is None


def test_the_burst_balance_is_what_was_left_at_the_minutes_end() -> None:
    samples = make_samples(120, levels={"burst_balance_ppm": (1_000_000, 400_000)})
    assert value("BurstBalance", samples) == pytest.approx(100 - 0.5 * 109)
    assert value("BurstBalance", make_samples(spec=GP3)) is None


def test_what_a_device_does_not_count_is_not_made_up() -> None:
    unknown = dict.fromkeys(("exceeded_iops_ns", "exceeded_throughput_ns", "io_units"), math.nan)
    samples = make_samples(spec={}, **unknown)
    missing = {"VolumeIOPSExceededCheck", "VolumeThroughputExceededCheck", "VolumeThroughputPercentage", "BurstBalance"}
    assert {name for name in missing if value(name, samples) is not None} == set()
    assert value("VolumeReadOps", samples) == pytest.approx(60_000)


@given(
    seconds=st.floats(61, 900),
    rates=st.fixed_dictionaries(
        {name: st.floats(0, 1e9) for name in ("read_ops", "write_ops", "read_bytes", "queue_time_ns")}
    ),
)
def test_minutes_add_up_to_what_was_counted(seconds: float, rates: dict[str, float]) -> None:
    samples = make_samples(seconds, **rates)
    for name, counter in (
        ("VolumeReadOps", "read_ops"),
        ("VolumeWriteOps", "write_ops"),
        ("VolumeReadBytes", "read_bytes"),
    ):
        values = [BY_NAME[name].value(samples, minute) for minute in minutes(samples)]
        assert None not in values
        assert all(float(value or 0.0).is_integer() for value in values), "operations and bytes are whole"
        assert math.fsum(value or 0.0 for value in values) == pytest.approx(rates[counter] * seconds, rel=1e-6, abs=1)


def test_an_instance_has_checks_and_balances_of_its_own() -> None:
    levels = {"instance_iops_balance_ppm": (1_000_000.0, 1_000_000.0), "instance_throughput_balance_ppm": (0.0, 0.0)}
    samples = make_samples(levels=levels, instance_exceeded_iops_ns=0.6 * SECOND_NS, instance_exceeded_throughput_ns=0)
    assert value("InstanceEBSIOPSExceededCheck", samples) == 1.0
    assert value("InstanceEBSThroughputExceededCheck", samples) == 0.0
    assert value("EBSIOBalance%", samples) == 100
    assert value("EBSByteBalance%", samples) == 0
    assert value("VolumeIOPSExceededCheck", samples) == 0.0, "it is not the volume that binds"
