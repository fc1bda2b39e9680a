"""The fidelity record, by ``make bench ONLY=fidelity``: measured, judged, and its page written."""

from __future__ import annotations

import pytest

from tools.fidelity import __main__ as program
from tools.fidelity import device, matrix
from tools.fidelity.claim import Claim
from tools.fidelity.claims import CLAIMS

pytestmark = [pytest.mark.needs_fuse, pytest.mark.needs_fio, pytest.mark.bench]


@pytest.fixture(scope="module")
def judged() -> dict[str, Claim]:
    """The claims on a whole record; one that was interrupted is resumed."""
    reasons = [reason for world in matrix.PEERS if (reason := device.missing(world))]
    if reasons:
        pytest.skip("; ".join(reasons))
    program.collect(matrix.cells(), program.RESULTS)
    return dict(zip(CLAIMS, program.rewrite(), strict=True))


@pytest.mark.parametrize("name", CLAIMS)
def test_the_claim_holds(name: str, judged: dict[str, Claim]) -> None:
    assert judged[name].holds, str(judged[name])
