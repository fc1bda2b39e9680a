"""Recorded runs beside published figures: what is read, and that nothing on the page is written by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import InputError
from pgdyno.published.experiments import find_results
from pgdyno.published.judge import Sign, Verdict, judge_document
from pgdyno.published.page import html
from pgdyno.published.words import headline, lines
from pgdyno.results.record import Check
from tests.analysis.synthetic import GP3

if TYPE_CHECKING:
    from pgdyno.published.judge import DocumentResult
    from pgdyno.published.library import DocumentLibrary
    from tests.reproduce.conftest import Shelf

SYNTHETIC = 0.05
"""The writer's checkpoints slow the saturated volume more than the other one, and not as much in each part of a run."""


def _judge(shelf: Shelf, books: DocumentLibrary | None = None) -> DocumentResult:
    library = shelf.write() if books is None else books
    [document] = library.documents
    results = find_results(shelf.results, [library.experiment(run) for run in document.run])
    return judge_document(document, results, None)


def test_the_two_arms_are_compared_by_block(shelf: Shelf) -> None:
    shelf.record()
    [result] = _judge(shelf).comparisons
    assert result.ratio is not None
    assert result.ratio.mean == pytest.approx(3.0, rel=SYNTHETIC)
    assert result.ratio.n == 3
    assert result.arms == ("io2bx", "gp3:size=100GiB")
    assert result.limits[1] == "volume IOPS"
    assert (result.sign, result.judgement.verdict, result.judgement.because) == (
        Sign.RIGHT,
        Verdict.DIFFERS,
        "the disks are slow",
    )


def test_another_recorded_run_changes_the_page(shelf: Shelf) -> None:
    directory = shelf.record()
    before = html([_judge(shelf)])
    run = next(path for path in (directory / "runs").glob("*io2bx*r1/run.json"))
    record = json.loads(run.read_text())
    record["account"] = {name: value * 2 for name, value in record["account"].items()}
    run.write_text(json.dumps(record))
    after = html([_judge(shelf)])
    assert before != after
    assert _judge(shelf).comparisons[0].ratio != pytest.approx(3.0, rel=0.1)


def test_another_published_figure_changes_the_verdict(shelf: Shelf) -> None:
    shelf.record()
    assert ": because the disks are slow" in html([_judge(shelf)])
    ratio = _judge(shelf).comparisons[0].ratio
    assert ratio is not None
    other = shelf.write(
        ("value = 208\n", f"value = {100 * ratio.mean:.2f}\n"), ("value = 2.08\n", f"value = {ratio.mean:.2f}\n")
    )
    result = _judge(shelf, other)
    assert result.comparisons[0].judgement.verdict == Verdict.AGREES
    assert "because the disks are slow" not in html([result])
    assert "Of 1 published comparisons 1 agree," in headline([result])


def test_the_extremes_of_what_is_not_stated_can_hold_the_documents_ratio(shelf: Shelf) -> None:
    shelf.record()
    shelf.record("larger", tps=1500)
    result = _judge(shelf)
    [output] = result.comparisons
    assert output.judgement.verdict == Verdict.WITHIN
    assert output.reach == pytest.approx((1.5, 3.0), rel=SYNTHETIC)
    [(point, names)] = result.open_points
    assert (point.what, names) == ("memory", ["b to a"])


def test_without_runs_it_cannot_be_told_and_what_was_not_varied_is_said(shelf: Shelf) -> None:
    result = _judge(shelf)
    [output] = result.comparisons
    assert (output.sign, output.judgement.verdict) == (Sign.UNKNOWN, Verdict.NOT_ANSWERED)
    assert "has no runs of trial.toml" in output.judgement.because
    page = html([result])
    assert "not varied" in page
    assert "<svg" not in page, "there is nothing to draw"


def test_an_invalid_run_gives_no_verdict(shelf: Shelf) -> None:
    shelf.record(low=replace(GP3, checks=(Check(name="balances", ok=False, detail="sum to 1"),)))
    [result] = _judge(shelf).comparisons
    assert result.invalid
    assert result.judgement.verdict == Verdict.NOT_ANSWERED
    assert result.judgement.because.startswith("runs are invalid: ")


def test_one_replicate_gives_no_verdict(shelf: Shelf) -> None:
    shelf.record(replicates=1)
    [result] = _judge(shelf).comparisons
    assert result.judgement.because == "each arm ran only once, so there is no interval"


def test_of_several_results_the_one_with_the_most_runs_is_taken(shelf: Shelf) -> None:
    shelf.record(replicates=1)
    whole = shelf.record(replicates=4, seed=8)
    assert _judge(shelf).results[0].path == whole


def test_an_arm_without_runs_is_named_as_missing(shelf: Shelf) -> None:
    shelf.record()
    [result] = _judge(shelf, shelf.write(("gp3:size=100GiB", "gp3:size=200GiB"))).comparisons
    assert result.judgement.because == "gp3:size=200GiB of trial.toml has no finished run"


def test_the_page_has_the_claims_that_do_not_add_up(shelf: Shelf) -> None:
    assert "why not" not in html([_judge(shelf)])
    page = html([_judge(shelf, shelf.write(("stated = 20\n", 'stated = 18\nbecause = "they count two more"\n')))])
    assert "they count two more" in page
    assert "0 of 1 claims add up" in page


def test_a_folder_that_is_not_there_is_refused(shelf: Shelf) -> None:
    library = shelf.write()
    with pytest.raises(InputError, match="none is not a folder of results"):
        find_results(shelf.results / "none", [library.experiment(library.documents[0].run[0])])


def test_the_text_has_both_ratios_and_what_the_documents_arithmetic_comes_to(shelf: Shelf) -> None:
    shelf.record()
    text = "\n".join(lines([_judge(shelf)]))
    assert "there 2.08 (208 / 100 TPS); here " in text
    assert "Its own arithmetic, recomputed: 1 of 1 claims add up." in text
    assert "larger: " in text and "has no runs of larger.toml" in text
