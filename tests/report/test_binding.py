"""The limit that binds, on the page, in the terminal and in the document."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.binding.remedy import Remedy
from pgdyno.analysis.binding.rules import LIMITS
from pgdyno.analysis.binding.verdict import BindingVerdict
from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.analysis.run import TPS
from pgdyno.report import binding, document, table
from pgdyno.report.binding import binding_lines, binding_rows, limit_colours
from pgdyno.report.page import html
from pgdyno.report.terminal import WIDTH, WIDTH_MIN

from ..analysis.synthetic import GP3, GP3_WAITS, IO2BX, IO2BX_WAITS, REAL, Plan, make_experiment
from .test_page import outline

if TYPE_CHECKING:
    from pathlib import Path

# Half of the time above its limit makes a checkpoint cost little, so that nearly all seconds are at 3,000 IOPS.
CAPPED = replace(GP3, waits=GP3_WAITS, above_iops=0.5, spread=0.0, tps=1020)


@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """A saturated gp3 beside an io2bx that is not."""
    plan = Plan(measure_s=30, replicates=2).with_arms(CAPPED, replace(IO2BX, waits=IO2BX_WAITS))
    return summarise(make_experiment(tmp_path_factory.mktemp("capped"), plan))


def test_page_has_a_bar_with_words_for_each_arm(capped: Comparison) -> None:
    text = html(capped)
    outline(text)
    section = text[text.index('<section id="binding">') : text.index('<section id="throughput">')]
    labels = re.findall(r'class="strip" role="img" aria-label="([^"]+)"', section)
    assert [label.partition(": ")[0] for label in labels] == ["gp3:size=100GiB", "io2bx"]
    assert labels[0].startswith("gp3:size=100GiB: volume IOPS 9")
    widths = [int(item) for item in re.findall(r'style="flex:(\d+)"', section)]
    assert sum(widths) == 2 * 30
    assert "<b>volume IOPS</b> (confidence: high)" in section
    assert "IOPS of 3,000 bought</li>" in section


def test_terminal_has_a_line_for_each_arm_and_the_steps_of_all(capped: Comparison) -> None:
    text = table(capped)
    assert all(len(line) <= WIDTH for line in text.splitlines())
    lines = [line for line in text.splitlines() if line.startswith(("bound by: ", "step "))]
    assert [line.partition(": ")[0] for line in lines] == ["bound by", "bound by", "step 1", "step 2"]
    assert lines[0].startswith("bound by: gp3:size=100GiB: volume IOPS in 9")
    assert all(len(line) <= WIDTH_MIN for line in table(capped, width=WIDTH_MIN).splitlines())


def test_document_has_the_verdict_of_each_run(capped: Comparison) -> None:
    gp3 = document(capped).arms[0].binding
    assert (gp3.limit, gp3.title, gp3.volume, gp3.confidence) == ("volume_iops", "volume IOPS", "data", "high")
    assert gp3.shares["volume_iops"] > 0.8
    assert gp3.not_seen == []
    assert gp3.evidence
    assert gp3.remedy is not None
    assert [run.replicate for run in gp3.runs] == [1, 2]
    for run in gp3.runs:
        assert (run.seconds[0].begin_s, run.seconds[-1].end_s) == (0, 30)
        assert all(item.end_s == other.begin_s for item, other in zip(run.seconds, run.seconds[1:], strict=False))


def test_nothing_is_concluded_from_the_numbers_of_an_invalid_arm(tmp_path: Path) -> None:
    plan = Plan(measure_s=30, replicates=2).with_arms(
        replace(CAPPED, other_share=0.60), replace(IO2BX, waits=IO2BX_WAITS)
    )
    comparison = summarise(make_experiment(tmp_path, plan))
    assert not comparison.arms[0].valid
    assert {text.partition(":")[0] for _, text in binding_lines(comparison)} == {"io2bx"}
    first = binding_rows(comparison)[0]
    assert (first.limit, {part.colour for part in first.stretches}) == ("not named (invalid)", {""})
    assert "its numbers are invalid, so no limit and no remedy are named" in html(comparison)
    made = document(comparison).arms[0].binding
    assert (made.limit, made.shares, made.evidence, made.remedy) == (None, {}, [], None)
    assert {item.limit for one_run in made.runs for item in one_run.seconds} == {None}


def test_what_was_not_seen_is_told_instead_of_a_limit(tmp_path: Path) -> None:
    comparison = summarise(make_experiment(tmp_path, Plan(arms=(replace(REAL, waits=()),), replicates=1, measure_s=20)))
    (line,) = [text for word, text in binding_lines(comparison) if word == "bound by: "]
    assert line.startswith("service=bank: unknown: what sessions waited for was not sampled; no block device")
    assert "Not seen: what sessions waited for was not sampled; " in html(comparison)
    made = document(comparison).arms[0].binding
    assert (made.limit, made.confidence, made.remedy) == (None, "unknown", None)


def test_many_arms_are_counted(tmp_path: Path) -> None:
    arms = [replace(CAPPED, spec=f"gp3:size={size}GiB") for size in range(100, 107)]
    arms.append(replace(IO2BX, waits=(("Lock", "transactionid", 29.0),)))
    comparison = summarise(make_experiment(tmp_path, Plan(measure_s=20, replicates=1).with_arms(*arms)))
    results = [text for word, text in binding_lines(comparison) if word == "bound by: "]
    assert [text.partition(":")[0] for text in results] == ["volume IOPS", "locks"]
    assert results[0].startswith("volume IOPS: 7 of 8 arms, as ")
    text = html(comparison)
    outline(text)
    assert 'class="strip"' not in text


def test_words_of_a_verdict() -> None:
    sure = BindingVerdict("volume_iops", "wal", "high", {"volume_iops": 0.97})
    assert binding.verdict_words(sure) == "volume IOPS (wal) in 97 % of the seconds"
    assert binding.verdict_words(replace(sure, confidence="low")).startswith("probably volume IOPS (wal)")
    mixed = BindingVerdict(None, None, "unknown", {"locks": 0.3, "server_cpu": 0.25})
    assert binding.verdict_words(mixed) == "unknown (locks 30 % and server CPU 25 % of the seconds)"


@pytest.mark.parametrize(
    ("remedy", "words"),
    [
        (
            Remedy("buy gp3", "gp3", 15.5, 7.5, 1.5, "server_cpu"),
            "buy gp3; $15.50 a month, $7.50 more; up to 1.50 times the transactions; the next limit is server CPU",
        ),
        (Remedy("buy gp3", "gp3", 8.0, -24.0), "buy gp3; $8 a month, $24 less"),
        (Remedy("buy gp3", "gp3", 8.0, 0.0), "buy gp3; $8 a month, the same as now"),
        (Remedy("take a c4.large", "c4.large", 73.0), "take a c4.large; $73 a month"),
        (Remedy("fewer checkpoints", usd_more_per_month=0.0, tps_ratio_max=1.7), "fewer checkpoints; no purchase; up to 1.70 times the transactions"),
        (Remedy("shorter transactions"), "shorter transactions"),
    ],
)  # fmt: skip
def test_words_of_a_remedy(remedy: Remedy, words: str) -> None:
    assert binding.remedy_words(remedy, TPS) == words


def test_every_limit_has_a_colour_of_its_own(capped: Comparison) -> None:
    assert len(set(binding.COLOURS)) == len(LIMITS)
    assert limit_colours(capped)[0][1] == "volume IOPS"
