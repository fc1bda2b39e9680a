"""A published document: its figures, its claims about them, and what it does not state.

Figures are :class:`~decimal.Decimal`, so that 0.70 keeps the digits that were printed.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from string import Formatter
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pgdyno.published.formula import FormulaError, Scope, evaluate, names_in

from ..base.errors import InputError

Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class FilePart(BaseModel):
    """A part of a file; a key that it does not have is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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


Levels = dict[Text, str]


class Arms(FilePart):
    """Two arms of one experiment."""

    experiment: Text
    """The file in ``experiments/``, without its ending."""
    high: Levels
    """Levels of the arm that stands for the document's larger figure."""
    low: Levels
    full_only: bool = False
    """Whether ``--quick`` does without it, because of the time that its arms take."""


class AnswerVariant(Arms):
    """The same ratio with another choice of what the document does not state."""

    what: Text
    """Which of the things that are not stated."""
    choice: Text
    """What it is in these arms."""


class RunAnswer(Arms):
    """Recorded runs that answer a comparison."""

    metric: Text
    """As tables, CSV and JSON name it: ``tps``, ``write_ms_mean``."""
    differently: str = ""
    """What is measured in another way than there; empty where nothing is."""
    cause: str = ""
    """Why the ratio differs where it does, as far as it was measured; empty where that is not known."""
    varied: tuple[AnswerVariant, ...] = ()


class VolumePair(FilePart):
    """Two volumes of the catalogue that answer a comparison without a run."""

    metric: Literal["usd_per_month", "failures_per_year_percent"]
    high: Text
    """The specification of the volume or array that stands for the document's larger figure."""
    low: Text
    cause: str = ""


class RequiredRun(FilePart):
    """One of the experiment files that a document is reproduced with."""

    experiment: Text
    full_only: bool = False
    """Whether ``--quick`` omits it, because of the time that it takes."""
    replicates: Annotated[int, Field(ge=1)] | None = None
    """Instead of the file's."""
    by_vcpus: bool = False
    """Whether vCPUs are compared, so that an arm with more of them than this machine's cores can stand for is not run."""


class Order(FilePart):
    """Figures that the document puts in an order: each comparison is a step down."""

    name: Text
    steps: Annotated[list[Text], Field(min_length=2)]
    """Names of comparisons."""


Cell = Decimal | str


class PublishedFigure(FilePart):
    """One number of a document."""

    name: Name
    """What formulas call it."""
    measures: Text
    """What was measured or promised."""
    of: str = ""
    """Which of the things that the document compares; empty where it compares none."""
    value: Decimal
    unit: Text
    at: Text
    """Page or section."""
    approximate: bool = False
    """Whether the document itself says "about", "over" or "just under"."""


class FigureColumn(FilePart):
    """A column of figures."""

    name: Name
    measures: Text
    unit: Text


class FigureTable(FilePart):
    """Figures of one shape. A row has the values of its axes, then its figures."""

    name: Name
    at: Text
    """Page or section; `{axis}` is the row's value of that axis."""
    of: str = ""
    reading: str = ""
    """How the rows were read, where the copy is not clear."""
    axes: Annotated[list[Name], Field(min_length=1)]
    columns: Annotated[list[FigureColumn], Field(min_length=1)]
    rows: Annotated[list[list[Cell]], Field(min_length=1)]

    @model_validator(mode="after")
    def _rows_have_all_cells(self) -> Self:
        for number, row in enumerate(self.rows, 1):
            if len(row) != len(self.axes) + len(self.columns):
                wanted = len(self.axes) + len(self.columns)
                raise ValueError(f"row {number} has {len(row)} cells instead of {wanted}")
            if any(isinstance(cell, str) for cell in row[len(self.axes) :]):
                raise ValueError(f"row {number} has a text where a figure belongs")
        for name in {field for _, field, _, _ in Formatter().parse(self.at) if field is not None} - set(self.axes):
            raise ValueError(f"`at` names `{name}`, which is not an axis")
        return self

    def places(self) -> list[str]:
        """Where each row stands in the document."""
        return [self.at.format(**dict(zip(self.axes, row, strict=False))) for row in self.rows]


