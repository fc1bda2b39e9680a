"""The seven files of ``pgdyno data generate imdb``: their columns, how large they are, and tables that take them.

All columns are text, and there is neither a key nor an index, as in the published benchmark of bulk loading ("Optimized
bulk loading in Amazon RDS for PostgreSQL", AWS database blog): for others use ``definitions``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.workload.generated import GeneratedSet

COLUMNS: dict[str, tuple[str, ...]] = {
    "name.basics": ("nconst", "primaryName", "birthYear", "deathYear", "primaryProfession", "knownForTitles"),
    "title.akas": (
        "titleId",
        "ordering",
        "title",
        "region",
        "language",
        "types",
        "attributes",
        "isOriginalTitle",
    ),
    "title.basics": (
        "tconst",
        "titleType",
        "primaryTitle",
        "originalTitle",
        "isAdult",
        "startYear",
        "endYear",
        "runtimeMinutes",
        "genres",
    ),
    "title.crew": ("tconst", "directors", "writers"),
    "title.episode": ("tconst", "parentTconst", "seasonNumber", "episodeNumber"),
    "title.principals": ("tconst", "ordering", "nconst", "category", "job", "characters"),
    "title.ratings": ("tconst", "averageRating", "numVotes"),
}
"""File -> its header (docs/reference/imdb.md has where it comes from)."""

_BYTES: dict[str, float] = {
    "name.basics": 15_122_182 * 60,
    "title.akas": 55_294_765 * 48,
    "title.basics": 12_323_467 * 84,
    "title.crew": 12_325_801 * 32,
    "title.episode": 9_514_619 * 25,
    "title.principals": 98_073_271 * 43,
    "title.ratings": 1_641_397 * 17,
}
"""Rows at scale 1 times bytes of a row, about (docs/reference/imdb.md); it only feeds estimates."""

TABLES: dict[str, str] = {file.replace(".", "_"): file for file in COLUMNS}
"""Table -> the file that is loaded into it."""


def definitions(tables: Sequence[str], scale: float) -> str:
    """SQL that makes the tables, at any scale."""
    del scale
    return "\n".join(f"CREATE TABLE {table} ({_columns(TABLES[table])});" for table in tables)


def _columns(file: str) -> str:
    return ", ".join(f'"{name}" text' for name in COLUMNS[file])


SET = GeneratedSet(
    name="imdb",
    files=TABLES,
    bytes_at_1={table: _BYTES[file] for table, file in TABLES.items()},
    scale_most=10,
    definitions=definitions,
)
