"""The record of how fast loading is, by ``make bench ONLY=load``: measured, judged, and its page written."""

from __future__ import annotations

import pytest

from tools.fidelity.claim import Claim
from tools.loader import __main__ as program
from tools.loader import claim, measure

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def judged() -> dict[str, Claim]:
    """The claims on a whole record."""
    record = measure.measure(program.megabytes(), program.rounds())
    return {item.name: item for item in program.write(record)}


@pytest.mark.parametrize("name", claim.NAMES)
def test_the_claim_holds(name: str, judged: dict[str, Claim]) -> None:
    if name not in judged:
        pytest.skip("what it is compared with is not installed here")
    assert judged[name].holds, str(judged[name])
