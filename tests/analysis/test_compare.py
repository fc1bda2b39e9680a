"""What a comparison says, from run directories alone."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.base.errors import InputError

from .synthetic import CREATED_UNIX_NS, GP3, IO2BX, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

SHORT = Plan(measure_s=20)


def test_figures_are_those_that_were_made_up(comparison: Comparison) -> None:
    gp3, io2bx = comparison.arms
    assert (gp3.label, io2bx.label) == ("gp3:size=100GiB", "io2bx")
    assert gp3.headline.mean == pytest.approx(1000, rel=0.03)
    assert io2bx.headline.mean == pytest.approx(3000, rel=0.03)
    assert gp3.data.iops == pytest.approx(3 * gp3.headline.mean, rel=0.01)
    assert gp3.data.mib_per_s == pytest.approx((gp3.data.iops or 0) * 8192 / 2**20, rel=1e-6)
    assert gp3.data.queue_length == pytest.approx((gp3.data.iops or 0) * (2 / 3 * 9.4e-3 + 1 / 3 * 10.6e-3), rel=0.01)
    assert gp3.data.time_above_limit == pytest.approx({"iops": 0.97, "throughput": 0.0}, abs=1e-3)
    assert io2bx.cpu_share["driver"] == pytest.approx(0.08, abs=1e-6)
    assert gp3.cpu_share["other"] == pytest.approx(0.06, abs=1e-6)
    assert comparison.valid


def test_littles_law_holds_for_the_closed_loop(comparison: Comparison) -> None:
    for arm in comparison.arms:
        mean_s = float((arm.latency_ms.values * arm.latency_ms.counts).sum()) / arm.latency_ms.total / 1e3
        assert arm.headline.mean * mean_s == pytest.approx(32, rel=0.03)


def test_verdict_names_ratio_interval_replicates_and_price(comparison: Comparison) -> None:
    assert comparison.ratios[0].distinguishable
    assert comparison.verdict.startswith("io2bx does 3.0")
    assert "95% CI" in comparison.verdict
    assert "3 replicates" in comparison.verdict
    assert comparison.verdict.endswith("for $1,052.50 instead of $8 a month.")


def test_equal_arms_are_not_distinguishable_and_keep_names_apart(tmp_path: Path) -> None:
    twins = (replace(GP3, spec="gp3:iops=6000", spread=0.03), replace(GP3, spec="gp3:iops=9000", spread=0.03))
    comparison = summarise(make_experiment(tmp_path, SHORT.with_arms(*twins)))
    assert [arm.label for arm in comparison.arms] == ["gp3:iops=6000", "gp3:iops=9000"]
    assert not comparison.ratios[0].distinguishable
    assert "are not distinguishable" in comparison.verdict


def test_the_same_volume_twice_has_two_names(tmp_path: Path) -> None:
    comparison = summarise(make_experiment(tmp_path, SHORT.with_arms(GP3, GP3)))
    assert [arm.label for arm in comparison.arms] == ["gp3:size=100GiB", "gp3:size=100GiB (2)"]


def test_one_replicate_has_a_ratio_but_no_verdict(tmp_path: Path) -> None:
    comparison = summarise(make_experiment(tmp_path, replace(SHORT, replicates=1)))
    ratio = comparison.ratios[0]
    assert ratio.estimate is not None
    assert (ratio.estimate.low, ratio.estimate.high) == (None, None)
    assert not ratio.distinguishable
    assert comparison.verdict.startswith("In a single run of each ")
    assert "distinguishable" not in comparison.verdict


def test_ratio_uses_the_blocks_that_have_both(tmp_path: Path) -> None:
    comparison = summarise(make_experiment(tmp_path, replace(SHORT, missing=frozenset({(2, 1)}))))
    assert comparison.ratios[0].estimate is not None
    assert comparison.ratios[0].estimate.n == 2
    assert comparison.arms[0].headline.n == 3
    assert "1 of the planned replicates" in comparison.arms[1].warnings[0]


def test_invalid_arm_gets_no_verdict_but_keeps_its_figures(tmp_path: Path) -> None:
    late = replace(GP3, late_share=0.2, late_by_us=50_000.0)
    comparison = summarise(make_experiment(tmp_path, SHORT.with_arms(late, IO2BX)))
    assert not comparison.arms[0].valid
    assert comparison.arms[1].valid
    assert comparison.arms[0].headline.n == 3
    assert comparison.verdict == "No verdict on io2bx against gp3:size=100GiB: gp3:size=100GiB is invalid."


def test_an_invalid_arm_that_stands_alone_gets_no_verdict_either(tmp_path: Path) -> None:
    late = replace(GP3, late_share=0.2, late_by_us=50_000.0)
    comparison = summarise(make_experiment(tmp_path, SHORT.with_arms(late)))
    assert not comparison.valid
    assert comparison.verdict == "No verdict on gp3:size=100GiB: it is invalid."


def test_three_arms_are_each_compared_to_each(tmp_path: Path) -> None:
    third = replace(IO2BX, spec="io2bx:iops=32000", tps=3600.0)
    comparison = summarise(make_experiment(tmp_path, SHORT.with_arms(GP3, IO2BX, third)))
    assert [(ratio.index, ratio.to_index) for ratio in comparison.ratios] == [(1, 0), (2, 0)]
    assert comparison.verdict.count("times the transactions of gp3") == 2


def test_repetitions_are_pooled(tmp_path: Path) -> None:
    first = make_experiment(tmp_path, SHORT)
    second = make_experiment(tmp_path, replace(SHORT, created_unix_ns=CREATED_UNIX_NS + 1))
    comparison = summarise(first, second)
    assert [arm.headline.n for arm in comparison.arms] == [6, 6]
    assert comparison.ratios[0].estimate is not None
    assert comparison.ratios[0].estimate.n == 6


def test_repetitions_with_other_numbers_of_replicates_lack_none(tmp_path: Path) -> None:
    first = make_experiment(tmp_path, SHORT)
    second = make_experiment(tmp_path, replace(SHORT, replicates=2, created_unix_ns=CREATED_UNIX_NS + 1))
    for directories in ((first, second), (second, first)):
        comparison = summarise(*directories)
        assert [(arm.headline.n, arm.missing) for arm in comparison.arms] == [(5, 0), (5, 0)]


def test_a_result_is_not_pooled_with_itself(experiment: Path, tmp_path: Path) -> None:
    """Each of its runs would count twice, and the interval would be too narrow."""
    copy = tmp_path / "copy"
    shutil.copytree(experiment, copy)
    for again in (experiment, copy):
        with pytest.raises(InputError, match="are one result") as caught:
            summarise(experiment, again)
        assert caught.value.remedy == "name each result once"


def test_factors_in_another_order_are_not_pooled(experiment: Path, tmp_path: Path) -> None:
    """Arms are numbered by that order, which the hash does not know: runs of different arms would be one arm's."""
    import json

    levels = {"world.volume": ["gp3", "io2bx"], "workload.clients": ["8"]}
    directories = []
    for place, names in enumerate((list(levels), list(reversed(levels)))):
        directories.append(tmp_path / str(place))
        shutil.copytree(experiment, directories[-1])
        record = json.loads((experiment / "experiment.json").read_text())
        record["factors"] = {name: levels[name] for name in names}
        (directories[-1] / "experiment.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="in another order"):
        summarise(*directories)


def test_other_experiments_are_not_pooled(experiment: Path, tmp_path: Path) -> None:
    import json

    other = tmp_path / "other"
    shutil.copytree(experiment, other)
    record = json.loads((other / "experiment.json").read_text())
    (other / "experiment.json").write_text(json.dumps({**record, "experiment_hash": "different"}))
    with pytest.raises(InputError, match="another experiment") as caught:
        summarise(experiment, other)
    assert "one report for each" in caught.value.remedy


def test_experiment_without_a_finished_run_is_refused(tmp_path: Path) -> None:
    nothing = replace(SHORT, replicates=1, missing=frozenset({(1, 0), (1, 1)}))
    with pytest.raises(InputError, match="no finished run"):
        summarise(make_experiment(tmp_path, nothing))


def test_a_copy_of_a_run_is_left_out_and_named(tmp_path: Path) -> None:
    directory = make_experiment(tmp_path, SHORT)
    whole = sorted((directory / "runs").iterdir())
    shutil.copytree(whole[0], whole[0].with_name("00-a-copy"))
    comparison = summarise(directory)
    assert sum(len(arm.replicates) for arm in comparison.arms) == len(whole)
    (named,) = comparison.unreadable
    assert "00-a-copy" in named


def test_unreadable_run_is_named(tmp_path: Path) -> None:
    directory = make_experiment(tmp_path, SHORT)
    broken = min((directory / "runs").iterdir())
    (broken / "run.json").write_text("{")
    comparison = summarise(directory)
    assert len(comparison.unreadable) == 1
    assert broken.name in comparison.unreadable[0]
