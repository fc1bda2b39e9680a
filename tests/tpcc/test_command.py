"""``pgdyno drive tpcc``, and an experiment of this kind from the file to the report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.cli.main import run as pgdyno
from pgdyno.report.page import html

from ..experiment.documents import written

if TYPE_CHECKING:
    from pathlib import Path

    from ..fill.filled import Database

TRIAL = """\
schema_version = 1
replicates = 2
[world]
kind = "fake"
volume = "gp3"
[workload]
kind = "tpcc"
warehouses = 4
clients = 4
warmup = "1s"
duration = "5s"
[factors]
"workload.profile" = ["hammerdb", "spec"]
"""


@pytest.mark.usefixtures("engine")
def test_an_experiment_is_compared_by_new_orders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trial.toml"
    path.write_text(TRIAL)
    assert pgdyno(["run", str(path), "--results", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    for arm in document["arms"]:
        assert (arm["metric"], arm["tps"]) == ("nopm", None)
        figures = {name: arm["figures"][name]["value"] for name in ("tpm", "tpm_per_nopm", "nopm_per_warehouse")}
        assert figures["tpm_per_nopm"] == pytest.approx(2.3, abs=0.01)
        assert figures["tpm"] == pytest.approx(2.3 * arm["headline"]["mean"], rel=0.01)
        assert figures["nopm_per_warehouse"] == pytest.approx(arm["headline"]["mean"] / 4)
    (directory,) = (path for path in tmp_path.iterdir() if (path / "experiment.json").is_file())
    page = html(summarise(directory))
    assert "New-Orders per minute" in page
    assert "4 warehouses, derived from TPC-C" in page


@pytest.mark.usefixtures("engine")
def test_more_clients_than_warehouses_are_warned_of_before_anything_is_filled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trial.toml"
    path.write_text(TRIAL.replace("clients = 4", "clients = 5"))
    texts = ["run", str(path), "--dry-run"]
    result = "5 clients on 4 warehouses: they wait for each other's rows"
    assert pgdyno(texts) == 0
    assert f"warning: {result}" in capsys.readouterr().err
    assert pgdyno([*texts, "--json"]) == 0
    (warning,) = json.loads(capsys.readouterr().out)["warnings"]
    assert warning.startswith(result)
    # Where only some arms are like that, they are named.
    text = path.read_text().replace("clients = 5\n", "").replace("[factors]", '[factors]\n"workload.clients" = [4, 5]')
    path.write_text(text)
    assert pgdyno([*texts, "--json"]) == 0
    (warning,) = json.loads(capsys.readouterr().out)["warnings"]
    assert warning.startswith(f"clients 5 · profile hammerdb, clients 5 · profile spec: {result}")
    path.write_text(text.replace("warehouses = 4", "warehouses = 4\nall_warehouses = true"))
    assert pgdyno([*texts, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == []


def test_as_much_data_as_is_asked_for_on_a_memory(tmp_path: Path) -> None:
    file = TRIAL.replace("warehouses = 4", "data_to_memory = 2.0").replace(
        "[workload]", '[instance]\nmemory = "512MiB"\n[workload]'
    )
    arm = written(tmp_path, file).arms[0]
    # 1,024 MiB less the items, at 106 MiB a warehouse.
    assert arm.workload.sized(512 << 20).data_set().size_bytes == pytest.approx(1 << 30, rel=0.06)


@pytest.mark.usefixtures("engine")
def test_a_schema_with_other_tables_and_flags_of_other_scripts_are_refused(
    spec: Database, cluster: object, capsys: pytest.CaptureFixture[str]
) -> None:
    del cluster
    texts = ["drive", "tpcc", "--dsn", spec.dsn, "--duration", "1s", "--warmup", "0s", "--keep-invalid", "--json"]
    assert pgdyno([*texts, "--warehouses", "2", "--profile", "spec"]) == 2
    assert "the schema pgdyno_tpcc has other tables" in capsys.readouterr().err
    assert pgdyno(["drive", "tpcc", "--scale", "3"]) == 2
    assert "--scale would have no effect" in capsys.readouterr().err
    assert pgdyno(["drive", "select-only", "--warehouses", "3"]) == 2
    assert "--warehouses would have no effect" in capsys.readouterr().err
    assert pgdyno(["drive", "select-only", "--routines", "statements"]) == 2
    assert "--routines would have no effect" in capsys.readouterr().err
    assert pgdyno(["drive", "tpcc", "--routines", "statements"]) == 2
    assert "the profile hammerdb has functions or procedures" in capsys.readouterr().err
