"""Who is on the cost front, with and without noise."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.analysis.cost import ParetoPoint, front


def offered(index: int, usd: float, *speeds: float) -> ParetoPoint:
    """An arm with a run in each block."""
    return ParetoPoint(index, usd, {("experiment", block): speed for block, speed in enumerate(speeds)})


def test_dearer_and_faster_beyond_doubt_is_on_the_front() -> None:
    assert front([offered(0, 8, 1000, 1010, 990), offered(1, 1052, 3000, 3030, 2970)]) == {0, 1}


def test_dearer_and_slower_is_not() -> None:
    assert front([offered(0, 8, 1000, 1010, 990), offered(1, 9, 900, 905, 890)]) == {0}


def test_a_mean_that_is_higher_within_the_noise_is_not_worth_money() -> None:
    arms = [offered(0, 8, 1000, 1100, 900), offered(1, 9, 1020, 1050, 960)]
    assert front(arms) == {0}


def test_of_the_same_price_only_what_is_slower_beyond_doubt_goes() -> None:
    same, slower = offered(1, 8, 1005, 995, 1001), offered(2, 8, 500, 505, 495)
    assert front([offered(0, 8, 1000, 1010, 990), same, slower]) == {0, 1}


def test_one_replicate_has_only_its_mean() -> None:
    assert front([offered(0, 8, 1000), offered(1, 9, 1001), offered(2, 10, 999)]) == {0, 1}


def test_without_a_common_block_nothing_is_said_against_an_arm() -> None:
    alone = ParetoPoint(1, 9.0, {("experiment", 7): 1.0})
    assert front([offered(0, 8, 1000, 1010), alone]) == {0, 1}


@given(st.lists(st.tuples(st.floats(1, 1e4), st.floats(1, 1e6)), min_size=1, max_size=12))
def test_somebody_is_on_the_front_and_the_cheapest_of_those_without_noise_is(arms: list[tuple[float, float]]) -> None:
    result = front([offered(place, usd, speed) for place, (usd, speed) in enumerate(arms)])
    cheapest = min(usd for usd, _ in arms)
    best = max((speed, -place) for place, (usd, speed) in enumerate(arms) if usd == cheapest)
    assert -best[1] in result
    for place in result:
        usd, speed = arms[place]
        assert not any(u < usd and s >= speed for u, s in arms)
