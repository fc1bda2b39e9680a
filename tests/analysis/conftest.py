"""One experiment that nobody ran, for tests that only read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import Comparison, summarise

from .synthetic import make_experiment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """gp3 against io2bx, three replicates, 60 s."""
    return make_experiment(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="session")
def comparison(experiment: Path) -> Comparison:
    """The same, summarised."""
    return summarise(experiment)
