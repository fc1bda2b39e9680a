"""``[workload.bulk]`` of an experiment file: which files, into which tables, and what does not go together."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import InputError
from pgdyno.experiment import Experiment
from pgdyno.kinds.load.options import paths_of, pattern_of, table_of
from pgdyno.workload.generated import IMDB
from pgdyno.workload.tables import BulkTables
from pgdyno.world.base import OVERHEAD_S, longest_s
from pgdyno.world.resolved import emulated_arms
from tests.experiment.documents import written

if TYPE_CHECKING:
    from pathlib import Path

FILE = """\
schema_version = 1
[world]
volume = "gp3"
[workload]
kind = "load"
[workload.bulk]
files = ["people.csv", "part-*.csv.gz@visits"]
"""
OWN = 'files = ["people.csv", "part-*.csv.gz@visits"]'
GENERATED = FILE.replace(OWN, 'generate = "imdb"\nscale = 0.5')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files, which an experiment file will stand beside."""
    (tmp_path / "people.csv").write_text("id,name\n1,Ann\n")
    for number in (2, 1):
        (tmp_path / f"part-{number}.csv.gz").write_bytes(bytes(1000))
    return tmp_path


def test_files_are_found_beside_the_experiment_file_each_with_its_table(folder: Path) -> None:
    (arm,) = written(folder, FILE).arms
    bulk = arm.workload.bulk
    assert bulk.names == ("people", "visits")
    assert bulk.sources() == {
        "people": [folder / "people.csv"],
        "visits": [folder / "part-1.csv.gz", folder / "part-2.csv.gz"],
    }
    # What is packed becomes longer; by how much is an estimate.
    assert bulk.input_bytes() > 2000 + (folder / "people.csv").stat().st_size


@pytest.mark.parametrize(
    ("entry", "pattern", "table"),
    [
        ("title.basics.tsv.gz", "title.basics.tsv.gz", "title_basics"),
        ("data/Some Names.csv", "data/Some Names.csv", "some_names"),
        ("2024.csv", "2024.csv", "_2024"),
        ("a-*.csv@rows", "a-*.csv", "rows"),
        ("me@home/a.csv", "me@home/a.csv", "a"),
        ("me@home/a.csv@rows", "me@home/a.csv", "rows"),
    ],
)
def test_a_table_is_called_as_its_file_or_as_is_said(entry: str, pattern: str, table: str) -> None:
    assert (pattern_of(entry), table_of(entry)) == (pattern, table)


def test_a_pattern_without_a_file_is_refused_before_anything_is_changed(tmp_path: Path, engine: Path) -> None:
    with pytest.raises(InputError, match=r"no file matches .*nothing-"):
        paths_of(str(tmp_path / "nothing-*.csv"))
    with pytest.raises(InputError, match=r"trial\.toml:6: workload\.bulk: no file matches .*people\.csv"):
        emulated_arms(written(tmp_path, FILE))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('["people.csv", "part-*.csv.gz@visits"]', "[]", "name the files to load"),
        ('"people.csv", ', '"people.csv", "p*.csv@people", ', "people appears twice"),
        ('"people.csv", ', '"p*.csv", ', "does not say which table is meant"),
        ('"people.csv", ', '"people.csv@No Name", ', "is not a table name"),
        ("files =", 'generate = "imdb"\nfiles =', "name the files to load"),
        (OWN, 'generate = "tpch"\nscale = 0.0015', "tpch is made at multiples of 0.001"),
        (OWN, 'generate = "tpch"\nscale = 0.0004', "tpch is made at multiples of 0.001"),
        (OWN, 'generate = "imdb"\nscale = 10.5', "imdb is made at up to 10"),
        (OWN, 'generate = "tpch"\nscale = 1001', "workload.bulk.scale"),
        (OWN, 'generate = "tpch"\ntables = ["title_ratings"]', "there is no generated table `title_ratings`"),
        ("files =", "scale = 0.5\nfiles =", "scale is for files that are generated"),
        ("files =", "connections = 257\nfiles =", "workload.bulk.connections"),
        ("files =", 'tuned = false\nindexes = "rebuild"\nfiles =', "with tuned = false indexes are kept"),
        ('kind = "load"', 'kind = "load"\nclients = 4', "workload.clients: a load has no transactions"),
        ('kind = "load"', 'kind = "load"\nduration = "9s"', "workload.duration: a load has no transactions"),
        ('kind = "load"', 'kind = "load"\nscale = 4', "workload.scale: it is for kind"),
        ('kind = "load"', 'kind = "pgbench"', 'workload.bulk: it is for kind = "load"'),
        ('volume = "gp3"', 'kind = "real"\ndsn = "host=db.example"', "each run of a load begins with empty tables"),
    ],
)
def test_what_does_not_go_together_is_named(old: str, new: str, said: str, folder: Path) -> None:
    assert old in FILE
    with pytest.raises(InputError) as raises:
        written(folder, FILE.replace(old, new))
    assert said in raises.value.message


def test_an_unknown_generated_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no generated table `title_names`"):
        written(tmp_path, GENERATED + 'tables = ["title_names"]\n')


def test_orders_and_tuning_are_factors(tmp_path: Path) -> None:
    text = (
        GENERATED
        + '[factors]\n"workload.bulk.order" = ["one-after-another", "parallel"]\n"workload.bulk.tuned" = [false, true]\n'
    )
    result = written(tmp_path, text)
    assert [arm.label for arm in result.arms] == [
        "order one-after-another · tuned off",
        "order one-after-another · tuned on",
        "order parallel · tuned off",
        "order parallel · tuned on",
    ]
    assert [arm.workload.bulk.tuned for arm in result.arms] == [False, True, False, True]


def test_tables_begin_empty_and_their_room_is_that_of_the_loaded_ones(tmp_path: Path, engine: Path) -> None:
    (arm,) = emulated_arms(written(tmp_path, GENERATED + 'tables = ["title_ratings"]\n'), to_run=False)
    tables = arm.arm.workload.data_set()
    assert isinstance(tables, BulkTables)
    assert tables.definitions == 'CREATE TABLE title_ratings ("tconst" text, "averageRating" text, "numVotes" text);'
    assert tables.size_bytes > tables.input_bytes == IMDB.input_bytes(["title_ratings"], 0.5)


def test_definitions_are_kept_with_the_experiment(folder: Path) -> None:
    (folder / "tables.sql").write_text("CREATE TABLE people (id int PRIMARY KEY, name text);\n")
    result = written(folder, FILE.replace("files =", 'definitions = "tables.sql"\nfiles ='))
    recorded = json.loads(json.dumps(result.settings()))
    (folder / "tables.sql").unlink()
    again = Experiment.of({"schema_version": 1, "name": result.name, **recorded})
    assert again.whole() == result.whole()
    definitions = again.arms[0].workload.bulk.definitions
    assert definitions is not None
    assert definitions.text.startswith("CREATE TABLE people")
    with pytest.raises(InputError, match=r"trial\.toml:7: workload\.bulk\.definitions: .*tables\.sql cannot be read"):
        written(folder, FILE.replace("files =", 'definitions = "tables.sql"\nfiles ='))


def test_a_load_is_reckoned_by_its_files_and_not_by_a_duration(tmp_path: Path) -> None:
    small, large = (written(tmp_path, GENERATED.replace("0.5", scale)).cells[0] for scale in ("0.01", "0.1"))
    assert longest_s(large) - OVERHEAD_S == pytest.approx(10 * (longest_s(small) - OVERHEAD_S), rel=0.01)
