"""The terminal: its width, whether it wants colour, whether it is interactive; and help that fits it."""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any, Self

import click

from pgdyno.cli.streams import drawn

from ..base.quantity import duration_words
from ..base.text import fitted, number, printable

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from pgdyno.experiment import Cell
    from pgdyno.flow.plan import ExperimentPlan

    from ..flow.cell import ProgressStep


WIDEST = 100
"""Columns of help at most: longer lines are hard to read."""
NARROWEST = 32
"""Below this nothing is wrapped further; the terminal does it."""


def wants_colour(stream: IO[Any] | None) -> bool:
    """Whether to colour what goes to ``stream``: a terminal that can, and no ``NO_COLOR`` (https://no-color.org)."""
    return is_live(stream) and not os.environ.get("NO_COLOR")


def is_live(stream: IO[Any] | None) -> bool:
    """Whether a line of ``stream`` can be drawn again: a terminal, and not a dumb one. None is one that was closed."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def columns() -> int | None:
    """Columns of the terminal; None where the output goes elsewhere, and may be as wide as it needs. ``COLUMNS`` goes first."""
    if os.environ.get("COLUMNS", "").isdigit():
        return max(NARROWEST, int(os.environ["COLUMNS"]))
    return (
        max(NARROWEST, shutil.get_terminal_size().columns) if sys.stdout is not None and sys.stdout.isatty() else None
    )


class HelpFormatter(click.HelpFormatter):
    """Wraps help to the terminal, also to one of less than 50 columns."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        columns = width or shutil.get_terminal_size().columns - 1
        super().__init__(indent_increment, max(NARROWEST, min(columns, max_width or WIDEST)), max_width)

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Names and meanings side by side; on a narrow terminal the names get a third of it."""
        super().write_dl(rows, min(col_max, self.width // 3), col_spacing)


class HelpContext(click.Context):
    """A context whose help is made by :class:`HelpFormatter`."""

    formatter_class = HelpFormatter


def fit(command: click.Command) -> click.Command:
    """Make the help of a command and of all below it fit; a group shows their first sentences whole."""
    command.context_class = HelpContext
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        inner.short_help = inner.get_short_help_str(limit=sys.maxsize)
        fit(inner)
    return command


def print_rows(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Rows below a header, within the terminal; columns named in ``right`` are numbers and stand to the right."""
    left = [place for place, title in enumerate(header) if title not in right]
    for line in fitted([header, *rows], columns(), left):
        click.echo(line)


def print_json(document: dict[str, Any]) -> None:
    """One JSON document."""
    import json

    click.echo(json.dumps(document, indent=1))


