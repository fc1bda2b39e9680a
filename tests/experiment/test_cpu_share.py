"""A share of the CPUs' time, as where other customers use the same vCPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.binding.evidence import evidence_of
from pgdyno.analysis.compare import summarise
from pgdyno.base.errors import InputError
from pgdyno.report.page import html
from tests.analysis.synthetic import IO2BX, Plan, make_experiment
from tests.experiment.documents import experiment

if TYPE_CHECKING:
    from pathlib import Path


def test_it_is_a_share_and_an_experiment_without_it_is_as_before() -> None:
    for wrong in (0, 0.01, 1.5, "half"):
        with pytest.raises(InputError, match=r"instance\.cpu_share"):
            experiment(instance={"cpu_share": wrong})
    assert experiment().identity() == experiment(instance={"cpu_share": 1}).identity()
    assert "cpu_share" not in experiment().identity()["instance"]
    half = experiment(instance={"cpu_share": 0.5})
    assert half.identity()["instance"]["cpu_share"] == 0.5
    both = experiment(factors={"instance.cpu_share": [1, 0.5]})
    assert [arm.instance.cpu_share for arm in both.arms] == [1.0, 0.5]


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_server_is_as_busy_as_it_may_be(tmp_path: Path, share: float) -> None:
    arm = replace(IO2BX, server_share=0.45, cpu_share=share)
    comparison = summarise(make_experiment(tmp_path, Plan(replicates=1).with_arms(arm)))
    [replicate] = comparison.arms[0].replicates
    seconds = evidence_of(replicate.figures).seconds
    busy = [item.cpu.server_busy for item in seconds if item.cpu is not None and item.cpu.server_busy is not None]
    assert sum(busy) / len(busy) == pytest.approx(0.45 / share, rel=0.05)
    assert ("0-1, 50 % of their time" in html(comparison)) is (share == 0.5)
