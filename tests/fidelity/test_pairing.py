"""Each request as fio timed it is held against its own modelled time, whatever else came to the volume."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import PgdynoError
from tools.fidelity import pairing
from tools.fidelity.fio import Logged
from tools.fidelity.point import Paired
from tools.fidelity.submit_log import Requests

EXACT = Paired(requests=3, close=3, median_error=0)


def requests(*result: tuple[int, int]) -> Requests:
    """(offset, modelled latency) of each, a millisecond apart."""
    submitted = np.arange(len(result), dtype=np.int64) * 10**6
    offset, latency = (np.array([item[i] for item in result], dtype=np.int64) for i in (0, 1))
    return Requests(submitted, submitted + latency, offset)


def timed(*result: tuple[int, int]) -> list[Logged]:
    """(offset, latency) of each."""
    return [Logged(at_ms=0, latency_ns=latency, offset=offset) for offset, latency in result]


def test_a_request_is_close_within_a_twentieth_of_its_own_time_in_the_volumes_clock() -> None:
    modelled = requests((0, 1_000), (4096, 2_000), (8192, 1_000))
    dilated = pairing.paired(modelled, timed((0, 8_390), (4096, 16_900), (8192, 7_500)), 8)
    assert (dilated.close, dilated.requests) == (1, 3)
    assert dilated.median_error == pytest.approx(0.04875)
    assert pairing.paired(modelled, timed((0, 1_049), (4096, 1_901), (8192, 949)), 1).close == 2


def test_requests_of_others_are_passed_over() -> None:
    modelled = requests((7, 5), (0, 1_000), (7, 5), (4096, 2_000), (0, 3_000), (7, 5))
    assert pairing.paired(modelled, timed((0, 1_000), (4096, 2_000), (0, 3_000)), 1) == EXACT


def test_a_request_that_the_volume_never_had_is_said() -> None:
    with pytest.raises(PgdynoError, match="request 1 of fio is not in the submit log"):
        pairing.paired(requests((0, 1_000), (4096, 1_000)), timed((4096, 1_000), (0, 1_000)), 1)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1_000, 10**6), st.booleans()), min_size=1, max_size=50))
def test_whatever_comes_between_each_is_paired_with_its_own(found: list[tuple[int, int, bool]]) -> None:
    """Others ask for places that fio does not have."""
    modelled = requests(*((place if own else 99, ns) for place, ns, own in found))
    own = timed(*((place, 8 * ns) for place, ns, own in found if own))
    if own:
        assert pairing.paired(modelled, own, 8) == Paired(requests=len(own), close=len(own), median_error=0)
        return
    with pytest.raises(PgdynoError, match="no request"):
        pairing.paired(modelled, own, 8)
