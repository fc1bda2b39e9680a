"""Who hears how far an experiment is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pgdyno.experiment import Cell


@dataclass(frozen=True)
class ProgressStep:
    """Where an experiment is: for a progress bar."""

    title: str
    text: str
    share: float
    """Of this step, 0 to 1."""


@dataclass(frozen=True)
class Listener:
    """Receives the progress of an experiment."""

    step: Callable[[ProgressStep], None] = lambda _step: None
    run: Callable[[Cell, Path], None] = lambda _cell, _path: None
    note: Callable[[str], None] = lambda _text: None
