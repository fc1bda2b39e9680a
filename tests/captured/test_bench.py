"""The record of what captures and replays cost, by ``make bench ONLY=captured``: measured, judged, and its page written."""

from __future__ import annotations

import pytest

from tools.captured import __main__ as program
from tools.captured import claim, measure
from tools.driver.__main__ import minutes
from tools.fidelity.claim import Claim

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def judged() -> dict[str, Claim]:
    """The claims on a whole record."""
    record = measure.measure(program.SECONDS, program.PAIRS, minutes())
    return {item.name: item for item in program.write(record)}


@pytest.mark.parametrize("name", claim.NAMES)
def test_the_claim_holds(name: str, judged: dict[str, Claim]) -> None:
    assert judged[name].holds, str(judged[name])
