"""Minutes of the wall clock over samples of another clock."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.advise.metrics.cloudwatch import MINUTE_S, minutes, require_period
from pgdyno.base.errors import InputError

from .samples import ANCHOR, SECOND_NS, make_samples

BEGIN_UNIX_S = ANCHOR.unix_ns // SECOND_NS


def test_minutes_end_where_the_wall_clocks_do() -> None:
    result = minutes(make_samples(180))
    assert [item.unix_s % MINUTE_S for item in result] == [0, 0, 0, 0]
    assert [item.seconds for item in result] == [49, 60, 60, 11]
    assert [item.whole for item in result] == [False, True, True, False]


def test_a_phase_has_minutes_of_its_own() -> None:
    begin_ns = ANCHOR.monotonic_ns + 20 * SECOND_NS
    result = minutes(make_samples(180), begin_ns=begin_ns, end_ns=begin_ns + 130 * SECOND_NS)
    assert [item.seconds for item in result] == [60, 60, 10]
    assert [item.whole for item in result] == [True, True, False]
    assert result[0].unix_s == BEGIN_UNIX_S + 20


def test_a_minute_whose_sample_came_late_is_no_whole_one() -> None:
    begin_ns = ANCHOR.monotonic_ns - SECOND_NS
    assert [minute.whole for minute in minutes(make_samples(59), begin_ns=begin_ns)] == [False]


@given(seconds=st.floats(0.5, 4000), offset_s=st.floats(-100, 100))
def test_minutes_divide_what_was_sampled_without_a_gap(seconds: float, offset_s: float) -> None:
    samples = make_samples(seconds)
    begin_ns = samples.begin_ns + round(offset_s * SECOND_NS)
    for item, first_ns in ((minutes(samples), samples.begin_ns), (minutes(samples, begin_ns=begin_ns), begin_ns)):
        first_ns = max(first_ns, samples.begin_ns)
        assert sum(element.end_ns - element.begin_ns for element in item) == max(0, samples.end_ns - first_ns)
        assert all(element.end_ns == following.begin_ns for element, following in pairwise(item))
        assert all(element.seconds <= MINUTE_S for element in item)
        assert all(element.whole for element in item[1:-1])


@pytest.mark.parametrize("period_s", [0, -60, 1, 59, 90])
def test_a_period_that_minutes_do_not_fill_is_refused(period_s: int) -> None:
    with pytest.raises(InputError, match="is not a valid period"):
        require_period(period_s)
    assert require_period(300) == 300
