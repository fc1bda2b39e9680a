"""The fidelity record, by ``make bench ONLY=fidelity``: measured, judged, and its page written."""

from __future__ import annotations

import pytest

from pgdyno.host import transport
from tools.fidelity import __main__ as program
from tools.fidelity import device, matrix
from tools.fidelity.claim import Claim
from tools.fidelity.claims import CLAIMS

WAYS = ("classic",) if transport.missing() else ("classic", "uring")
NAMES = [(way, name) for way in WAYS for name in (*CLAIMS, *(("no_worse",) if way == "uring" else ()))]
pytestmark = [pytest.mark.needs_fuse, pytest.mark.needs_fio, pytest.mark.bench]


@pytest.fixture(scope="module")
def judged() -> dict[tuple[str, str], Claim]:
    """The claims on a whole record of each way of requests; one that was interrupted goes on where it stopped."""
    reasons = [reason for world in matrix.PEERS if (reason := device.missing(world))]
    if reasons:
        pytest.skip("; ".join(reasons))
    for way in WAYS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PGDYNO_TRANSPORT", way)
            root, cells = program.place(way)
            program.collect(cells, root)
    return dict(zip(NAMES, program.rewrite(), strict=False))


@pytest.mark.parametrize(("way", "name"), NAMES)
def test_the_claim_holds(way: str, name: str, judged: dict[tuple[str, str], Claim]) -> None:
    assert judged[way, name].holds, str(judged[way, name])
