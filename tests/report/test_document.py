"""The JSON document: its fields, its schema, and the schema in the tree."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.report import document
from pgdyno.report.document import CompareDocument
from tools import schemas

from ..analysis.synthetic import Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_document_has_the_published_fields(comparison: Comparison, tmp_path: Path) -> None:
    made = json.loads(document(comparison, tmp_path / "report.html").model_dump_json())
    assert {"command", "seed", "arms", "ratios", "report"} <= set(made)
    arm = made["arms"][0]
    assert {"volume", "tps", "latency_ms", "disk", "usd_per_month", "valid", "why_invalid"} <= set(arm)
    assert set(arm["tps"]) == {"mean", "low", "high", "n", "degrees"}
    assert set(arm["latency_ms"]) == {"p50", "p95", "p99"}
    for item in arm["latency_ms_of_runs"].values():
        assert 0 < item["low"] < item["mean"] < item["high"]
        assert item["n"] == arm["tps"]["n"] > 1
    assert set(arm["latency_ms_of_runs"]) == set(arm["latency_ms"])
    assert set(arm["disk"]) == {"iops", "mib_per_s", "queue_length", "read_ms_p50", "write_ms_p50"}
    assert {"volume", "to", "metric", "ratio", "low", "high", "distinguishable"} <= set(made["ratios"][0])
    assert {"equivalent_within", "detectable_difference", "replicates_needed"} <= set(made["ratios"][0])
    assert 0 < made["noise_floor"] < 0.2
    assert {item["state"] for item in arm["steady"]} == {"too short"}
    assert made["sweep"] is None
    assert made["command"].startswith("pgdyno compare gp3:size=100GiB ")
    assert made["report"] == str(tmp_path / "report.html")


def test_document_survives_a_round_trip(comparison: Comparison) -> None:
    made = document(comparison)
    assert CompareDocument.model_validate_json(made.model_dump_json()) == made


def test_one_replicate_has_null_ends(tmp_path: Path) -> None:
    made = document(summarise(make_experiment(tmp_path, replace(Plan(), replicates=1, measure_s=20))))
    assert made.arms[0].tps.low is None
    assert made.ratios[0].low is None
    assert not made.ratios[0].distinguishable


def test_schema_in_the_tree_is_the_model_s() -> None:
    assert schemas.main(["--check"]) == 0


def test_check_notices_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(schemas, "FOLDER", tmp_path / "schema")
    assert schemas.main(["--check"]) == 1
    assert "python -m tools.schemas" in capsys.readouterr().err
    assert schemas.main([]) == 0
    assert schemas.main(["--check"]) == 0
    assert schemas.main(["--wrong"]) == 2
