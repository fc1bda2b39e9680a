"""The table for people: which remarks it makes, and that its figures are those of the metrics."""

from __future__ import annotations

import pytest

from pgdyno.advise.metrics.cloudwatch import minutes
from pgdyno.advise.metrics.samples import CounterHistory
from pgdyno.advise.metrics.table import HEADER, figures, remarks, rows

from .samples import GP3, SECOND_NS, make_samples

GP2 = {
    "type": "gp2",
    "limits": {"iops": 300, "throughput_mib_per_s": 128},
    "params": {
        "iops_limit": {"rate_per_s": 3000, "depth_ns": 0},
        "iops_credit": {"rate_per_s": 300, "capacity": 5_400_000, "initial": 40_000},
        "throughput_credit": None,
    },
}
"""gp2 of 100 GiB."""


def remarks_of(samples: CounterHistory) -> list[str]:
    return remarks(samples, [figures(samples, minute) for minute in minutes(samples)])


def test_a_minutes_figures_are_the_formulas_over_its_metrics() -> None:
    samples = make_samples()
    whole = next(figures(samples, minute) for minute in minutes(samples) if minute.whole)
    assert whole.read_iops == pytest.approx(1000)
    assert whole.write_kib_per_s == pytest.approx(8000)
    assert (whole.read_ms, whole.write_ms) == (pytest.approx(0.5), pytest.approx(2.0))
    assert whole.size_kib == pytest.approx(16_000 / 1_500)
    assert whole.busy_percent == pytest.approx(75)
    assert whole.burst_percent is None
    assert whole.limited_by == ()


def test_lines_have_a_cell_for_each_column_and_mark_parts() -> None:
    samples = make_samples(exceeded_iops_ns=SECOND_NS, exceeded_throughput_ns=SECOND_NS)
    lines = rows([figures(samples, minute) for minute in minutes(samples)])
    assert {len(line) for line in lines} == {len(HEADER)}
    assert [line[0].endswith("*") for line in lines] == [True, False, False, True]
    assert {line[-1] for line in lines} == {"IOPS, throughput"}


def test_a_long_queue_is_said_by_the_rule_of_one_for_every_1000() -> None:
    texts = remarks_of(make_samples(queue_time_ns=3.5 * SECOND_NS))
    assert texts[0] == "queue: above 3 (one for every 1,000 of 3,000 IOPS) in 4 of 4 minutes"
    assert "in 0 of 4 minutes" in remarks_of(make_samples(queue_time_ns=2.5 * SECOND_NS))[0]


def test_minutes_before_a_modification_are_judged_by_the_limits_of_then() -> None:
    """A queue of 3.5 is too long for 3,000 IOPS and not for 6,000; the minute of the modification ends with the new ones."""
    faster = GP3 | {"limits": {"iops": 6000, "throughput_mib_per_s": 125}}
    texts = remarks_of(make_samples(queue_time_ns=3.5 * SECOND_NS, spec=faster, earlier=((100, GP3),)))
    assert texts[:2] == [
        "queue: above 3 (one for every 1,000 of 3,000 IOPS) in 1 of 1 minutes",
        "queue: above 6 (one for every 1,000 of 6,000 IOPS) in 0 of 3 minutes",
    ]


@pytest.mark.parametrize(("size_kib", "first"), [(16, "IOPS bind first"), (128, "throughput binds first")])
def test_what_binds_first_depends_on_the_size_of_operations(size_kib: int, first: str) -> None:
    """gp3: 3,000 IOPS of 42.7 KiB are its 125 MiB/s."""
    sizes = {"read_bytes": 1000.0 * size_kib * 1024, "write_bytes": 500.0 * size_kib * 1024}
    assert remarks_of(make_samples(spec=GP3, **sizes))[1].endswith(first)


def test_credits_are_said_as_the_time_that_they_buy() -> None:
    """The issue's example: gp2 of 100 GiB with 40,000 credits is about 14 s at 3,000 IOPS."""
    levels = {"io_credits": (5_400_000.0, 40_000.0), "burst_balance_ppm": (1_000_000.0, 40_000 / 5.4)}
    texts = remarks_of(make_samples(180, spec=GP2, levels=levels))
    assert "I/O credits: 40,000 of 5,400,000, 14.8 s at full burst; full again after 5.0 h without work" in texts
    assert any(text.startswith("burst credits: spent in 1.3 s if they go as in the last minute") for text in texts)


def test_credits_of_an_array_are_those_of_its_members() -> None:
    array = GP2 | {"array": {"columns": 4, "copies": 1}}
    texts = remarks_of(make_samples(180, spec=array, levels={"io_credits": (160_000.0, 160_000.0)}))
    assert "I/O credits: 160,000 of 21,600,000, 14.8 s at full burst; full again after 5.0 h without work" in texts


def test_credits_of_a_copy_in_another_zone_are_counted_with_it() -> None:
    """As the model counts them: a gp2 and its copy keep 10.8 million together."""
    away = GP2 | {"array": {"columns": 1, "copies": 1, "multi_az_ms": 1.0}}
    texts = remarks_of(make_samples(180, spec=away, levels={"io_credits": (80_000.0, 80_000.0)}))
    assert "I/O credits: 80,000 of 10,800,000, 14.8 s at full burst; full again after 5.0 h without work" in texts


def test_a_volume_without_limits_gets_no_remarks_but_that_of_parts() -> None:
    assert remarks_of(make_samples(spec={"type": "null", "limits": {"iops": None, "throughput_mib_per_s": None}})) == [
        "*: only a part of this minute was sampled"
    ]
