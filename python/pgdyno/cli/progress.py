"""Progress of an experiment on standard error: a bar with what is left on a terminal, a line for each run elsewhere."""

from __future__ import annotations

import math
import sys
import time
from typing import TYPE_CHECKING, Any, Self

from pgdyno.cli.streams import drawn
from pgdyno.cli.terminal import is_live

from ..base.quantity import duration_words
from ..base.text import number, printable

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from pgdyno.experiment import Cell
    from pgdyno.flow.plan import ExperimentPlan

    from ..flow.cell import ProgressStep


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
        from pgdyno.analysis.headline import headline_of

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
