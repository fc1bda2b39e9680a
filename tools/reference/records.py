"""``records.md``: the JSON documents of a results folder."""

from __future__ import annotations

from pgdyno.results.record import ExperimentRecord, LoadRecord, RunRecord
from tools.reference import markdown as md
from tools.reference import schema

INTRODUCTION = """
`experiment.json` describes the experiment, `run.json` one run, `load.json` how a data set was filled. All are
written once and never changed. A
record holds no verdict: figures are derived from it and from the [tables](tables.md) beside it. Instants are nanoseconds
of CLOCK_MONOTONIC; `anchor` ties that clock to the calendar.
"""


def page() -> str:
    """The text of the page."""
    result = schema.sections(ExperimentRecord, "experiment.json")
    result += [part for part in schema.sections(RunRecord, "run.json") if part not in result]
    result += [part for part in schema.sections(LoadRecord, "load.json") if part not in result]
    return md.page("Records", "`python/pgdyno/results/record.py`, `load_record.py`", INTRODUCTION, *result)
