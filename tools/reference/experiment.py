"""``experiment-file.md``: the keys of an experiment file."""

from __future__ import annotations

from pgdyno.experiment.arm import TABLES, ExperimentFile
from pgdyno.kinds.registry import KINDS
from tools.reference import markdown as md
from tools.reference import schema

INTRODUCTION = """
Every key of an experiment file (TOML) that [`pgdyno run`](cli.md#pgdyno-run) takes; [the guide](../guide/run.md) says how to use
them. Quantities are written with their unit, in quotes: `"512MiB"`, `"30s"`. An unknown key is refused with its line and the nearest
name. [The schema](../../schema/experiment.schema.json) is for editors.
"""

_PARTS = {
    "Clients": "kinds whose clients send transactions",
    "FilledKind": "kinds whose tables are filled",
    "OnPgbenchTables": "kinds on the tables of pgbench",
}
"""Models that kinds of workload descend from, and which kinds these are."""


def page() -> str:
    """The text of the page."""
    titles = {getattr(ExperimentFile.model_fields[name].annotation, "__name__", name): f"[{name}]" for name in TABLES}
    titles |= {name: f"[workload], {which}" for name, which in _PARTS.items()}
    titles |= {kind.__name__: f"[workload], kind {name}" for name, kind in KINDS.items()}
    titles |= {
        "SysbenchOptions": "[workload.options]",
        "LoadTable": "[workload.load]",
        "BulkTable": "[workload.bulk]",
        "DatabaseTable": "[workload.database]",
        "EventTable": "[[event]]",
        "CrashTable": "[crash]",
        "SqlFile": "A file of SQL",
    }
    sections = schema.sections(ExperimentFile, "The file", titles)
    return md.page(
        "Experiment file",
        "`python/pgdyno/experiment/arm.py` and `python/pgdyno/workload/kind`",
        INTRODUCTION,
        *sections,
    )
