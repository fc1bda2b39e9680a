"""A column of a document's table over one of the table's numbers, as a chart has it, and the arms that stand for its points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from pgdyno.published.part import FilePart, Name, Text


class ChartLine(FilePart):
    """Rows of the table that belong together."""

    name: Text
    where: dict[Name, Text]
    """Axis -> what these rows have there."""


class Chart(FilePart):
    """TPS by vCPUs, for example: a line for each amount of memory."""

    name: Text
    column: Name
    """What formulas call it: ``cells_tps``."""
    x: Name
    """The axis of the table that is a number."""
    x_title: Text
    experiment: Text
    """The file in ``experiments/``, without its ending."""
    metric: Text
    factor: Text
    level: Text
    """The level that stands for a row: ``{vcpus} vCPUs, {memory_gb} GB``. A row whose level the file does not have stands there alone."""
    full_only_above: Annotated[int, Field(ge=0)] | None = None
    """``--quick`` runs the arms of points up to here, and those that comparisons rest on; None for all points."""
    line: Annotated[tuple[ChartLine, ...], Field(min_length=1)]


@dataclass(frozen=True)
class Point:
    """A row as a point of a line."""

    x: float
    y: float
    levels: dict[str, str]
    """Factor -> level of the arm that stands for it."""
