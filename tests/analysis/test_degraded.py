"""A volume that was degraded on purpose is said in every report of its runs, with how long it was."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.validity import degraded
from pgdyno.report.page import html

from .synthetic import GP3, SECOND_NS, Plan, make_experiment
from .synthetic_parts import WARMUP_S
from .test_credit import rewrite

if TYPE_CHECKING:
    from pathlib import Path

MEASURE_S = 40
DEGRADED: dict[str, Any] = {
    "promised": False,
    "of_time_percent": 20.0,
    "lasts_s": [60, 600],
    "left_percent": [1.0, 89.0],
}


def directory_of(tmp_path: Path, document: dict[str, Any] | None, degraded_s: Any = None) -> Path:
    """One run on a volume that was degraded so; ``degraded_s`` are its seconds of it, second by second."""
    directory = make_experiment(tmp_path, Plan(arms=(GP3,), replicates=1, measure_s=MEASURE_S))
    (run,) = directory.glob("runs/*")
    record = json.loads((run / "run.json").read_text())
    record["world"]["volumes"]["data"]["spec"] |= {} if document is None else {"degradation": document}
    (run / "run.json").write_text(json.dumps(record))
    if degraded_s is not None:
        rewrite(run / "probe" / "volume.parquet", degraded_ns=degraded_s * SECOND_NS)
    return directory


def test_the_seconds_of_the_measurement_are_counted_and_the_hypothesis_is_said(tmp_path: Path) -> None:
    # From five seconds before the measurement until ten seconds in it.
    seconds = np.clip(np.arange(WARMUP_S + MEASURE_S + 1) - (WARMUP_S - 5), 0, 15).astype(np.float64)
    comparison = summarise(directory_of(tmp_path, DEGRADED, seconds))
    (result,) = degraded(comparison.arms[0].replicates[0].figures)
    assert (result.check, result.level) == ("degraded", "warn")
    assert (
        "the data volume had a part of its limits on purpose, for 10.0 of 40.0 s: 20.0 % of the time was asked for"
        in result.figure
    )
    assert "60 to 600 s at a time with 1.00 to 89.0 % left are a hypothesis" in result.figure
    assert any("on purpose" in warning for warning in comparison.arms[0].warnings)
    assert "on purpose" in html(comparison)


def test_a_promise_is_said_as_one_and_what_was_not_recorded_as_that(tmp_path: Path) -> None:
    comparison = summarise(directory_of(tmp_path, DEGRADED | {"promised": True, "of_time_percent": 0.1}))
    (result,) = degraded(comparison.arms[0].replicates[0].figures)
    assert "it was not recorded how long: 0.100 % of the time its provider leaves open" in result.figure


def test_of_any_other_volume_nothing_is_said(tmp_path: Path) -> None:
    comparison = summarise(directory_of(tmp_path, None))
    assert not list(degraded(comparison.arms[0].replicates[0].figures))
