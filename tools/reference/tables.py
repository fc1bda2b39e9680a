"""``tables.md``: the tables of a run and the views of ``pgdyno query``."""

from __future__ import annotations

from pgdyno.results import tables
from pgdyno.results.query import RUNS_COLUMNS, RUNS_VIEW, describe_views
from tools.reference import markdown as md

INTRODUCTION = """
A run's directory holds each table as `NAME.parquet`; [`pgdyno query`](cli.md#pgdyno-query) shows those of all runs as one view, named by
the last part of `NAME`, with `experiment_id`, `run_id`, `arm` and `block` before the table's own columns. The unit is the last
word of a column's name. Every `t_ns`, `t_begin_ns` and `t_end_ns` is CLOCK_MONOTONIC. Counters are cumulative since before the
run: take differences.
"""
FURTHER = "Further columns come from the source: the engine, or this version of PostgreSQL."


def page() -> str:
    """The text of the page."""
    parts = [_section(name, meaning) for name, meaning in tables.TABLES.items()]
    return md.page("Tables", "`python/pgdyno/results`", INTRODUCTION, _runs(), *parts)


def _runs() -> str:
    rows = [[md.code(column), kind] for column, kind in RUNS_COLUMNS.items()]
    return f"## {RUNS_VIEW}\n\nA view only: {describe_views()[RUNS_VIEW]}.\n\n{md.table(['column', 'type'], rows)}"


def _section(name: str, meaning: str) -> str:
    rows = [[md.code(field.name), str(field.type)] for field in tables.columns(name)]
    further = FURTHER if tables.has_further_columns(name) else ""
    about = f"{meaning[0].upper()}{meaning[1:]}."
    return "\n\n".join(part for part in (f"## {name}", about, md.table(["column", "type"], rows), further) if part)