class _ProgressBar:
    """Has a bar for the length of a ``with`` block, if standard error is a terminal."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


class Display(_ProgressBar):
    """Shows the steps of an experiment. What is left is estimated run by run, and corrected by how long finished runs took."""

    def __init__(self, plan: ExperimentPlan, left_s: float = math.inf) -> None:
        """``left_s`` is what a budget leaves: then it ends, whatever there is to do."""
        super().__init__()
        self._budget_s, self._further = left_s, plan.further
        self._load_s = plan.load_s
        self._loads_s = {step.title: step.estimate_s for step in plan.preparation}
        self._run_s = plan.world.run_s
        self._cells = plan.cells
        self._done_cells = 0
        self._planned_s, self._done_s = plan.cells_s, 0.0
        self._pace = 1.0
        """How long finished runs took, as a multiple of their estimates."""
        self._began = time.monotonic()
        self._cells_began: float | None = None
        self._title = ""

    def __enter__(self) -> Self:
        """Start the bar, if standard error is a terminal."""
        self._bar, self._task = _bar("load", min(self._total_s, self._budget_s))
        return self

    def step(self, step: ProgressStep) -> None:
        """Show where the experiment is."""
        # An arm may be called `load.sql`.
        loading = step.title == "load" or step.title in self._loads_s
        if not loading and self._cells_began is None:
            self._cells_began = time.monotonic()
        done_s = self._loaded_s(step) if loading else self._load_s + self._run_so_far_s(step.share) * self._pace
        if self._bar is not None:
            self._bar.update(self._task, completed=done_s, description=printable(f"{step.title}: {step.text}"[:70]))
        elif step.title != self._title:
            self.say(f"{step.title} (about {duration_words(self._left_s(done_s))} left)")
        self._title = step.title

    @property
    def _total_s(self) -> float:
        return self._load_s + self._planned_s * self._pace

    def _run_so_far_s(self, share: float) -> float:
        """What is done of the estimates of all runs, with that share of the one that is being made."""
        under_way = self._cells[self._done_cells :][:1]  # none where a budget allows more runs than were planned
        return self._done_s + share * sum(map(self._run_s, under_way))

    def _left_s(self, done_s: float) -> float:
        """What is left to do, or of the budget where that is less, or is used up by further runs."""
        allowed_s = self._budget_s - (time.monotonic() - self._began)
        return max(0.0, allowed_s if self._further else min(self._total_s - done_s, allowed_s))

    def _loaded_s(self, step: ProgressStep) -> float:
        """What is done of the estimate for loading: data sets are loaded one after the other, in the plan's order."""
        if len(self._loads_s) < 2:
            return step.share * self._load_s
        if step.title not in self._loads_s:
            return self._load_s  # what is made for all of them, when they are loaded
        place = list(self._loads_s).index(step.title)
        return sum(list(self._loads_s.values())[:place]) + step.share * self._loads_s[step.title]

    def finished(self, cell: Cell, path: Path) -> None:
        """Show what a run came to."""
        from pgdyno.analysis.run import headline_of

        from ..results import open_run

        self._done_cells += 1
        self._done_s += self._run_s(cell)
        self._planned_s = max(self._planned_s, self._done_s)
        if self._cells_began is not None and self._done_s > 0:
            self._pace = (time.monotonic() - self._cells_began) / self._done_s
            if self._bar is not None:
                self._bar.update(self._task, total=min(self._total_s, self._budget_s))
        run = open_run(path).record
        metric = headline_of(run)
        place = f"run {self._done_cells} of {max(len(self._cells), self._done_cells)}: {cell.arm.label}, replicate {cell.block}"
        self.say(f"{place}: {number(metric.of(run))} {metric.short}")

    def note(self, text: str) -> None:
        """Show a last step that is not a run."""
        if self._bar is not None:
            self._bar.update(self._task, completed=self._total_s, description=printable(text))

    def say(self, text: str) -> None:
        """Print a line that stays."""
        if self._bar is not None:
            self._bar.console.print(printable(text), highlight=False, markup=False)
        else:
            print(f"[{time.monotonic() - self._began:5.0f} s] {text}", file=sys.stderr, flush=True)


class Bar(_ProgressBar):
    """Progress of a single thing: a bar on a terminal, elsewhere a line for each phase (the text before a colon)."""

    def __init__(self) -> None:
        super().__init__()
        self._phase = ""

    def __enter__(self) -> Self:
        """Start the bar, if standard error is a terminal."""
        self._bar, self._task = _bar("", 1.0)
        return self

    def show(self, share: float, text: str) -> None:
        """How far it is, 0 to 1, and what is done: ``load: 3 of 7 rows``."""
        phase = text.partition(":")[0]
        if self._bar is not None:
            self._bar.update(self._task, completed=share, description=printable(text[:70]))
        elif phase != self._phase:
            print(text, file=sys.stderr, flush=True)
        self._phase = phase


def _bar(text: str, total: float) -> tuple[Any, Any]:
    """A bar that has begun, and its task; twice None if standard error is not a terminal."""
    if not is_live(sys.stderr):
        return None, None
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(file=drawn(sys.stderr)), transient=True)
    bar.start()
    return bar, bar.add_task(text, total=total)
