"""Files about a server's volumes: beside a watch, and alone; what they prove, and what is refused."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from pgdyno.advise.diagnose.diagnosis import begin_s, diagnose, diagnose_files
from pgdyno.advise.diagnose.document import document
from pgdyno.advise.diagnose.files import sources_of
from pgdyno.advise.diagnose.remedies import purchase_of
from pgdyno.advise.diagnose.words import lines
from pgdyno.advise.size.reading.counters import CHECKS
from pgdyno.base.errors import InputError
from pgdyno.cli.main import cli

from ..size import formats
from .test_cloudwatch import watched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pgdyno.advise.diagnose.diagnosis import Diagnosis

__all__ = ["watched"]

FULL = [formats.Interval(1800, 1190, 14_400, 9_520)] * 30
"""At what a gp3 does: 2,990 requests of 8 KiB a second."""
QUIET = [formats.Interval(500, 400, 4_000, 3_200)] * 30
SYSSTAT: dict[str, Callable[..., str]] = {
    "--iostat 10": formats.iostat_10,
    "--iostat 12.0": formats.iostat_12_0,
    "--iostat 12.7": formats.iostat_12_7,
    "--iostat JSON": formats.iostat_json,
    "--sar 10": formats.sar_10,
    "--sar 12": formats.sar_12,
    "--sar sadf -j": formats.sadf_json,
    "--sar sadf -d": formats.sadf_database,
}


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of this machine, which is what files without a zone are read by."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture
def at_begin(watched: Path) -> Path:
    """The watch of a remote server, of the time that :mod:`tests.size.formats` has: over midnight, at its fourth second."""
    record = json.loads((watched / "run.json").read_text())
    begin_ns = next(phase["begin_ns"] for phase in record["phases"] if phase["name"] == "measure")
    record["anchor"] = {"monotonic_ns": begin_ns, "unix_ns": int((formats.BEGIN.timestamp() + 4) * 1e9)}
    (watched / "run.json").write_text(json.dumps(record))
    return watched


def page(
    second: float, ops_per_s: float = 2990.0, shares: dict[str, float] | None = None, names: str = "ec2_instance_ebs"
) -> dict[str, Any]:
    """The counters of a volume that has been attached for an hour and ``second`` seconds; half of the requests are reads."""
    for_s = 3600 + second
    ops = round(ops_per_s * for_s / 2)
    every = {f"total_{way}_{what}": value for way in ("read", "write")
             for what, value in (("ops", ops), ("bytes", ops * 8192), ("time", ops * 5000))}  # fmt: skip
    counted = {key: round(1e6 * (shares or {}).get(check, 0.0) * for_s) for key, check in CHECKS.items()}
    renamed = {key.replace("ec2_instance_ebs", names): value for key, value in counted.items()}
    return {**every, **renamed, "volume_queue_length": 15, "read_io_latency_histogram": {"num_bins": 0, "bins": []}}


def as_text(document: dict[str, Any]) -> str:
    """As ``ebsnvme stats`` prints it."""
    values = list(document.values())
    return (
        "Total Ops\n  Read: {0}\n  Write: {3}\nTotal Bytes\n  Read: {1}\n  Write: {4}\nTotal Time (us)\n  Read: {2}\n  Write: {5}\n"
        "EBS Volume Performance Exceeded (us)\n  IOPS: {6}\n  Throughput: {7}\nEC2 Instance EBS Performance Exceeded (us)\n"
        "  IOPS: {8}\n  Throughput: {9}\nQueue Length (point in time): 15 \n\nRead IO Latency Histogram (us)\nNumber of bins: 1\n"
        "=================================\nLower       Upper        IO Count\n[0        - 1       ] => 12\n"
    ).format(*values)


def series(path: Path, begin: datetime, readings: Sequence[tuple[float, str]]) -> Path:
    """A file of readings, each below its time."""
    parts = [f"{(begin + timedelta(seconds=second)).isoformat()}\n{text}\n" for second, text in readings]
    path.write_text("".join(parts))
    return path


def beside(watch: Path, flag: str, file: Path, bought: str = "gp3") -> Diagnosis:
    return diagnose(watch, purchase_of([bought], None), sources_of({flag: [str(file)]}, (), begin_s(watch)))


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("name", SYSSTAT)
def test_each_program_shows_a_volume_at_its_limit_at_the_time_of_the_watch(
    at_begin: Path, tmp_path: Path, name: str
) -> None:
    flag = name.partition(" ")[0]
    file = tmp_path / "load"
    file.write_text(SYSSTAT[name](FULL, 1))
    diagnosis = beside(at_begin, flag, file)
    assert (diagnosis.binding.verdict.limit, diagnosis.binding.verdict.role) == ("volume_iops", "data")
    assert all("data" in second.devices for second in diagnosis.binding.evidence.seconds[:20])
    assert not any("no block device" in text for text in diagnosis.missing)


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("name", SYSSTAT)
def test_a_file_of_another_day_is_refused(at_begin: Path, tmp_path: Path, name: str) -> None:
    flag = name.partition(" ")[0]
    file = tmp_path / "load"
    file.write_text(SYSSTAT[name](FULL, 1))
    record = json.loads((at_begin / "run.json").read_text())
    record["anchor"]["unix_ns"] += 86_400 * 10**9
    (at_begin / "run.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"has 2026-11-2.*, and the server was watched from 2026-11-2") as refused:
        beside(at_begin, flag, file)
    assert "record it while the server is watched" in refused.value.remedy


def test_a_volume_that_only_the_first_report_shows_busy_is_idle(at_begin: Path, tmp_path: Path) -> None:
    file = tmp_path / "load"
    file.write_text(formats.iostat_12_7([formats.Interval(0, 0, 0, 0)] * 30, 1))
    assert beside(at_begin, "--iostat", file).binding.verdict.limit != "volume_iops"


def test_a_time_with_a_zone_is_that_time_wherever_it_is_read(
    at_begin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    file = tmp_path / "load"
    file.write_text(formats.iostat_12_7(FULL, 1))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    assert beside(at_begin, "--iostat", file).binding.verdict.limit == "volume_iops"
    file.write_text(formats.iostat_12_7(FULL, 1).replace("+0000", "+0900"))
    with pytest.raises(InputError, match="and the server was watched"):
        beside(at_begin, "--iostat", file)
    file.write_text(formats.iostat_10(FULL, 1))
    with pytest.raises(InputError, match="and the server was watched") as refused:
        beside(at_begin, "--iostat", file)
    assert "TZ=UTC" in refused.value.remedy


@pytest.mark.parametrize("form", ["JSON", "text", "old names"])
def test_growth_of_an_exceeded_counter_proves_the_limit(at_begin: Path, tmp_path: Path, form: str) -> None:
    names = "ec2_instance" if form == "old names" else "ec2_instance_ebs"
    pages = [page(second, shares={"iops": 0.9}, names=names) for second in (0, 30)]
    texts = [as_text(page) if form == "text" else json.dumps(page, indent=1) for page in pages]
    file = series(tmp_path / "readings", formats.BEGIN, list(zip((0, 30), texts, strict=True)))
    diagnosis = beside(at_begin, "--nvme", file)
    verdict = diagnosis.binding.verdict
    assert (verdict.limit, verdict.role, verdict.confidence) == ("volume_iops", "data", "high")
    assert diagnosis.evidence[-1] == (
        "by the volume's own counters (NVMe) the IOPS limit of the data volume was exceeded in 90 % of the time"
    )
    device = diagnosis.binding.evidence.seconds[5].devices["data"]
    assert device.iops == pytest.approx(2990, rel=0.001)
    assert device.request_ms == pytest.approx(5.0, rel=0.001)
    assert device.queue_length == pytest.approx(14.95, rel=0.001), "IOPS times latency"


@pytest.mark.parametrize(
    ("shares", "bought", "limit"),
    [
        ({"throughput": 0.8}, "gp3", "volume_throughput"),
        ({"instance_iops": 0.8}, "gp3", "instance_bandwidth"),
        ({"instance_throughput": 0.8, "throughput": 0.1}, "gp3", "instance_bandwidth"),
        ({"iops": 0.8}, "gp2:size=100GiB", "burst_bucket"),
        ({}, "gp3:iops=16000", None),
    ],
)
def test_counters_alone_say_which_limit_it_is(
    tmp_path: Path, shares: dict[str, float], bought: str, limit: str | None
) -> None:
    ops = 300.0 if bought.startswith("gp2") else 2000.0
    readings = [(second, json.dumps(page(second, ops, shares))) for second in range(0, 61, 10)]
    file = series(tmp_path / "readings", formats.BEGIN, readings)
    diagnosis = diagnose_files(sources_of({"--nvme": [str(file)]}), purchase_of([bought], None))
    assert diagnosis.binding.verdict.limit == limit
    assert diagnosis.binding.verdict.confidence == ("high" if limit else "unknown")
    screen = "\n".join(lines(diagnosis))
    assert "not seen  the server: name it" in screen
    assert "\nread      NVMe of" in screen
    if limit is None:
        assert "did at most 12 % of its IOPS" in screen
        assert "no limit of the data volume was exceeded" in screen
    assert document(diagnosis, None).target is None
    assert document(diagnosis, None).watched.sources == [str(file)]


def test_without_what_was_bought_an_exceeded_counter_is_not_sure(tmp_path: Path) -> None:
    """A volume whose credits are gone exceeds the same counter as one that was bought too small."""
    readings = [(second, json.dumps(page(second, shares={"iops": 0.9}))) for second in range(0, 61, 10)]
    file = series(tmp_path / "readings", formats.BEGIN, readings)
    diagnosis = diagnose_files(sources_of({"--nvme": [str(file)]}), purchase_of([], None))
    assert (diagnosis.binding.verdict.limit, diagnosis.binding.verdict.confidence) == ("volume_iops", "low")


def test_counters_that_show_no_wait_contradict_what_was_said_to_be_bought(at_begin: Path, tmp_path: Path) -> None:
    readings = [(second, json.dumps(page(second, 2990.0))) for second in (0, 30)]
    file = series(tmp_path / "readings", formats.BEGIN, readings)
    assert beside(at_begin, "--nvme", file).binding.verdict.confidence != "high"


def test_two_files_without_a_time_are_as_old_as_the_files(at_begin: Path, tmp_path: Path) -> None:
    names = []
    for second in (0, 30):
        file = tmp_path / f"reading-{second}"
        file.write_text(json.dumps(page(second, shares={"iops": 0.9})))
        os.utime(file, (0, formats.BEGIN.timestamp() + second))
        names.append(str(file))
    diagnosis = diagnose(at_begin, purchase_of(["gp3"], None), sources_of({"--nvme": names}))
    assert diagnosis.binding.verdict.limit == "volume_iops"


def test_of_a_series_with_an_interval_every_reading_but_the_first_is_a_difference(
    at_begin: Path, tmp_path: Path
) -> None:
    first, then = page(0, shares={"iops": 0.9}), page(-3590, shares={"iops": 0.9})
    texts = [json.dumps(first), *[json.dumps(then)] * 3]
    file = tmp_path / "polled"
    file.write_text("Polling EBS stats every 10 sec(s); press Ctrl+C to stop\n" + "\n\n".join(texts) + "\n")
    os.utime(file, (0, formats.BEGIN.timestamp() + 30))
    diagnosis = beside(at_begin, "--nvme", file)
    assert diagnosis.binding.verdict.limit == "volume_iops"
    (source,) = diagnosis.sources
    assert [round(sample.ops_per_s) for sample in source.measured.samples] == [2990, 2990, 2990]
    assert source.span_s == pytest.approx((formats.BEGIN.timestamp(), formats.BEGIN.timestamp() + 30))


@pytest.mark.parametrize(
    ("readings", "message", "remedy"),
    [
        ([(0, page(0))], "has one reading", "second reading after the watch"),
        (
            [(0, page(30)), (30, page(0))],
            "total_read_ops fell between 2026-11-21T23:58:00Z and",
            "one time of its being attached",
        ),
        ([(0, page(0)), (0, page(30))], "two readings are of the same time", "date -Is"),
        (
            [(0, page(0, shares={"iops": 0.9})), (5, page(30, shares={"iops": 0.9}))],
            "27 s above a limit in 5 s",
            "date -Is",
        ),
        ([(0, {"total_read_ops": 1}), (30, page(30))], "has no counter total_write_ops", "ebsnvme stats --json"),
    ],
)
def test_readings_that_prove_nothing_are_refused(
    tmp_path: Path, readings: list[tuple[float, dict[str, Any]]], message: str, remedy: str
) -> None:
    file = series(
        tmp_path / "readings", formats.BEGIN, [(second, json.dumps(document)) for second, document in readings]
    )
    with pytest.raises(InputError) as refused:
        sources_of({"--nvme": [str(file)]})
    assert message in refused.value.message
    assert remedy in refused.value.remedy


def test_one_file_of_several_devices_is_shared_out_by_role(tmp_path: Path) -> None:
    iostat_12_7 = formats.iostat_12_7(FULL, 1)
    both = [
        line if not line.startswith(formats.DEVICE) else f"{line}\n{line.replace('nvme1n1', 'nvme2n1')}"
        for line in iostat_12_7.splitlines()
    ]
    file = tmp_path / "load"
    file.write_text("\n".join(both) + "\n")
    with pytest.raises(InputError, match="2 devices that did something"):
        sources_of({"--iostat": [str(file)]})
    sources = sources_of({"--iostat": [str(file)]}, ["nvme1n1", "wal=/dev/nvme2n1"])
    assert {(source.role, source.measured.device) for source in sources} == {("data", "nvme1n1"), ("wal", "nvme2n1")}
    with pytest.raises(InputError, match="no device `nvme9n1`"):
        sources_of({"--iostat": [str(file)]}, ["nvme9n1"])
    with pytest.raises(InputError, match="--bought names temp, and no file"):
        diagnose_files(sources, purchase_of(["temp=gp3"], None))


def test_an_instances_checks_are_its_volumes_too(tmp_path: Path) -> None:
    answer = json.loads(formats.cloudwatch([QUIET[0]] * 10, 60))
    times = answer["MetricDataResults"][0]["Timestamps"]
    checks = {"Id": "i", "Label": "i-0abc InstanceEBSIOPSExceededCheck", "Timestamps": times, "Values": [1.0] * 10}
    answer["MetricDataResults"].append(checks)
    file = tmp_path / "metrics.json"
    file.write_text(json.dumps(answer))
    diagnosis = diagnose_files(sources_of({"--cloudwatch": [str(file)]}), purchase_of(["gp3"], None))
    assert (diagnosis.binding.verdict.limit, diagnosis.binding.verdict.confidence) == ("instance_bandwidth", "high")


def test_rds_has_latencies_and_what_is_left_of_reserves(tmp_path: Path) -> None:
    answer = json.loads(formats.rds(QUIET[:10], 60))
    times = answer["MetricDataResults"][0]["Timestamps"]
    for name, value in (
        ("ReadLatency", 0.004),
        ("WriteLatency", 0.001),
        ("BurstBalance", 40.0),
        ("EBSIOBalance%", 90.0),
    ):
        answer["MetricDataResults"].append(
            {"Id": name.strip("%").lower(), "Label": name, "Timestamps": times, "Values": [value] * 10}
        )
    file = tmp_path / "metrics.json"
    file.write_text(json.dumps(answer))
    (source,) = sources_of({"--cloudwatch": [str(file)]})
    sample = source.measured.samples[0]
    assert sample.latency_ms == pytest.approx((4 * 500 + 1 * 400) / 900)
    assert sample.balance == {"burst": pytest.approx(0.4), "instance_iops": pytest.approx(0.9)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "neither a server nor a file is named"),
        (["--bought", "gp3"], "neither a server nor a file is named"),
        (["--device", "nvme1n1"], "--device is for --iostat"),
        (["--nvme", "none.txt"], "none.txt cannot be read"),
        (["dbname=app", "--nvme", "none.txt"], "none.txt cannot be read"),
        (["--iostat", "tests/size/files/sar-12.txt", "--for", "10s"], "--for is for a server that is watched"),
        (["--sar", "tests/size/files/iostat-12.7.txt"], "has no disks of sar"),
        (["--nvme", "tests/size/files/iostat-12.7.txt"], "is not output of ebsnvme"),
        (["--iostat", "tests/size/files/iostat-12.7.txt", "--sar", "tests/size/files/sar-12.txt"], "before"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(words: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, ["diagnose", *words])
    assert isinstance(result.exception, InputError), result.output
    assert message in result.exception.message
    assert result.exception.remedy


@pytest.mark.parametrize(
    ("flag", "text", "code"),
    [
        ("--iostat", formats.iostat_12_7([], 1), "size.iostat.first_only"),
        (
            "--iostat",
            "\n".join(line for line in formats.iostat_12_7(FULL, 1).splitlines() if "+0000" not in line),
            "size.iostat.no_length",
        ),
        ("--cloudwatch", formats.rds([formats.Interval(1, 1, 8, 8)], 60), "size.metrics.one_value"),
    ],
)
def test_remedies_are_what_diagnose_can_do(tmp_path: Path, flag: str, text: str, code: str) -> None:
    """Options of ``size`` are none of ``diagnose``."""
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        sources_of({flag: [str(path)]})
    assert refused.value.code == code
    assert refused.value.remedy and "--interval" not in refused.value.remedy and "--first" not in refused.value.remedy


def test_what_a_file_lacks_is_said(tmp_path: Path) -> None:
    """More pages, an answer that is partial, and a metric that ends earlier than the others."""
    answer = json.loads(formats.cloudwatch(FULL[:20], 60))
    answer["NextToken"] = "AAAB"
    last = answer["MetricDataResults"][0]
    last["Timestamps"], last["Values"] = last["Timestamps"][6:], last["Values"][6:]
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(answer))
    diagnosis = diagnose_files(sources_of({"--cloudwatch": [str(path)]}), purchase_of(["gp3"], None))
    text = "\n".join(lines(diagnosis))
    assert "NextToken" in text and "VolumeReadOps ends at" in text.replace("\n          ", " ")


def test_of_devices_that_were_not_named_no_row_is_judged(tmp_path: Path) -> None:
    text = formats.iostat_12_7(FULL, 1)
    row = next(line for line in text.splitlines() if line.startswith(formats.DEVICE))
    broken = row.replace(formats.DEVICE, "dm-3").replace("0.00", "18446744073709550592.00")
    path = tmp_path / "load.txt"
    path.write_text(text.replace(row, f"{row}\n{broken}"))
    with pytest.raises(InputError):
        sources_of({"--iostat": [str(path)]})
    (source,) = sources_of({"--iostat": [str(path)]}, [formats.DEVICE])
    assert source.measured.device == formats.DEVICE and len(source.measured.samples) == len(FULL)


def test_utc_is_what_is_told() -> None:
    from pgdyno.advise.diagnose.files import utc

    assert utc(datetime(2026, 11, 21, 23, 58, tzinfo=UTC).timestamp()) == "2026-11-21T23:58:00Z"
