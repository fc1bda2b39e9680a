"""Dilation taken to one: a made-up truth comes out, with its interval, and where the line cannot hold it is refused."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.analysis.extrapolation import undilated, weights_at_one
from pgdyno.report.document import document
from pgdyno.report.sections import sections
from pgdyno.report.terminal import table

from .synthetic import CLIENTS, GP3, IO2BX, Arm, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

HOST_MS = 6.0
"""Of a transaction, on the host."""
CPU_MS = 0.5
"""CPU time of a transaction in the server; its driver takes a tenth."""
CORES = 2
"""As the writer has them."""
NOISE = 0.01
"""Of a run, as the writer makes it."""


def _arm(base: Arm, dilation: int, storage_ms: float, tps: float | None = None) -> Arm:
    """An arm whose transactions take ``storage_ms`` at the volumes and the rest on the host."""
    rate = CLIENTS * 1000 / (storage_ms + HOST_MS / dilation)
    cpu_share = rate * CPU_MS / 1e3 / (CORES * dilation)
    factors = (("world.volume", base.spec), ("world.dilation", str(dilation)))
    return replace(
        base,
        tps=rate if tps is None else tps,
        dilation=dilation,
        factors=factors,
        name=f"{base.kind}, {dilation}",
        above_iops=0.0,
        read_ms=0.4,
        write_ms=0.4,
        spread=NOISE / 4,
        server_share=cpu_share,
        driver_share=cpu_share / 10,
    )


def _found(tmp_path: Path, *arms: Arm, replicates: int = 4) -> Comparison:
    levels = {name: tuple(dict.fromkeys(dict(arm.factors)[name] for arm in arms)) for name, _ in arms[0].factors}
    plan = Plan(arms=arms, replicates=replicates, measure_s=20, factors=tuple(levels.items()))
    return summarise(make_experiment(tmp_path, plan))


def _both(*dilations: int) -> list[Arm]:
    return [_arm(base, dilation, ms) for base, ms in ((GP3, 20.0), (IO2BX, 8.0)) for dilation in dilations]


def test_the_weights_of_two_dilations_are_the_line_through_both() -> None:
    assert weights_at_one([4, 8]) == pytest.approx([7, -6])
    assert weights_at_one([2, 4]) == pytest.approx([3, -2])
    assert math.fsum(weights_at_one([2, 4, 8])) == pytest.approx(1)


def test_the_made_up_truth_comes_out_and_the_ratio_with_it(tmp_path: Path) -> None:
    slow, fast = _found(tmp_path, *_both(4, 8)).undilated
    for item, storage_ms in ((slow, 20.0), (fast, 8.0)):
        truth = CLIENTS * 1000 / (storage_ms + HOST_MS)
        assert item.because == ""
        assert item.estimate is not None
        assert item.estimate.low is not None and item.estimate.high is not None
        assert item.estimate.low < truth < item.estimate.high
        # The writer's checkpoints scatter too; everything that scatters is multiplied.
        assert (item.estimate.high - item.estimate.low) / truth < 0.35
    ratio = fast.ratio_to(slow)
    assert ratio is not None and ratio.low is not None and ratio.high is not None
    assert ratio.low < 26 / 14 < ratio.high
    assert slow.noise == pytest.approx(math.hypot(7 * 21.5, 6 * 20.75) / 26, rel=0.05)


def test_a_measured_dilation_of_one_is_shown_and_not_used(tmp_path: Path) -> None:
    wrong = _arm(GP3, 1, 20.0, tps=10.0)
    [undilated] = _found(tmp_path, wrong, _arm(GP3, 4, 20.0), _arm(GP3, 8, 20.0)).undilated
    assert undilated.measured is not None
    assert undilated.measured.headline.mean == pytest.approx(10, rel=0.1)
    assert undilated.estimate is not None
    assert undilated.estimate.mean == pytest.approx(CLIENTS * 1000 / 26, rel=0.05)


def test_one_dilation_above_one_is_no_line(tmp_path: Path) -> None:
    assert _found(tmp_path, _arm(GP3, 1, 20.0), _arm(GP3, 4, 20.0)).undilated == ()


def test_without_the_factor_there_is_nothing(comparison: Comparison) -> None:
    assert comparison.undilated == ()
    assert all(section.name != "undilated" for section in sections(comparison))


def test_a_third_dilation_that_contradicts_refuses_it(tmp_path: Path) -> None:
    arms = [_arm(GP3, number, 20.0) for number in (2, 4, 8)]
    [fits] = _found(tmp_path / "fits", *arms).undilated
    assert fits.because == ""
    bent = [arms[0], replace(arms[1], tps=arms[1].tps * 0.9), arms[2]]
    [undilated] = _found(tmp_path / "bent", *bent).undilated
    assert undilated.estimate is None
    assert undilated.because.startswith("dilation 4 contradicts the line of the others by +1")


def test_full_cores_refuse_it(tmp_path: Path) -> None:
    full = replace(_arm(GP3, 8, 20.0), server_share=0.9)
    [undilated] = _found(tmp_path, _arm(GP3, 4, 20.0), full).undilated
    assert undilated.because == "the cores are full at dilation 8"


def test_a_limit_that_binds_at_one_dilation_alone_refuses_it(tmp_path: Path) -> None:
    comparison = _found(tmp_path, _arm(GP3, 4, 20.0), _arm(GP3, 8, 20.0))
    [result] = undilated(comparison.factors, comparison.arms, {0: "commit_latency", 1: "volume_iops"})
    assert result.because == "not the same binds: no limit of storage at 4 and volume IOPS at 8"
    [same] = undilated(comparison.factors, comparison.arms, {0: "volume_iops", 1: "volume_iops"})
    assert same.because == ""


def test_memory_that_is_warmer_at_one_dilation_refuses_it(tmp_path: Path) -> None:
    """The line would take what is read less for the host's part, and multiply it."""
    colder = replace(_arm(GP3, 4, 20.0), read_ms=0.8)
    [undilated] = _found(tmp_path, colder, _arm(GP3, 8, 20.0)).undilated
    assert undilated.estimate is None
    assert re.match(
        r"a transaction reads for \d\.\d+ ms at dilation 4 and for \d\.\d+ ms at 8, so the volumes' part",
        undilated.because,
    )


