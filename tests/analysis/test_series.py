"""Lines over time: bins, checkpoints, holes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.series import BINS_MAX, series_of
from pgdyno.results import open_experiment

from .synthetic import GP3, WARMUP_S, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path


def test_mean_of_the_bins_is_the_run(experiment: Path) -> None:
    for run in open_experiment(experiment).runs:
        series = series_of(run)
        tps = [value for value in series.columns["tps"] if value is not None]
        assert len(tps) == len(series.t_s) == 60
        assert sum(tps) / len(tps) == pytest.approx(run.record.account.succeeded / run.record.measure.seconds)
        seen = {name: column for name, column in series.columns.items() if name != "active_sessions"}
        assert all((value or 0) > 0 for column in seen.values() for value in column)
        assert set(series.columns["active_sessions"]) == {None}, "sessions were not sampled"


def test_checkpoints_slow_the_saturated_volume(experiment: Path) -> None:
    run = next(run for run in open_experiment(experiment).runs if run.record.arm.startswith("gp3"))
    series = series_of(run)
    assert [(round(start), round(end or 0)) for start, end in series.checkpoints] == [(13, 27), (43, 57)]
    inside = [v or 0 for t, v in zip(series.t_s, series.columns["tps"], strict=True) if 14 < t < 26]
    outside = [v or 0 for t, v in zip(series.t_s, series.columns["tps"], strict=True) if 28 < t < 42]
    assert max(inside) < min(outside)


def test_long_runs_are_binned(tmp_path: Path) -> None:
    directory = make_experiment(tmp_path, Plan(arms=(replace(GP3, tps=100.0),), replicates=1, measure_s=600))
    series = series_of(open_experiment(directory).runs[0])
    assert series.bin_seconds == 3
    assert len(series.t_s) == 200 <= BINS_MAX


def test_nothing_is_drawn_beyond_the_samples(tmp_path: Path) -> None:
    arm = replace(GP3, lost_seconds=frozenset(range(WARMUP_S + 11, 100)))
    directory = make_experiment(tmp_path, Plan(arms=(arm,), replicates=1, measure_s=20))
    iops = series_of(open_experiment(directory).runs[0]).columns["iops"]
    assert all(value is not None for value in iops[:10])
    assert all(value is None for value in iops[11:])
