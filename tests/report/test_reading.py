"""What a reader meets first, and what can be read in the figures: checkpoints, labels, axes, whole bars, narrow terminals."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.series import Event
from pgdyno.base.text import fitted
from pgdyno.report import figures, trust
from pgdyno.report.figures.parts import EVENT_LANE_PX, EVENT_LETTER_PX, _in_lanes, event_rows
from pgdyno.report.theme import PAPER
from pgdyno.server.settings import tuned
from tests.support.commands import pgdyno

from ..analysis.synthetic import GP3, IO2BX, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.compare import Comparison


def _event(at_s: float, words: str) -> Event:
    return Event(at_s, "fail", "data", words, at_s, at_s + 0.5, "done")


def test_words_of_events_lie_over_no_others_and_inside_the_panel() -> None:
    events = [_event(2 + place * 0.2, "fail data: latency 500 ms for 3 s") for place in range(4)]
    events += [_event(13.5, "modify data to io2bx:size=4GiB,iops=1000"), _event(5, "kill the server")]
    for width_px in (940, 580, 282):
        placed = _in_lanes(event_rows(events, 14), 14, width_px)
        spans = []
        for row in placed:
            length_px = len(row["words"]) * EVENT_LETTER_PX
            at_px = row["t_s"] / 14 * width_px
            begin_px = at_px if row["side"] == "left" else at_px - length_px
            assert begin_px >= 0
            assert begin_px + length_px <= width_px
            spans.append((row["y_px"], begin_px, begin_px + length_px))
        assert not any(
            span is not other and span[0] == other[0] and span[1] < other[2] and other[1] < span[2]
            for span in spans
            for other in spans
        )
        assert all((y_px - 2) % EVENT_LANE_PX == 0 and y_px < 78 for y_px, _, _ in spans)
    assert len(_in_lanes(event_rows(events, 14), 14, 940)) == len(events)


@pytest.fixture(scope="module")
def eventless(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return summarise(make_experiment(tmp_path_factory.mktemp("reading"), Plan(arms=(GP3, IO2BX), measure_s=10)))


def test_no_line_touches_the_upper_edge_of_its_panel(eventless: Comparison) -> None:
    from pgdyno.report.response import _lines

    drawn = figures.timeline(_lines(eventless), eventless.arms, 1000, PAPER)
    checked = 0
    for scale, values in _linear_scales(drawn, drawn["datasets"]):
        assert scale["domain"][1] >= 1.05 * max(values)
        checked += 1
    assert checked >= 3


def _linear_scales(drawn: dict[str, Any], datasets: dict[str, Any]) -> list[tuple[dict[str, Any], list[float]]]:
    linear_scales = []
    for panel in drawn["vconcat"]:
        for layer in panel.get("layer", ()):
            y = layer.get("encoding", {}).get("y", {})
            scale = y.get("scale") if isinstance(y, dict) else None
            if not scale or scale.get("type") == "log" or "domain" not in scale or y.get("field") != "value":
                continue
            values = [row["value"] for row in datasets[layer["data"]["name"]] if row["value"]]
            if values:
                linear_scales.append((scale, values))
    return linear_scales


def test_the_bars_of_cpu_are_the_whole_machine(eventless: Comparison) -> None:
    drawn = figures.cpu(eventless.arms, 1000, PAPER)
    rows = [row for rows in drawn["datasets"].values() for row in rows]
    for arm in eventless.arms:
        total = {row["part"]: row["value"] for row in rows if row["row"] == arm.index}
        assert sum(total.values()) == pytest.approx(1.0, abs=0.003)


def test_that_no_checkpoint_began_is_among_what_to_keep_in_mind(tmp_path: Path) -> None:
    comparison = summarise(make_experiment(tmp_path, Plan(measure_s=10)))
    for arm in comparison.arms:
        for replicate in arm.replicates:
            rates = replicate.figures.server.rates
            rates.update(checkpoints=0.0, wal_mib_per_s=3.0)
    assert any("no checkpoint began" in text for text in trust.warnings(comparison))
    for arm in comparison.arms[:1]:
        for replicate in arm.replicates:
            replicate.figures.server.rates["checkpoints"] = 1.0
    assert not any("no checkpoint began" in text for text in trust.warnings(comparison))


def test_pgdynos_own_server_times_its_reads() -> None:
    assert tuned(1 << 30)["track_io_timing"] == "on"


@pytest.mark.parametrize("width", [32, 40, 60, 80, 120])
def test_tables_keep_within_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch, engine: Path) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in (("catalog", "volumes"), ("catalog", "show", "gp3", "gp2"), ("catalog", "instances")):
        shown = pgdyno(*arguments, code=0).out
        longest = max(shown.splitlines(), key=len)
        assert len(longest) <= max(width, max(len(word) for word in shown.split()) + 4), longest
    monkeypatch.delenv("COLUMNS")
    assert len(max(pgdyno("catalog", "show", "gp3", "gp2", code=0).out.splitlines(), key=len)) > 120


def test_a_report_in_a_pipe_is_as_wide_as_columns_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = make_experiment(tmp_path, Plan(arms=(replace(GP3, spec="gp3"), IO2BX), replicates=2, measure_s=10))
    monkeypatch.setenv("COLUMNS", "50")
    lines = pgdyno("report", directory, code=0).out.splitlines()
    assert max(len(line) for line in lines if not line.startswith("report: ")) <= 50


def test_wide_tables_lose_no_word_when_they_are_fitted() -> None:
    rows = [["name", "why", "n"], ["a-name", "several words that take room " * 3, "12"], ["b", "short", "3"]]
    for width in (200, 60, 20):
        text = "\n".join(fitted(rows, width, (0, 1)))
        for row in rows[1:]:
            for word in " ".join(row).split():
                assert word in text, (width, word)
    assert json.dumps(fitted(rows, None, (0, 1))) == json.dumps(fitted(rows, 1000, (0, 1)))