class PublishedComparison(FilePart):
    """Two figures, or formulas of figures, whose ratio the document is about; or a ratio that it states without them."""

    name: Text
    high: Text | None = None
    """A formula: the one that the document says is larger, or puts first."""
    low: Text | None = None
    stated: Name | None = None
    """The figure that states the ratio, where one does."""
    because: str = ""
    """Why the stated ratio is not the computed one."""
    answer: RunAnswer | None = None
    offer: VolumePair | None = None
    unanswered: str = ""
    """Why neither answers it."""

    @model_validator(mode="after")
    def _has_a_ratio(self) -> Self:
        if (self.high is None) != (self.low is None):
            raise ValueError("has one of `high` and `low`: write both, or neither")
        if self.high is None and self.stated is None:
            raise ValueError("needs `high` and `low`, or the ratio in `stated`")
        if sum(map(bool, (self.answer, self.offer, self.unanswered))) > 1:
            raise ValueError("has several of `answer`, `offer` and `unanswered`: write one")
        return self


class Arithmetic(FilePart):
    """A claim that follows from other figures of the document, or should."""

    claim: Text
    formula: Text
    unit: Text
    stated: Name | Decimal
    """The figure that states the result; or the number, where what is expected is not a figure of the document."""
    within: Annotated[Decimal, Field(ge=0, le=Decimal("0.05"))] = Decimal(0)
    """What may be between both beyond the printed digits, as a share of what is stated."""
    because: str = ""
    """What explains the difference; empty where there is none."""


class UnstatedChoice(FilePart):
    """Something that the document does not say, and its plausible range."""

    what: Text
    low: Decimal | None = None
    high: Decimal | None = None
    unit: str = ""
    choices: tuple[Text, ...] = ()
    """Instead of a range: what it may have been."""
    why: Text
    """Why the range is plausible."""


class Unreadable(FilePart):
    """A chart or picture without numbers in the copy that was read."""

    at: Text
    shows: Text


class ClaimOutcome(FilePart):
    """A claim, recomputed."""

    computed: Decimal | None
    """None where a ratio is stated without the figures that it is of."""
    stated: Decimal | None
    agrees: bool
    """Whether the computed figure rounds to the stated one, in the digits that are printed. True where none is stated."""


