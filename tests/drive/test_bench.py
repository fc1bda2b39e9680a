"""The record of what the driver costs, by ``make bench ONLY=drive``: measured, judged, and its page written."""

from __future__ import annotations

import pytest

from tools.driver import __main__ as program
from tools.driver import claim, measure
from tools.fidelity.claim import Claim

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def judged() -> dict[str, Claim]:
    """The claims on a whole record."""
    record = measure.measure(program.SECONDS, program.PAIRS, program.minutes())
    return {item.name: item for item in program.write(record)}


@pytest.mark.parametrize("name", claim.NAMES)
def test_the_claim_holds(name: str, judged: dict[str, Claim]) -> None:
    if name not in judged:
        pytest.skip("its original is not installed here")
    assert judged[name].holds, str(judged[name])
