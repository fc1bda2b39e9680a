"""The record on installing, by ``make bench ONLY=install``: made, judged, and its page written."""

from __future__ import annotations

import shutil

import pytest

from tools.fidelity.claim import Claim
from tools.install import __main__ as program
from tools.install import claims, root

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse]


@pytest.fixture(scope="module")
def judged() -> dict[str, Claim]:
    """The claims on a whole record."""
    for name in root.PROGRAMS:
        if shutil.which(name) is None:
            pytest.skip(f"needs {name}")
    return {item.name: item for item in program.write(program.collect())}


@pytest.mark.parametrize("name", claims.NAMES)
def test_the_claim_holds(name: str, judged: dict[str, Claim]) -> None:
    assert judged[name].holds, str(judged[name])
