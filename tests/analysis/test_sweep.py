"""Axes, variants, boxes, maps and the scaling law, on experiments whose figures were made up."""

from __future__ import annotations

import math
import random
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgdyno.analysis.distribution import latency_map
from pgdyno.analysis.factors import Factor
from pgdyno.analysis.statistics import box_of
from pgdyno.analysis.sweep import Scaling, axis_of, fit, number_of, sweep_of

from ..report.sweeps import CLIENTS, COUNTS, LAWS, law, swept

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.compare import Comparison


def factor(name: str, *levels: str) -> Factor:
    return Factor(name, name.rpartition(".")[2], levels, levels, levels)


@pytest.mark.parametrize(
    ("level", "value"),
    [("16", 16.0), ("0.5", 0.5), ("512MiB", 2.0**29), ("90s", 90.0), ("2 min", 120.0), ("gp3", None), ("64MB", 2.0**26),
     ("8kB", 2.0**13), ("1us", 1e-6), ("1d", 86400.0), ("64mb", None), ("", None), ("-1", None), ("1e3", None)],
)  # fmt: skip
def test_a_level_that_is_a_number_has_its_base_unit(level: str, value: float | None) -> None:
    assert number_of(level) == value


def test_an_axis_has_its_levels_in_the_order_of_their_values() -> None:
    axis = axis_of(1, factor("instance.memory", "1GiB", "512MiB", "2GiB"))
    assert axis is not None
    assert axis.texts == ("512MiB", "1GiB", "2GiB")
    assert [axis.texts[axis.place[level]] for level in range(3)] == ["1GiB", "512MiB", "2GiB"]
    assert axis_of(0, factor("workload.clients", "8", "16")) is None
    assert axis_of(0, factor("world.volume", "gp2", "gp3", "io2")) is None
    assert axis_of(0, factor("workload.duration", "60s", "1min", "2min")) is None


def test_settings_of_postgresql_are_an_axis_in_its_own_units() -> None:
    axis = axis_of(0, factor("postgres.parameters.work_mem", "1GB", "4MB", "512kB"))
    assert axis is not None
    assert axis.texts == ("512kB", "4MB", "1GB")
    assert axis_of(0, factor("postgres.parameters.work_mem", "1MB", "4096", "16MB")) is None, "4096 of its unit, kB"
    assert axis_of(0, factor("postgres.parameters.vacuum_cost_delay", "0", "2ms", "10ms")) is not None


