"""CloudWatch's metrics beside a watch of a server that is elsewhere."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from pgdyno.advise.diagnose.diagnosis import diagnose
from pgdyno.advise.diagnose.files import sources_of
from pgdyno.advise.diagnose.remedies import purchase_of
from pgdyno.base.errors import InputError
from pgdyno.cli.main import cli
from pgdyno.results import open_run

from ..analysis.synthetic import GP3, GP3_WAITS, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

PERIOD_S = 60
PAGE = 8192
RATES = {"VolumeReadOps": 1800.0, "VolumeWriteOps": 1190.0}
"""Together 2,990 a second, of 3,000 that a gp3 has."""


@pytest.fixture
def watched(tmp_path: Path) -> Path:
    """A watch of a remote server whose sessions wait for its volume: SQL alone."""
    from dataclasses import replace

    arm = replace(GP3, waits=GP3_WAITS)
    made = make_experiment(tmp_path / "results", Plan(arms=(arm,), replicates=1, measure_s=20))
    path = next(made.glob("runs/*"))
    for table in ("disk", "volume", "volume_latency", "instance", "cpu"):
        (path / f"probe/{table}.parquet").unlink(missing_ok=True)
    record = json.loads((path / "run.json").read_text())
    record["workload"] = {"kind": "observe", "role": "monitor", "standby": False, "pooler": False}
    record["world"] |= {"kind": "real", "volume": {}, "attach": {}, "volumes": {}}
    (path / "run.json").write_text(json.dumps(record))
    return path


def metrics(path: Path, watched: Path, late_s: float = 0.0, limited: float | None = None) -> str:
    """A file of three periods around the watch, or of ``late_s`` later; 8 KiB a request, 5 ms each."""
    record = open_run(watched).record
    begin_s = record.anchor.to_unix_ns(record.measure.begin_ns) / 1e9 + late_s
    first = int(begin_s // PERIOD_S - 1) * PERIOD_S
    times = [f"{datetime.fromtimestamp(first + PERIOD_S * place, UTC):%Y-%m-%dT%H:%M:%S}+00:00" for place in range(3)]
    read, write = RATES.values()
    values = {
        **{name: rate * PERIOD_S for name, rate in RATES.items()},
        "VolumeReadBytes": read * PERIOD_S * PAGE,
        "VolumeWriteBytes": write * PERIOD_S * PAGE,
        "VolumeTotalReadTime": read * PERIOD_S * 0.005,
        "VolumeTotalWriteTime": write * PERIOD_S * 0.005,
        "VolumeQueueLength": 15.0,
    }
    if limited is not None:
        values["VolumeIOPSExceededCheck"] = limited
    results = [
        {
            "Id": f"m{place}",
            "Label": f"vol-0a1b2c3d {name}",
            "Timestamps": times,
            "Values": [value] * 3,
            "StatusCode": "Complete",
        }
        for place, (name, value) in enumerate(values.items())
    ]
    path.write_text(json.dumps({"MetricDataResults": results, "Messages": []}))
    return str(path)


def test_sql_alone_names_no_volume_and_says_what_would_show_it(watched: Path) -> None:
    diagnosis = diagnose(watched)
    assert diagnosis.binding.verdict.confidence != "high"
    assert diagnosis.binding.verdict.limit != "volume_iops"
    assert any("no block device" in text for text in diagnosis.missing)


def test_a_volume_at_its_limit_is_named_by_its_metrics(watched: Path, tmp_path: Path) -> None:
    file = metrics(tmp_path / "metrics.json", watched, limited=1.0)
    diagnosis = diagnose(watched, purchase_of(["gp3"], None), sources_of({"--cloudwatch": [file]}))
    verdict = diagnosis.binding.verdict
    assert (verdict.limit, verdict.role, verdict.confidence) == ("volume_iops", "data", "high")
    assert diagnosis.evidence[0] == "2,990 IOPS of 3,000 bought"
    assert (
        diagnosis.evidence[-1]
        == "by CloudWatch's checks the IOPS limit of the data volume was exceeded in 100 % of the time"
    )
    assert diagnosis.remedy is not None
    assert diagnosis.remedy.usd_per_month is not None
    assert sum(consumer.iops for consumer in diagnosis.consumers) == pytest.approx(2990, rel=0.01)


def test_without_what_was_bought_no_limit_of_a_volume_is_named(watched: Path, tmp_path: Path) -> None:
    diagnosis = diagnose(watched, None, sources_of({"--cloudwatch": [metrics(tmp_path / "metrics.json", watched)]}))
    assert diagnosis.binding.verdict.limit == "volume_latency"
    assert diagnosis.binding.verdict.confidence == "low"


@pytest.mark.parametrize(("pages_per_s", "limit"), [(2300, "checkpoints"), (600, "volume_iops")])
def test_checkpoints_that_move_most_of_a_remote_volumes_bytes_are_named(
    watched: Path, tmp_path: Path, pages_per_s: int, limit: str
) -> None:
    """One each three seconds. The volume moves 2,990 pages of 8 KiB a second by its metrics; the host shows nothing of it."""
    table = watched / "probe/checkpointer.parquet"
    rows = pq.read_table(table)
    every = {
        "num_timed": [0] * rows.num_rows,
        "num_requested": [second // 3 for second in range(rows.num_rows)],
        "num_done": [second // 3 for second in range(rows.num_rows)],
        "buffers_written": [second * pages_per_s for second in range(rows.num_rows)],
    }
    for name, values in every.items():
        place = rows.column_names.index(name)
        rows = rows.set_column(place, name, pa.array(values, rows.schema.field(name).type))
    pq.write_table(rows, table)
    file = metrics(tmp_path / "metrics.json", watched, limited=1.0)
    diagnosis = diagnose(watched, purchase_of(["gp3"], None), sources_of({"--cloudwatch": [file]}))
    assert (diagnosis.binding.verdict.limit, diagnosis.binding.verdict.confidence) == (limit, "high")


def test_metrics_of_another_time_are_refused(watched: Path, tmp_path: Path) -> None:
    file = metrics(tmp_path / "metrics.json", watched, late_s=3600)
    with pytest.raises(InputError, match=r"has metrics of 20.* to 20.*, and the server was watched from 20"):
        diagnose(watched, None, sources_of({"--cloudwatch": [file]}))


def test_a_run_of_an_experiment_takes_no_metrics(tmp_path: Path) -> None:
    made = make_experiment(tmp_path, Plan(arms=(GP3,), replicates=1, measure_s=20))
    with pytest.raises(InputError, match="is not a watch"):
        diagnose(made, purchase_of(["gp3"], None))


def test_metrics_are_for_a_watch_that_was_kept(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["diagnose", "dbname=app", "--cloudwatch", str(tmp_path / "metrics.json")])
    assert isinstance(result.exception, InputError)
    assert "watch with --keep" in result.exception.remedy
