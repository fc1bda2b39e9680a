"""Figures of runs and arms: what is merged, what is averaged, and what was not recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.analysis.metric import figure_of, lines_of
from pgdyno.analysis.run import SECONDS, TPS, headline_of
from pgdyno.analysis.series import series_of
from pgdyno.results.record import DriverRecord

from .synthetic import CLIENTS, GP3, GP3_WAITS, IO2BX, REAL, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """gp3 with a WAL volume, waits and a driver that told how long it took to connect; io2bx without."""
    driver = DriverRecord(engine="native", connect_ms=41.5)
    gp3 = replace(GP3, waits=GP3_WAITS, driver=driver, others=(("wal", IO2BX),))
    return summarise(make_experiment(tmp_path_factory.mktemp("watched"), Plan(arms=(gp3, IO2BX), measure_s=20)))


def test_a_mean_is_clients_over_rate_and_a_percentile_that_of_all_runs_together(watched: Comparison) -> None:
    arm = watched.arms[0]
    figures = {name: line.of_arms[0] for name, line in watched.figures.items()}
    mean, p99 = figures["latency_ms_mean"], figures["latency_ms_p99"]
    assert mean is not None
    assert p99 is not None
    assert mean.value == pytest.approx(
        CLIENTS / arm.headline.mean * 1000, rel=0.01
    )  # Little's law, of seconds that scatter
    assert p99.value == arm.latency_ms.percentile(99)
    assert p99.of_runs.n == len(arm.replicates)


def test_volumes_have_the_mean_latencies_that_their_counters_say(watched: Comparison) -> None:
    figures = {name: line.of_arms for name, line in watched.figures.items()}
    values = {
        name: [None if of_arm is None else of_arm.value for of_arm in of_arms] for name, of_arms in figures.items()
    }
    assert values["read_ms_mean"] == pytest.approx([GP3.read_ms, IO2BX.read_ms], rel=1e-6)
    assert values["write_ms_mean"] == pytest.approx([GP3.write_ms, IO2BX.write_ms], rel=1e-6)
    assert values["wal.write_ms_mean"] == [pytest.approx(IO2BX.write_ms, rel=1e-6), None]
    assert "wal.read_ms_mean" not in values, "nothing was read from it"


def test_connections_and_active_sessions_are_of_the_arms_that_recorded_them(watched: Comparison) -> None:
    connect, active = watched.figures["connect_ms"].of_arms, watched.figures["active_sessions"].of_arms
    assert connect[0] is not None
    assert connect[0].value == 41.5
    assert active[0] is not None
    number = sum(mean for kind, _, mean in GP3_WAITS if kind != "Client")
    assert active[0].value == pytest.approx(number, rel=0.01)
    assert (connect[1], active[1]) == (None, None)


def test_a_server_without_devices_has_no_figures_of_a_volume(tmp_path: Path) -> None:
    lines = lines_of(summarise(make_experiment(tmp_path, Plan(arms=(REAL,), replicates=1, measure_s=20))).arms)
    assert "latency_ms_mean" in lines
    assert not {"iops", "read_ms_mean", "connect_ms"} & lines.keys()
    assert figure_of(summarise(make_experiment(tmp_path / "one", Plan(replicates=1, measure_s=20))).arms[0], lines["active_sessions"].metric) is None  # fmt: skip


def test_courses_have_latencies_sessions_and_cpu(watched: Comparison) -> None:
    columns = series_of(watched.arms[0].replicates[0].figures.run).columns
    for name, expected in (("read_ms", GP3.read_ms), ("wal.write_ms", IO2BX.write_ms), ("active_sessions", 29.1)):
        assert [value for value in columns[name] if value is not None] == pytest.approx([expected] * 20, rel=0.05), name
    assert columns["server_cpu_share"] == pytest.approx((0.12 + GP3.tps / 10_000,) * 20, rel=0.01)
    cpu, mean = columns["cpu_share"], columns["latency_ms_mean"]
    assert all(value is not None and 0 < value <= 1 for value in cpu)
    for at, rate in zip(mean, columns["tps"], strict=True):
        assert at == pytest.approx(CLIENTS / (rate or 0) * 1000, rel=0.1)  # the mean of a thousand draws


def test_a_record_names_its_headline_and_an_old_one_has_that_of_its_kind(watched: Comparison) -> None:
    record = watched.arms[0].replicates[0].figures.record
    assert headline_of(record) is TPS
    assert headline_of(record.model_copy(update={"metric": "seconds"})) is SECONDS
    assert SECONDS.of(record) == pytest.approx(20.0)
    assert (SECONDS.apart(0.5), TPS.apart(0.5), SECONDS.gain(0.5), TPS.gain(0.5)) == ("less", "fewer", 2.0, 0.5)