@pytest.fixture(scope="module")
def sixty(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return swept(tmp_path_factory.mktemp("sweep"))


def test_clients_are_the_first_axis_and_the_volume_makes_the_variants(sixty: Comparison) -> None:
    sweep = sixty.sweep
    assert sweep is not None
    assert (sweep.x.name, sweep.along and sweep.along.name) == ("workload.clients", "workload.transactions")
    assert [variant.label for variant in sweep.variants] == ["gp3", "io2bx"]
    assert all(len(variant.arms) == len(CLIENTS) * len(COUNTS) for variant in sweep.variants)
    arm = sweep.variants[1].arms[2, 4]
    assert arm.replicates[0].figures.record.factors["workload.clients"] == "48"
    assert arm.replicates[0].figures.record.factors["workload.transactions"] == "500"
    assert sweep.words((0, 1)) == "16 clients and 200 transactions"


def test_a_comparison_of_volumes_is_no_sweep(comparison: Comparison) -> None:
    assert comparison.sweep is None


def test_one_factor_at_a_time_has_one_course(sixty: Comparison) -> None:
    kept = [arm for arm in sixty.arms if sum(level > 0 for level in arm.levels) <= 1]
    sweep = sweep_of(sixty.factors, kept)
    assert sweep is not None
    assert [variant.label for variant in sweep.variants] == ["gp3"]
    assert len(sweep.variants[0].arms) == len(CLIENTS) + len(COUNTS) - 1
    assert sweep.common_load() in sweep.variants[0].arms


def test_the_verdict_of_a_sweep_says_how_far_it_goes(sixty: Comparison) -> None:
    assert re.search(r"io2bx did \d\.\d+ times the transactions of gp3", sixty.verdict)
    assert "transactions per second: the most with" in sixty.verdict
    assert len(sixty.verdict) < 600


@pytest.mark.parametrize("volume", [0, 1])
def test_the_law_that_was_made_up_is_found(volume: int) -> None:
    draw = random.Random(3)
    points = [(float(n), law(volume, n) * draw.gauss(1, 0.01)) for n in (1, 2, 4, 8, 16, 32, 64, 128) for _ in range(3)]
    result = fit(points)
    assert result is not None
    rate, contention, coherence = LAWS[volume]
    assert result.rate_tps == pytest.approx(rate, rel=0.03)
    assert result.contention == pytest.approx(contention, abs=0.01)
    assert result.coherence == pytest.approx(coherence, rel=0.15)
    assert result.peak_clients == pytest.approx(math.sqrt((1 - contention) / coherence), rel=0.1)
    assert result.deviation < 0.02


def test_a_saturated_volume_gives_the_same_whatever_the_clients() -> None:
    result = fit([(float(n), 1000.0) for n in (16, 32, 48, 64)])
    assert result is not None
    assert result.contention == pytest.approx(1.0, abs=0.02)
    assert result.tps(100) == pytest.approx(1000, rel=0.02)
    assert result.follows


def test_runs_that_follow_no_law_are_said_to() -> None:
    result = fit([(float(n), tps) for n, tps in zip((1, 2, 4, 8, 16, 32), (100, 900, 100, 900, 100, 900), strict=True)])
    assert result is not None
    assert not result.follows
    assert fit([(1.0, 10.0), (2.0, 19.0), (4.0, 35.0), (4.0, 36.0)]) is None


@settings(max_examples=40)
@given(
    st.floats(1, 1e4), st.floats(0, 1), st.floats(0, 0.01), st.lists(st.integers(1, 200), min_size=4, max_size=12, unique=True)
)  # fmt: skip
def test_a_fit_lies_on_points_without_noise(
    rate: float, contention: float, coherence: float, clients: list[int]
) -> None:
    true = Scaling(rate, contention, coherence, 0.0, (1.0, 200.0))
    result = fit([(float(n), true.tps(n)) for n in clients])
    assert result is not None
    assert result.deviation < 0.02
    assert 0 <= result.contention <= 1
    assert result.coherence >= 0


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60))
def test_a_box_holds_half_of_the_values_and_its_whiskers_the_rest_but_the_outsiders(values: list[float]) -> None:
    box = box_of(values)
    assert min(values) <= box.low <= box.high <= max(values)
    assert box.first_quartile <= box.median <= box.third_quartile
    assert len(box.outside) + sum(box.low <= value <= box.high for value in values) == box.n == len(values)
    assert not any(box.low <= value <= box.high for value in box.outside)


def test_a_box_is_that_of_a_known_example() -> None:
    box = box_of([1, 2, 3, 4, 5, 6, 7, 8, 9, 40])
    assert (box.first_quartile, box.median, box.third_quartile) == (3.25, 5.5, 7.75)
    assert (box.low, box.high, box.outside) == (1, 9, (40,))


def test_a_map_has_every_transaction_of_the_measure_phase_once(comparison: Comparison) -> None:
    run = comparison.arms[0].replicates[0].figures.run
    cells = latency_map(run)
    by_time: dict[float, float] = {}
    for cell in cells:
        by_time[cell.begin_s] = by_time.get(cell.begin_s, 0.0) + cell.share
        assert cell.low_ms < cell.high_ms
        assert 0 <= cell.begin_s < cell.end_s <= run.record.measure.seconds
    assert len(by_time) <= 40
    assert list(by_time.values()) == pytest.approx([1.0] * len(by_time))
    assert max(cell.end_s for cell in cells) == run.record.measure.seconds


def test_a_run_without_latencies_has_no_map(tmp_path: Path) -> None:
    from dataclasses import replace as changed

    from pgdyno.analysis.compare import summarise

    from .synthetic import GP3, Plan, make_experiment

    comparison = summarise(make_experiment(tmp_path, Plan(arms=(changed(GP3, tps=0.0),), replicates=1, measure_s=20)))
    assert latency_map(comparison.arms[0].replicates[0].figures.run) == []