class PublishedDocument(FilePart):
    """One document."""

    schema_version: Annotated[int, Field(ge=1, le=1)]
    name: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    title: Text
    publisher: Text
    published: Text
    """Its date, or `not stated`."""
    about: Text
    stated: dict[str, Text]
    """The configuration as far as it is stated."""
    figure: tuple[PublishedFigure, ...] = ()
    table: tuple[FigureTable, ...] = ()
    run: tuple[RequiredRun, ...] = ()
    comparison: tuple[PublishedComparison, ...] = ()
    order: tuple[Order, ...] = ()
    chart: tuple[Chart, ...] = ()
    arithmetic: tuple[Arithmetic, ...] = ()
    unstated: Annotated[list[UnstatedChoice], Field(min_length=1)]
    unreadable: tuple[Unreadable, ...] = ()

    @model_validator(mode="after")
    def _charts_are_of_tables(self) -> Self:
        for chart in self.chart:
            for line in chart.line:
                try:
                    points = self.points(chart, line)
                except (LookupError, ValueError, ArithmeticError):
                    raise ValueError(f"chart `{chart.name}`: the table has no such column, axis or number") from None
                if len(points) < POINTS_MIN:
                    raise ValueError(f"chart `{chart.name}`: `{line.name}` has fewer than {POINTS_MIN} rows")
        return self

    def points(self, chart: Chart, line: ChartLine) -> list[Point]:
        """The points of a line, by their place on the horizontal axis."""
        [(table, index)] = [
            (table, index)
            for table in self.table
            for index, column in enumerate(table.columns, len(table.axes))
            if f"{table.name}_{column.name}" == chart.column
        ]
        rows = [(dict(zip(table.axes, row, strict=False)), row[index]) for row in table.rows]
        points = [
            Point(float(axes[chart.x]), float(value), {chart.factor: chart.level.format(**axes)})
            for axes, value in rows
            if all(axes[axis] == wanted for axis, wanted in line.where.items())
        ]
        return sorted(points, key=lambda point: point.x)

    @cached_property
    def scope(self) -> Scope:
        """Names that formulas may use: figures, and columns of tables as ``table_column``."""
        cells: dict[str, dict[tuple[Cell, ...], Decimal]] = {}
        for table in self.table:
            for index, column in enumerate(table.columns, len(table.axes)):
                keyed = {tuple(row[: len(table.axes)]): Decimal(row[index]) for row in table.rows}
                cells[f"{table.name}_{column.name}"] = keyed
        return Scope({figure.name: figure.value for figure in self.figure}, cells)

    def figures(self) -> int:
        """Count of its numbers."""
        return len(self.figure) + sum(len(table.rows) * len(table.columns) for table in self.table)

    def outcome(self, claim: PublishedComparison | Arithmetic) -> ClaimOutcome:
        """The claim, recomputed. :class:`FormulaError` says what its formula cannot mean."""
        computed = self._ratio(claim) if isinstance(claim, PublishedComparison) else evaluate(claim.formula, self.scope)
        if claim.stated is None:
            return ClaimOutcome(computed=computed, stated=None, agrees=True)
        stated, share = self._stated(claim.stated)
        if computed is None:
            return ClaimOutcome(computed=None, stated=stated, agrees=True)
        share = max(share, claim.within) if isinstance(claim, Arithmetic) else share
        agrees = abs(computed - stated) <= share * abs(stated) or _rounds_to(computed, stated)
        return ClaimOutcome(computed=computed, stated=stated, agrees=agrees)

    def ratio(self, comparison: PublishedComparison) -> tuple[Decimal, Decimal]:
        """The ratio of a comparison, from its figures where there are any, and the share by which "about" leaves it open."""
        outcome = self.outcome(comparison)
        ratio = outcome.computed if outcome.computed is not None else outcome.stated
        assert ratio is not None, comparison.name
        vague = {figure.name for figure in self.figure if figure.approximate}
        formulas = (comparison.high, comparison.low) if outcome.computed is not None else (comparison.stated,)
        used = {name for formula in formulas if formula for name in names_in(formula)}
        return ratio, ABOUT if used & vague else Decimal(0)

    def unit_of(self, formula: str) -> str:
        """The unit of the figures in a formula; empty where they have several."""
        units = {figure.name: figure.unit for figure in self.figure}
        units |= {f"{table.name}_{column.name}": column.unit for table in self.table for column in table.columns}
        results = {units[name] for name in names_in(formula) if name in units}
        return results.pop() if len(results) == 1 else ""

    def _ratio(self, comparison: PublishedComparison) -> Decimal | None:
        if comparison.high is None or comparison.low is None:
            return None
        low = evaluate(comparison.low, self.scope)
        if not low:
            raise FormulaError(f"`{comparison.low}` is 0, which has no ratio")
        return evaluate(comparison.high, self.scope) / low

    def _stated(self, stated: str | Decimal) -> tuple[Decimal, Decimal]:
        """The stated figure, and the share by which the document leaves it open."""
        if isinstance(stated, Decimal):
            return stated, Decimal(0)
        figure = next((figure for figure in self.figure if figure.name == stated), None)
        if figure is None:
            raise FormulaError(f"`{stated}` is not a figure of this document")
        return figure.value, ABOUT if figure.approximate else Decimal(0)


POINTS_MIN = 2
"""Fewer points make no line."""
ABOUT = Decimal("0.05")
"""What "about" allows, as a share of the figure: documents say "just over" of what rounds to one or two digits."""


def _rounds_to(computed: Decimal, stated: Decimal) -> bool:
    """True if both are the same in the digits of ``stated``; a half is rounded either way."""
    exponent = stated.as_tuple().exponent
    assert isinstance(exponent, int)
    return abs(computed - stated) <= Decimal(1).scaleb(min(exponent, 0)) / 2


def read_document(path: Path) -> PublishedDocument:
    """The document in a file. :class:`InputError` names the file and each key that is wrong."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path} cannot be read: {why}", remedy="name a file of catalog/published") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}", remedy="fix this line; strings must be quoted") from None
    try:
        document = PublishedDocument.model_validate(content)
    except ValidationError as error:
        wrong = [f"{_key(other['loc'])}: {other['msg']}" for other in error.errors()]
        raise InputError(
            f"{path}: {'; '.join(wrong)}", remedy="write it as the other files of catalog/published do"
        ) from None
    if document.name != path.stem:
        raise InputError(f"{path}: its name is `{document.name}`", remedy="give the file the name of its document")
    return document


def read_documents(folder: Path) -> list[PublishedDocument]:
    """Every document of a folder, by name."""
    return [read_document(path) for path in sorted(folder.glob("*.toml"))]


def _key(place: tuple[str | int, ...]) -> str:
    """``figure[3].unit``; entries of a list are counted from 1."""
    return "".join(f"[{item + 1}]" if isinstance(item, int) else f".{item}" for item in place).lstrip(".")
