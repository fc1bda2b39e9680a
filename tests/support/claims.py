"""Claims of a bench, as its tests look at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.fidelity.claim import Claim


def broken(judged: Sequence[Claim], names: Sequence[str]) -> set[str]:
    """Names of those that do not hold; all of ``names`` are there, in their order."""
    assert [claim.name for claim in judged] == list(names)
    return {claim.name for claim in judged if not claim.holds}
