"""``settings.md``: what pgdyno sets in PostgreSQL, and what it refuses to set."""

from __future__ import annotations

from pgdyno.server.settings import FORBIDDEN, tuned_settings
from tools.reference import markdown as md

GIB = 1 << 30
MEMORIES = {"512 MiB": GIB // 2, "4 GiB": 4 * GIB, "16 GiB": 16 * GIB, "128 GiB": 128 * GIB}
"""Instances that the columns show."""

INTRODUCTION = """
`--settings tuned` (the default; `postgres.settings` of an experiment file) is a plain set of values for the instance's memory, listed below
for some sizes. `--settings defaults` uses the server's defaults. `--setting NAME=VALUE` adds one to either of them. All
settings in force are recorded with the run in [postgres/settings](tables.md#postgressettings).
"""


def page() -> str:
    """The text of the page."""
    by_memory = [tuned_settings(memory_bytes) for memory_bytes in MEMORIES.values()]
    rows = []
    for same in zip(*by_memory, strict=True):
        rows.append([md.code(same[0].name), *(setting.value for setting in same), same[0].reason])
    refused = [[md.code(f"{name} = {value}")] for name, value in FORBIDDEN.items()]
    return md.page(
        "PostgreSQL's settings",
        "`python/pgdyno/server/settings.py`",
        INTRODUCTION,
        "## tuned",
        md.table(["setting", *MEMORIES, "why"], rows),
        "## Refused",
        "These make PostgreSQL a different database, with the numbers of a different database.",
        md.table(["setting"], refused),
    )
