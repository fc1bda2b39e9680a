"""``pgdyno.query(...)``: rows of SQL over the recorded runs, for notebooks and scripts."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from pgdyno.analysis.validity import judge

from ..results import query as sql_over_runs
from ..results.names import results_root


def query(sql: str, results: str | Path | None = None) -> list[dict[str, Any]]:
    """Rows of one SELECT over the finished runs, each a dictionary by column: what ``pgdyno query`` prints.

    ``results`` is the folder, by default that of the command. What cannot be read is left out with a warning. :class:`pgdyno.base.errors.InputError`
    for bad SQL, for anything but one SELECT, and when there are no runs.
    """
    unreadable: dict[Path, str] = {}
    result = sql_over_runs.query(results_root(None if results is None else Path(results)), sql, judge, unreadable)
    for path, why in unreadable.items():
        warnings.warn(f"omitted, because it cannot be read: {path}: {why}", stacklevel=2)
    return result.dictionaries()
