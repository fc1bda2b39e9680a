"""The record of what the workloads derived from TPC-C and TPC-H cost, by ``make bench ONLY=tpc``: measured, judged, its page written."""

from __future__ import annotations

import pytest

from tools.fidelity.claim import Claim
from tools.tpc import __main__ as program
from tools.tpc import claim

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def judged() -> dict[str, Claim]:
    """The claims on a whole record."""
    return {item.name: item for item in program.collect()}


@pytest.mark.parametrize(
    "name",
    [
        *claim.NAMES,
        "tpcc: native against pgbench",
        "tpcc: the same for the server",
    ],
)
def test_the_claim_holds(name: str, judged: dict[str, Claim]) -> None:
    assert judged[name].holds, str(judged[name])
