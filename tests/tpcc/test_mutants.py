"""A routine that does something else than it should is caught by the proofs after a run: a few here, all of them as a measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.workload.outcome import RunRequest

from .mutants import CONDITIONS, GROWTH, INPUTS, QUICK, Mutant
from .test_runs import paced, tpcc

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgdyno.kinds.tpcc.kind import Tpcc

    from ..fill.filled import Database

EVERY = (*CONDITIONS.values(), *GROWTH, *INPUTS)


def _caught(mutant: Mutant, tpcc: Tpcc, mine: Database, folder: Path, seconds: float) -> None:
    mutant.into(mine)
    outcome = tpcc.runner()(mine, RunRequest(seconds, folder))
    assert outcome.account_total.failed == 0
    document = {proof.name: proof.detail for proof in tpcc.proofs(mine, outcome, full=True) if not proof.ok}
    assert mutant.said in document.get(mutant.check, ""), document


@pytest.mark.parametrize("mutant", QUICK, ids=lambda mutant: mutant.check)
def test_a_mutant_is_caught(
    request: pytest.FixtureRequest, clone: Callable[[Database], Database], tmp_path: Path, mutant: Mutant
) -> None:
    mine = clone(request.getfixturevalue(mutant.profile))
    _caught(mutant, paced(profile=mutant.profile), mine, tmp_path, 2.0)


@pytest.mark.bench
@pytest.mark.parametrize("mutant", EVERY, ids=lambda mutant: mutant.said)
def test_every_mutant_is_caught(
    request: pytest.FixtureRequest, clone: Callable[[Database], Database], tmp_path: Path, mutant: Mutant
) -> None:
    # A share of 1 % that is 0 stands out of four standard errors after 1,600 orders.
    seconds = 15.0 if mutant in INPUTS else 4.0
    mine = clone(request.getfixturevalue(mutant.profile))
    _caught(mutant, tpcc(profile=mutant.profile), mine, tmp_path, seconds)
