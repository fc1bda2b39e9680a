"""The instance above the volumes: its figures, and where a report has them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.report.configuration import resolved_volumes
from pgdyno.report.document import document
from pgdyno.report.page import html
from pgdyno.report.summary import summary_rows
from pgdyno.report.volumes import VOLUME_COLUMNS, volume_rows

from .synthetic import GP3, IO2BX, PAGE_BYTES, WARMUP_S, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

BOUND = replace(IO2BX, instance_above_iops=0.4)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """A volume without an instance's limits, and one that waits for them 40 % of the time."""
    directory: Path = make_experiment(tmp_path_factory.mktemp("instance"), Plan().with_arms(GP3, BOUND))
    return summarise(directory)


def test_an_arm_without_limits_has_none(comparison: Comparison) -> None:
    assert comparison.arms[0].instance is None
    assert comparison.arms[0].above_limit_share == pytest.approx(GP3.above_iops, rel=0.01)


def test_its_figures_are_those_of_the_measure_phase(comparison: Comparison) -> None:
    arm = comparison.arms[1]
    assert arm.instance is not None and arm.data.iops is not None
    # Both count the same requests; their samples lie up to 0.2 ms apart.
    assert arm.instance.iops == pytest.approx(arm.data.iops, rel=0.001)
    assert arm.instance.mib_per_s == pytest.approx(arm.data.iops * PAGE_BYTES / 2**20, rel=0.001)
    assert arm.instance.time_above_limit == pytest.approx({"iops": 0.4, "throughput": 0.0})
    assert arm.instance.reserve == pytest.approx({"throughput": 1 - (WARMUP_S + Plan().measure_s) / 100})
    assert arm.above_limit_share == pytest.approx(0.4)


def test_it_is_a_row_below_its_volumes(comparison: Comparison) -> None:
    rows = volume_rows(comparison)
    assert [row.title for row in rows] == ["data, gp3", "data, io2bx", "instance, m2.2xlarge"]
    assert {len(row.cells) for row in rows} == {len(VOLUME_COLUMNS)}
    assert rows[-1].cells[0].endswith("(4,000)") and rows[-1].cells[1].endswith("(60 to 119)")
    assert rows[-1].cells[3] == "IOPS 40 %"
    shown = {row.title: row.cells for row in summary_rows(comparison) if row.title.startswith("instance")}
    assert shown["instance: above limit"][1] == "IOPS 40 %"
    assert shown["instance: reserve of throughput at the end"][1] == "30 %"
    assert "instance: reserve of IOPS at the end" not in shown, "it has none"
    assert "instance, m2.2xlarge" in html(comparison)


def test_an_array_is_shown_without_its_members_tables(tmp_path: Path) -> None:
    array = replace(GP3, spec="4xgp3:size=100GiB")
    shown = dict(resolved_volumes(summarise(make_experiment(tmp_path, Plan().with_arms(array, GP3))))[0][2])
    assert shown["array, columns"] == "4" and shown["array, chunk kib"] == "512"
    assert not [name for name, value in shown.items() if "member" in name or len(value) > 60]


def test_the_document_has_it(comparison: Comparison) -> None:
    first, second = document(comparison).arms
    assert first.instance is None
    assert second.instance is not None
    assert (second.instance.type, second.instance.time_above_limit["iops"]) == ("m2.2xlarge", pytest.approx(0.4))
