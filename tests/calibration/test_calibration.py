"""Every case of tools/calibration: 200 draws with bounds that chance does not break, and all of them in `make bench`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from tools.calibration import __main__ as command
from tools.calibration import page, series
from tools.calibration.cases import Case, Counted, cases, count

DRAWS = 200
CHANCE = 1e-4
"""What chance breaks a bound with, were the seed not fixed: each case has two of them, and there are some thirty cases."""
ANSWERED_MIN = 0.8
"""An interval that is given only where it is easy would be calibrated by silence."""


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.group}: {case.name}")
def test_case_is_within_its_bounds_by_all_that_200_draws_can_say(case: Case) -> None:
    result = count(case, DRAWS)
    assert result.answered >= ANSWERED_MIN * DRAWS
    low, high = (float(binom.ppf(chance, result.answered, share))
                 for chance, share in ((CHANCE, case.low), (1 - CHANCE, case.high)))  # fmt: skip
    assert low <= result.counted <= high, f"{result.share:.1%} of {result.answered}"


@pytest.mark.bench
def test_every_case_holds_and_the_page_says_so() -> None:
    result = command.measure(command.DRAWS)
    command.PAGE.write_text(page.render(result), encoding="utf-8")
    assert [item.case.name for item in result if not item.holds] == []
    assert all(item.drawn >= 2000 and item.answered >= ANSWERED_MIN * item.drawn for item in result)


def test_a_case_that_is_wrong_is_seen() -> None:
    """An interval of half the width covers two thirds: 200 draws must tell."""
    wrong = Case("group", "half as wide", lambda rng: bool(abs(rng.normal()) < 1.0), 0.93, 0.97)
    result = count(wrong, DRAWS)
    assert result.counted < binom.ppf(CHANCE, DRAWS, wrong.low)
    assert not result.holds
    assert "**no**" in page.render([result])


def test_what_was_not_answered_is_not_counted() -> None:
    never = count(Case("group", "never", lambda _: None, 0.0, 1.0), 10)
    assert (never.drawn, never.answered, never.counted) == (10, 0, 0)
    assert math.isnan(never.share)
    assert not never.holds


def test_a_case_comes_out_the_same_each_time() -> None:
    case = cases()[0]
    assert count(case, 20) == count(case, 20)
    assert isinstance(count(case, 1), Counted)


def test_series_have_the_truth_that_they_are_said_to_have() -> None:
    rng = np.random.default_rng(1)
    n = 200_000
    assert float(series.level(rng, n).mean()) == pytest.approx(1.0, abs=0.001)
    assert float(series.two_speeds(rng, n).mean()) == pytest.approx(1.0, abs=0.005)
    assert float(series.sawtooth(rng, n)[0].mean()) == pytest.approx(series.sawtooth_truth(), abs=0.002)
    noise = series.correlated(rng, n, 0.8, 0.05)
    assert float(noise.std()) == pytest.approx(0.05, rel=0.03)
    assert float(np.corrcoef(noise[1:], noise[:-1])[0, 1]) == pytest.approx(0.8, abs=0.01)
