"""The rules of a verdict, from ratios alone."""

from __future__ import annotations

import pytest

from pgdyno.analysis.statistics import Estimate
from pgdyno.published.judge import PublishedRatio, Sign, Verdict, compare_signs, judge_ratio, sign_of_order

CAUSE = "the disks are slow"


def _estimate(low: float | None, mean: float, high: float | None) -> Estimate:
    return Estimate(mean, low, high, 1 if low is None else 3)


@pytest.mark.parametrize(
    ("there", "here", "word", "because"),
    [
        (2.08, (1.9, 2.0, 2.1), Verdict.AGREES, ""),
        (2.08, (2.3, 2.4, 2.5), Verdict.DIFFERS, CAUSE),
        (2.08, (0.97, 1.0, 1.03), Verdict.DIFFERS, CAUSE),
        (2.08, (0.5, 1.5, 4.0), Verdict.NOT_ANSWERED, "includes both 1 and the document's ratio"),
        (1.03, (0.99, 1.01, 1.04), Verdict.AGREES, ""),
        (1.03, (0.90, 1.01, 1.13), Verdict.NOT_ANSWERED, "includes both 1 and the document's ratio"),
        (1.03, (0.99, 1.00, 1.01), Verdict.DIFFERS, CAUSE),
        (2.08, (None, 2.08, None), Verdict.NOT_ANSWERED, "there is no interval"),
    ],
)
def test_the_verdict_follows_from_the_interval(
    there: float, here: tuple[float | None, float, float | None], word: Verdict, because: str
) -> None:
    result = judge_ratio(PublishedRatio(there), _estimate(*here), [], CAUSE)
    assert result.verdict == word
    assert because in result.because
    assert bool(because) is bool(result.because)


def test_what_differs_without_a_measured_cause_says_so() -> None:
    here = _estimate(2.9, 3.0, 3.1)
    assert judge_ratio(PublishedRatio(2.0), here, [], "").sentence() == "differs: the cause is not known"
    assert judge_ratio(PublishedRatio(2.0), here, [], CAUSE).sentence(" (once)") == f"differs (once): because {CAUSE}"


def test_a_ratio_between_the_extremes_of_what_is_unstated_agrees_within_that() -> None:
    here, far, near = _estimate(2.9, 3.0, 3.1), _estimate(1.4, 1.5, 1.6), _estimate(2.4, 2.5, 2.6)
    assert judge_ratio(PublishedRatio(2.0), here, [far], CAUSE).verdict == Verdict.WITHIN
    assert judge_ratio(PublishedRatio(2.0), here, [near], CAUSE).verdict == Verdict.DIFFERS
    assert judge_ratio(PublishedRatio(3.5), here, [far], CAUSE).verdict == Verdict.DIFFERS


def test_about_widens_the_documents_ratio() -> None:
    here = _estimate(2.05, 2.1, 2.15)
    assert judge_ratio(PublishedRatio(2.0), here, [], CAUSE).verdict == Verdict.DIFFERS
    assert judge_ratio(PublishedRatio(2.0, 0.05), here, [], CAUSE).verdict == Verdict.AGREES


@pytest.mark.parametrize(
    ("there", "here", "sign"),
    [
        (2.0, (1.1, 1.2, 1.3), Sign.RIGHT),
        (2.0, (0.7, 0.8, 0.9), Sign.WRONG),
        (0.9, (0.7, 0.8, 0.9), Sign.RIGHT),
        (0.9, (1.1, 1.2, 1.3), Sign.WRONG),
        (2.0, (0.9, 1.2, 1.3), Sign.OPEN),
        (2.0, (None, 1.2, None), Sign.OPEN),
        (1.0, (1.1, 1.2, 1.3), Sign.NONE),
    ],
)
def test_a_sign_is_right_where_the_interval_is_on_the_documents_side(
    there: float, here: tuple[float | None, float, float | None], sign: Sign
) -> None:
    assert compare_signs(PublishedRatio(there), _estimate(*here)) == sign


@pytest.mark.parametrize(
    ("steps", "sign"),
    [
        ((Sign.RIGHT, Sign.RIGHT), Sign.RIGHT),
        ((Sign.RIGHT, Sign.OPEN), Sign.OPEN),
        ((Sign.OPEN, Sign.WRONG), Sign.WRONG),
        ((Sign.UNKNOWN, Sign.OPEN), Sign.UNKNOWN),
    ],
)
def test_an_order_is_as_right_as_its_worst_step(steps: tuple[Sign, ...], sign: Sign) -> None:
    assert sign_of_order(steps) == sign
