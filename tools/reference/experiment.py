"""``experiment-file.md``: the keys of an experiment file."""

from __future__ import annotations

from pgdyno.experiment.arm import TABLES, ExperimentFile
from tools.reference import markdown as md
from tools.reference import schema

INTRODUCTION = """
Every key of an experiment file (TOML) that [`pgdyno run`](cli.md#pgdyno-run) takes; [the guide](../guide/run.md) says how to use
them. Quantities are written with their unit, in quotes: `"512MiB"`, `"30s"`. An unknown key is refused with its line and the nearest
name. [The schema](../../schema/experiment.schema.json) is for editors.
"""


def page() -> str:
    """The text of the page."""
    titles = {getattr(ExperimentFile.model_fields[name].annotation, "__name__", name): f"[{name}]" for name in TABLES}
    titles |= {
        "SysbenchOptions": "[workload.options]",
        "LoadTable": "[workload.load]",
        "BulkTable": "[workload.bulk]",
        "SqlFile": "A file of SQL",
    }
    found = schema.sections(ExperimentFile, "The file", titles)
    return md.page("Experiment file", "`python/pgdyno/experiment/tables.py` and `model.py`", INTRODUCTION, *found)
