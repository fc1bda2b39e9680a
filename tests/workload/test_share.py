"""How several drivers divide a load: nothing is lost, nothing is given twice, and what cannot be divided is refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import InputError
from pgdyno.workload.outcome import divided, shares_of

weights = st.lists(st.integers(1, 1000), min_size=1, max_size=64)


@given(weights, st.integers(0, 100_000))
def test_parts_follow_the_weights_and_add_up(weights: list[int], count: int) -> None:
    parts = divided(count, weights)
    assert sum(parts) == count
    total = sum(weights)
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part - count * weight / total) < 1


@given(weights, st.integers(1, 200), st.integers(1, 500))
def test_each_client_and_each_thread_has_one_driver(weights: list[int], threads: int, clients: int) -> None:
    try:
        shares = shares_of(weights, clients, threads)
    except InputError as error:
        match = re.search(r"write threads = (\d+)", error.remedy)
        if match:
            assert shares_of(weights, 100_000, int(match[1])), "the remedy helps"
        return
    numbered = [
        number for share in shares for number in range(share.clients_before, share.clients_before + share.clients)
    ]
    served = [
        number for share in shares for number in range(share.threads_before, share.threads_before + share.threads)
    ]
    assert numbered == list(range(clients))
    assert served == list(range(threads))
    assert all(share.threads >= 1 and share.clients >= share.threads for share in shares)


def test_a_share_is_a_specification_of_its_own_with_the_rates_of_all() -> None:
    whole = {"clients": 16, "threads": 4, "arrivals": {"poisson": {"rate_per_s": 100.0}}}
    first, second = shares_of([3, 1], 16, 4)
    assert (first.name, second.name) == ("driver 1", "driver 2")
    assert second.of(whole) == {
        "clients": 4,
        "threads": 1,
        "arrivals": {"poisson": {"rate_per_s": 100.0}},
        "share": {"clients_before": 12, "clients_all": 16, "threads_before": 3, "threads_all": 4},
    }
    assert first.of(whole)["share"]["clients_before"] == 0


@pytest.mark.parametrize(
    ("weights", "clients", "threads", "said"),
    [
        ([1, 1], 8, 1, "driver 1 would get none of 1: write threads = 2"),
        ([1, 9], 8, 2, "driver 1 would get none of 2"),
        ([3, 1, 2], 4, 3, "driver 2 of 3 would have fewer clients \\(0\\) than threads \\(1\\)"),
    ],
)
def test_what_cannot_be_divided_is_refused(weights: list[int], clients: int, threads: int, said: str) -> None:
    with pytest.raises(InputError) as caught:
        shares_of(weights, clients, threads)
    assert re.search(said, f"{caught.value.message}: {caught.value.remedy}")
