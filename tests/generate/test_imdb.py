"""Files in the shape of IMDb's: plain COPY takes them, into columns with types, and they agree with each other."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from psycopg import sql

from pgdyno.cli import main as cli_main
from pgdyno.workload.generated import IMDB, IMDB_COLUMNS, IMDB_TABLES

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

SCALE = 0.001
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "imdb.md"
COLUMNS = {
    "name.basics": "nconst text PRIMARY KEY, primaryName text NOT NULL, birthYear int, deathYear int,"
    " primaryProfession text, knownForTitles text",
    "title.akas": "titleId text, ordering int, title text NOT NULL, region text, language text, types text,"
    " attributes text, isOriginalTitle boolean NOT NULL, PRIMARY KEY (titleId, ordering)",
    "title.basics": "tconst text PRIMARY KEY, titleType text NOT NULL, primaryTitle text NOT NULL,"
    " originalTitle text NOT NULL, isAdult boolean NOT NULL, startYear int, endYear int, runtimeMinutes int, genres text",
    "title.crew": "tconst text PRIMARY KEY, directors text, writers text",
    "title.episode": "tconst text PRIMARY KEY, parentTconst text NOT NULL, seasonNumber int, episodeNumber int",
    "title.principals": "tconst text, ordering int, nconst text NOT NULL, category text NOT NULL, job text,"
    " characters jsonb, PRIMARY KEY (tconst, ordering)",
    "title.ratings": "tconst text PRIMARY KEY, averageRating numeric(3, 1) NOT NULL, numVotes int NOT NULL",
}
"""Stricter than the tables of the published benchmark, whose columns are all text."""


@dataclass(frozen=True)
class Made:
    """The files, and what was said of them."""

    folder: Path
    summary: dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """All seven files of a thousandth, compressed."""
    import contextlib
    import io

    folder = tmp_path_factory.mktemp("imdb") / "files"
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert (
            cli_main.run(["data", "generate", "imdb", f"--scale={SCALE}", f"--out={folder}", "--gzip", "--json"]) == 0
        )
    return Made(folder, json.loads(out.getvalue()))


@pytest.fixture(scope="module")
def loaded(cluster: Cluster, made: Made) -> Cluster:
    """The files in tables of their names."""
    with cluster.connect() as connection:
        for name, columns in COLUMNS.items():
            table = name.replace(".", "_")
            connection.execute(f"CREATE TABLE {table} ({columns})".encode())
            copy = sql.SQL("COPY {} FROM STDIN (HEADER)").format(sql.Identifier(table))
            with gzip.open(made.folder / f"{name}.tsv.gz") as file, connection.cursor().copy(copy) as rows:
                while part := file.read(1 << 20):
                    rows.write(part)
    return cluster


def one(cluster: Cluster, query: str) -> Any:
    """The first value of a query."""
    with cluster.connect() as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]


def test_copy_takes_every_row_into_columns_with_types(loaded: Cluster, made: Made) -> None:
    document = {file["name"]: file["rows"] for file in made.summary["files"]}
    assert document.keys() == COLUMNS.keys()
    for name, rows in document.items():
        assert one(loaded, f"SELECT count(*) FROM {name.replace('.', '_')}") == rows
    assert made.summary["rows"] == sum(document.values())
    # A thousandth of 204 million; the counts of titles that have rows vary by half a per cent (four standard deviations).
    assert made.summary["rows"] == pytest.approx(204_295.502, rel=0.02)


def test_the_tables_of_a_load_have_the_columns_that_the_files_have(made: Made) -> None:
    assert set(IMDB_COLUMNS) == {file["name"] for file in made.summary["files"]}
    for name, columns in IMDB_COLUMNS.items():
        with gzip.open(made.folder / f"{name}.tsv.gz", "rt") as file:
            assert tuple(file.readline().rstrip("\n").split("\t")) == columns
    number = sum(file["bytes"] for file in made.summary["files"])
    assert IMDB.input_bytes(IMDB_TABLES, SCALE) == pytest.approx(number, rel=0.1), "what estimates are fed"


def test_ids_lead_from_file_to_file(loaded: Cluster) -> None:
    for table, column in (("akas", "titleId"), ("crew", "tconst"), ("episode", "parentTconst"), ("ratings", "tconst")):
        strangers = f"SELECT count(*) FROM title_{table} t LEFT JOIN title_basics b ON b.tconst = t.{column}"
        assert one(loaded, f"{strangers} WHERE b.tconst IS NULL") == 0, table
    nobody = "SELECT count(*) FROM title_principals p LEFT JOIN name_basics n USING (nconst) WHERE n.nconst IS NULL"
    assert one(loaded, nobody) == 0
    of_series = "SELECT count(*) FROM title_episode e JOIN title_basics b ON b.tconst = e.parentTconst"
    assert one(loaded, f"{of_series} WHERE b.titleType NOT IN ('tvSeries', 'tvMiniSeries')") == 0


def test_nulls_and_text_are_as_they_should_be(loaded: Cluster) -> None:
    share = "SELECT avg((endYear IS NULL)::int)::float8 FROM title_basics"
    assert one(loaded, share) == pytest.approx(0.9875, abs=0.005)  # four standard deviations of 12,323 rows
    assert one(loaded, "SELECT count(*) FROM title_basics WHERE primaryTitle = ''") == 0
    assert one(loaded, "SELECT count(*) FROM title_akas WHERE title ~ '[^\\x01-\\x7f]'") > 1000, "several scripts"
    assert one(loaded, "SELECT count(*) FROM title_basics WHERE primaryTitle LIKE '%\"%'") > 0, "quotation marks"
    assert one(loaded, "SELECT count(*) FROM title_principals WHERE jsonb_typeof(characters) <> 'array'") == 0


def test_a_file_alone_is_the_same_file(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["data", "generate", "imdb", f"--scale={SCALE}", f"--out={tmp_path}", "--file=title.ratings", "--threads=1"]
    assert cli_main.run(words) == 0
    readouterr = capsys.readouterr()
    assert "title.ratings.tsv" in readouterr.out and " rows in " in readouterr.err
    with gzip.open(made.folder / "title.ratings.tsv.gz") as packed:
        assert (tmp_path / "title.ratings.tsv").read_bytes() == packed.read()
    assert [path.name for path in tmp_path.iterdir()] == ["title.ratings.tsv"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--scale=0"], "the scale is 0"),
        (["--scale=0.001", "--file=title.cast"], "there is no file title.cast"),
    ],
)
def test_what_cannot_be_made_is_refused(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli_main.run(["data", "generate", "imdb", f"--out={tmp_path / 'files'}", *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "files").exists()


def test_a_disk_is_not_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=2**30))
    assert cli_main.run(["data", "generate", "imdb", "--scale=1", f"--out={tmp_path / 'files'}"]) == 3
    assert "has 1.0 GiB left" in capsys.readouterr().err


def test_the_reference_names_every_file_and_column(made: Made) -> None:
    text = PAGE.read_text()
    for name in COLUMNS:
        with gzip.open(made.folder / f"{name}.tsv.gz", "rt") as file:
            columns = file.readline().split()
        (row,) = re.findall(rf"^\| `{re.escape(name)}` \|.*$", text, re.MULTILINE)
        assert all(f"`{column}`" in row for column in columns), name
