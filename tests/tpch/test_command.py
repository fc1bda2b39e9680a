"""``pgdyno drive tpch``, experiments of this kind, and what they refuse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import InputError
from pgdyno.cli.main import run as pgdyno
from pgdyno.flow.plan import plan
from pgdyno.results import open_experiment

from ..experiment.documents import written
from ..fill.filled import Database

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

TRIAL = """\
schema_version = 1
replicates = 2
[world]
volume = "null"
[workload]
kind = "tpch"
profile = "spec"
scale_factor = 0.01
duration = "60s"
"""
EXISTING = """\
schema_version = 1
replicates = 2
[world]
kind = "real"
dsn = "{}"
[workload]
kind = "tpch"
profile = "spec"
scale_factor = 0.01
queries = [6, 15]
duration = "2min"
"""


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("scale_factor = 0.01", "scale_factor = 0.0005", "trial.toml:8: workload.scale_factor: "),
        ("scale_factor = 0.01", "scale_factor = 1001", "trial.toml:8: workload.scale_factor: "),
        ("scale_factor = 0.01", "scale_factor = 0.0105", "0.0105 is not a whole number of thousandths"),
        ("scale_factor = 0.01", "scale_factor = 0.012", "partsupp has no primary key"),
        ("scale_factor = 0.01", "queries = [1, 23]", "trial.toml:8: workload.queries"),
        ("scale_factor = 0.01", "queries = [1, 1]", "numbers from 1 to 22, each once"),
        ("scale_factor = 0.01", "rate_per_s = 5", "a stream asks its next query when the last one has ended"),
        ("scale_factor = 0.01", "think_ms = 5", "a stream asks its next query when the last one has ended"),
        ("scale_factor = 0.01", "names_match = true", 'it is for kind = "tpcc"'),
        ("scale_factor = 0.01", 'clients = 2\nrefresh = "power"', '"power" is for one stream, and there are 2'),
        (
            "scale_factor = 0.01",
            'clients = 20\nquery_sets = 51\nrefresh = "stream"',
            "1,020 sets would delete all orders",
        ),
        ("scale_factor = 0.01", 'refresh = "all"', "trial.toml:8: workload.refresh"),
        ("scale_factor = 0.01", "clients = 0", "trial.toml:8: workload.clients"),
        ('profile = "spec"', 'profile = "tpcd"', "trial.toml:7: workload.profile"),
        ("scale_factor = 0.01", "scale_factor = 0.01\ndata_to_memory = 2", "it sets the amount of data, and so does"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_key_before_anything_is_filled(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        plan(written(tmp_path, TRIAL.replace(old, new)))
    assert said in caught.value.message
    assert caught.value.remedy


def test_more_parallel_workers_than_the_server_gives_are_warned_of_before_anything_is_filled(tmp_path: Path) -> None:
    answer = TRIAL.replace('profile = "spec"', "clients = 10\ndegree = {}") + "[postgres.parameters]\n{}\n"

    def warned(degree: int, parameters: str = "") -> list[str]:
        return plan(written(tmp_path, answer.format(degree, parameters)), to_run=False).warnings

    (text,) = warned(2)
    assert text.startswith(
        "the streams may ask for 20 parallel workers at a time, and the server gives 8: some queries run with fewer"
    )
    assert warned(0) == []
    (result,) = warned(2, "max_parallel_workers = 32")
    assert "gives 8" in result, "max_worker_processes limits it too"
    assert warned(2, "max_parallel_workers = 32\nmax_worker_processes = 40") == []


def test_as_much_data_as_is_asked_for_on_a_memory(tmp_path: Path) -> None:
    file = TRIAL.replace("scale_factor = 0.01", "data_to_memory = 2.0") + '[instance]\nmemory = "512MiB"\n'
    workload = written(tmp_path, file).arms[0].workload
    assert workload.sized(512 << 20).data_set().size_bytes == pytest.approx(1 << 30, rel=0.02)


@pytest.mark.usefixtures("engine")
def test_options_that_would_have_no_effect_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for element, item in (
        (["tpch", "--rate", "5"], "--rate would have no effect: streams"),
        (["tpch", "--warehouses", "2", "--warmup", "1s"], "--warehouses and --warmup would have no effect"),
        (["tpcc", "--degree", "2"], "--degree would have no effect: it is for `tpch`"),
        (["tpch", "--scale-factor", "0.0001"], "scale_factor"),
    ):
        assert pgdyno(["drive", *element]) == 2
        assert item in capsys.readouterr().err


@pytest.mark.usefixtures("engine")
def test_tables_that_are_there_are_driven_and_others_refused(
    spec: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["drive", "tpch", "--dsn", spec.dsn, "--profile", "spec", "--json"]
    assert pgdyno([*texts, "--scale-factor", "1"]) == 2
    assert "the schema pgdyno_tpch has other tables" in capsys.readouterr().err
    assert pgdyno([*texts, "--scale-factor", "0.01", "--clients", "2", "--degree", "0"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["valid"], document["succeeded"], document["workload"]["degree"]) == (True, 44, 0)
    assert document["query_s"].keys() == {str(query) for query in range(1, 23)}
    assert {row["stream"] for row in document["queries"]} == {1, 2}
    assert not any("Gather" in row["plan"] for row in document["queries"])


@pytest.mark.usefixtures("engine")
def test_refresh_functions_are_told_apart_from_the_queries(
    spec: Database, clone: Callable[[Database], Database], capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["drive", "tpch", "--dsn", clone(spec).dsn, "--profile", "spec", "--scale-factor", "0.01"]
    texts += ["--clients", "1", "--refresh", "power"]
    assert pgdyno(texts) == 0
    out = capsys.readouterr().out
    assert "refresh function, in none of these figures: 10 orders inserted in" in out
    assert "10 orders deleted in" in out
    assert pgdyno(texts) == 1
    assert "load the tables again" in capsys.readouterr().err


@pytest.mark.usefixtures("engine")
def test_a_role_that_may_not_make_the_tables_is_told_in_one_sentence(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster.connect() as connection:
        connection.execute("CREATE DATABASE theirs")
        connection.execute("CREATE ROLE reader LOGIN")
    path = tmp_path / "trial.toml"
    dsn = Database(cluster, "theirs").dsn.replace("user=postgres", "user=reader")
    for kind in ("tpch", "tpcc"):
        result = EXISTING.format(dsn).replace('kind = "tpch"', f'kind = "{kind}"')
        path.write_text(
            result if kind == "tpch" else result.replace("scale_factor = 0.01\nqueries = [6, 15]\n", "warehouses = 1\n")
        )
        assert pgdyno(["run", str(path), "--results", str(tmp_path / "results"), "--yes-create"]) == 2
        text = " ".join(capsys.readouterr().err.split())
        assert "the role reader may not create a schema in the database theirs" in text
        assert "GRANT CREATE ON DATABASE theirs TO reader" in text
    with cluster.connect() as connection:
        connection.execute("DROP ROLE reader")


@pytest.mark.usefixtures("engine")
def test_an_existing_server_gets_the_tables_when_it_may_and_runs_agree(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster.connect() as connection:
        connection.execute("CREATE DATABASE mine")
    database, file = Database(cluster, "mine"), tmp_path / "trial.toml"
    file.write_text(EXISTING.format(database.dsn.replace("'", "")))
    texts = ["run", str(file), "--results", str(tmp_path / "results"), "--json", "--keep-invalid"]
    assert pgdyno(texts) == 2
    assert "without --yes-create" in capsys.readouterr().err
    assert pgdyno([*texts, "--yes-create"]) == 0
    (arm,) = json.loads(capsys.readouterr().out)["arms"]
    assert arm["metric"] == "geomean_s"
    assert arm["queries"]["query_s"].keys() == {"6", "15"}
    (directory,) = (tmp_path / "results").iterdir()
    for run in open_experiment(directory).runs:
        assert [check for check in run.record.checks if not check.ok] == []
        assert run.record.streams is not None
        assert run.table("workload/query").num_rows == 2
    assert database.rows("SELECT count(*) FROM pgdyno_tpch.region") == [(5,)]
