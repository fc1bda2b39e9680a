"""Cost and durability on the page, in the document, in the terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.base.text import money
from pgdyno.report import document, table
from pgdyno.report.cost import cost_rows, loss_words
from pgdyno.report.page import html
from pgdyno.report.terminal import WIDTH_MIN

from ..analysis.synthetic import GP3, REAL, Plan, make_experiment
from ..analysis.test_cost import EIGHT_GP3, TWO_IO2
from .test_many import plain

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Eight gp3 against two io2 Block Express."""
    plan = Plan(measure_s=20).with_arms(EIGHT_GP3, TWO_IO2)
    return summarise(make_experiment(tmp_path_factory.mktemp("published"), plan))


def test_rows_have_the_published_figures(published: Comparison) -> None:
    document = {row.title: row.cells for row in cost_rows(published)}
    assert document["US$ a month"] == ("$1,375.36", "$5,408")
    assert document["US$ a month at 10,192 GiB"] == ("$1,375.36", "$6,170")
    assert document["lost within a year"] == ("0.8 % to 1.6 %", "0.002 %")
    assert document["on the cost front"] == ("TPS and p99", "TPS and p99")


def test_page_has_a_section_with_what_to_know(published: Comparison) -> None:
    words = plain(html(published))
    assert words.index("Cost and durability") < words.index("How far to trust this")
    assert "The arms differ in capacity. At 10,192 GiB each is as large as the largest" in words
    assert "a RAID-0 needs every volume" in words


@pytest.mark.parametrize("width", [100, 80, 60, WIDTH_MIN])
def test_terminal_says_it_at_every_width(published: Comparison, width: int) -> None:
    text = table(published, width=width)
    assert max(map(len, text.splitlines())) <= width, text
    words = " ".join(text.split())
    assert "cost and durability of the volumes (equal: at 10,192 GiB)" in words
    for figure in ("$1,375.36", "$5,408", "$6,170", "0.8 % to 1.6 %"):
        assert figure in words


def test_document_has_every_figure(published: Comparison) -> None:
    gp3, io2 = (arm.cost for arm in document(published).arms)
    assert gp3.loss_per_year is not None
    assert gp3.loss_per_year.high == pytest.approx(0.0159, abs=5e-5)
    assert io2.usd_per_month_at_equal_size == 6170.0
    assert io2.equal_size_bytes == 8 * 1274 << 30
    assert gp3.front == {"tps": True, "latency_ms_p99": True}


def test_an_arm_alone_has_no_front_and_equal_arms_no_equal_size(tmp_path: Path) -> None:
    alone = summarise(make_experiment(tmp_path / "1", Plan(arms=(GP3,), measure_s=20)))
    assert [row.title for row in cost_rows(alone)] == [
        "US$ a month",
        "US$ per million transactions",
        "lost within a year",
    ]
    twice = summarise(make_experiment(tmp_path / "2", Plan(arms=(GP3, GP3), measure_s=20)))
    assert not any("GiB" in row.title for row in cost_rows(twice))


def test_a_server_of_which_nothing_is_known_has_no_such_section(tmp_path: Path) -> None:
    comparison = summarise(make_experiment(tmp_path, Plan(arms=(REAL,), measure_s=20)))
    assert cost_rows(comparison) == []
    assert "Cost and durability" not in plain(html(comparison))
    assert "cost and durability" not in table(comparison)


def test_an_instance_store_ends_with_its_instance(tmp_path: Path) -> None:
    arm = replace(GP3, spec="instance-store", kind="instance-store", usd_per_month=None)
    comparison = summarise(make_experiment(tmp_path, Plan(arms=(arm,), measure_s=20)))
    assert loss_words(comparison.costs[0]) == "with its instance"


@pytest.mark.parametrize(
    ("usd", "text"), [(None, "–"), (0.00304, "$0.00304"), (8.0, "$8"), (12.5, "$12.50"), (1375.36, "$1,375.36")]
)
def test_money(usd: float | None, text: str) -> None:
    assert money(usd) == text