def test_cpu_time_that_grows_with_the_dilation_refuses_it(tmp_path: Path) -> None:
    arms = [_arm(GP3, 4, 20.0), _arm(GP3, 8, 20.0)]
    assert arms[1].server_share is not None
    cold = replace(arms[1], server_share=arms[1].server_share * 1.25)
    [undilated] = _found(tmp_path, arms[0], cold).undilated
    assert undilated.estimate is None
    assert re.match(
        r"a transaction takes 0\.5\d+ ms of this host's CPU at dilation 4 and 0\.6\d+ ms at 8, so the host's part",
        undilated.because,
    )


def test_cpu_time_of_a_few_runs_that_scatter_refuses_it_too(tmp_path: Path) -> None:
    """Three runs 10 % apart cannot show that it is the same; the line would multiply the difference by up to nine."""
    arms = [replace(_arm(GP3, number, 20.0), spread=0.1) for number in (4, 8)]
    assert arms[1].server_share is not None
    cold = replace(arms[1], server_share=arms[1].server_share * 1.13)
    [undilated] = _found(tmp_path, arms[0], cold, replicates=3).undilated
    assert undilated.estimate is None
    assert "ms of this host's CPU at dilation 4" in undilated.because


def test_a_given_rate_refuses_it(tmp_path: Path) -> None:
    arms = [replace(_arm(GP3, number, 20.0), service_share=0.5) for number in (4, 8)]
    [undilated] = _found(tmp_path, *arms).undilated
    assert undilated.because == "the rate is given, so throughput says nothing of response times"


def test_table_page_and_document_have_it(tmp_path: Path) -> None:
    comparison = _found(tmp_path, *_both(4, 8))
    text = " ".join(table(comparison).split())
    assert "at dilation 1, extrapolated gp3:" in text
    assert "io2bx does 1." in text or "io2bx does 2." in text
    [section] = [section for section in sections(comparison) if section.name == "undilated"]
    assert section.title == "At dilation 1, extrapolated"
    first, second = document(comparison).undilated
    assert first.ratio is None
    assert second.ratio is not None and second.at_one is not None
    assert second.dilations == [4, 8]


def test_intervals_cover_the_truth() -> None:
    """Runs that scatter by one per cent, three blocks: the interval of the figure at dilation 1 covers it in about 95 %."""
    from pgdyno.analysis.statistics import t_interval

    draw = np.random.default_rng(1)
    weights = weights_at_one([4, 8])
    times = np.array([20 + HOST_MS / 4, 20 + HOST_MS / 8])
    covered = 0
    for _ in range(1000):
        at_one = (times * np.exp(draw.normal(0, NOISE, (3, 2)))) @ weights
        estimate = t_interval([1 / value for value in at_one])
        assert estimate.low is not None and estimate.high is not None
        covered += estimate.low <= 1 / (20 + HOST_MS) <= estimate.high
    assert covered / 1000 == pytest.approx(0.95, abs=0.02)
