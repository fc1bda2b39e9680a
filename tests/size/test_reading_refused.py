"""First reports that are kept or dropped, and values that no disk can have."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from pgdyno.advise.size.choice import choose
from pgdyno.advise.size.reading import cloudwatch, sysstat
from pgdyno.base.errors import InputError
from tests.size import formats
from tests.size.formats import Interval

from .test_reading import LOAD, SPLIT, TOGETHER, read_cloudwatch, read_iostat, read_sar

FIRST_IS_PEAK = {name: SPLIT.get(name) or TOGETHER[name] for name in ("iostat 10.2", "iostat -h", "iostat JSON")}
PEAK = Interval(50, 4000, 400, 409_600)


@pytest.mark.parametrize("name", FIRST_IS_PEAK)
def test_a_first_report_that_shows_the_most_is_kept_and_said(name: str) -> None:
    """``iostat -y`` writes an interval first, and it may be the peak."""
    text = FIRST_IS_PEAK[name][0](LOAD, 1, first=PEAK)
    (chosen,) = (choose(read_iostat(text), [], "file"),)
    assert [sample.ops_per_s for sample in chosen.samples] == [4050, 1200, 2400]
    assert any(
        "(4,050 IOPS, 400.4 MiB/s) shows more" in note and "--first-report drop" in note for note in chosen.notes
    )
    dropped = choose(sysstat.read_iostat(text, "file", keep_first=False), [], "file")
    assert [sample.ops_per_s for sample in dropped.samples] == [1200, 2400]


def test_a_first_report_that_is_dropped_is_said_with_its_size() -> None:
    text = formats.iostat_12_7(LOAD, 1, first=Interval(300, 20, 2400, 160))
    chosen = choose(read_iostat(text), [], "file")
    assert len(chosen.samples) == 2
    assert any("(320 IOPS, 2.5 MiB/s)" in note and "--first-report keep" in note for note in chosen.notes)
    kept = choose(sysstat.read_iostat(text, "file", keep_first=True), [], "file")
    assert [sample.ops_per_s for sample in kept.samples] == [320, 1200, 2400]
    assert not any("first report" in note for note in kept.notes)


def test_the_basic_report_says_itself_how_long_the_first_one_was() -> None:
    """It has totals beside the rates: no guess is needed."""
    small = Interval(10, 10, 400, 100)
    for first_s, rates in ((1, [20, 1200, 2400]), (300_000, [1200, 2400])):
        text = formats.iostat_basic(LOAD, 1, first=small, first_s=first_s)
        chosen = choose(read_iostat(text), [], "file")
        assert [sample.ops_per_s for sample in chosen.samples] == rates
        assert any("average since boot, is dropped" in note for note in chosen.notes) is (first_s > 1)
    high = formats.iostat_basic(LOAD, 1, first=PEAK, first_s=300_000)
    assert [sample.ops_per_s for sample in choose(read_iostat(high), [], "file").samples] == [1200, 2400]


def test_one_report_of_an_interval_can_be_read_when_that_is_said() -> None:
    text = formats.iostat_12_7([], 1, first=PEAK)
    with pytest.raises(InputError) as refused:
        read_iostat(text)
    assert "--first-report keep" in refused.value.remedy
    with pytest.raises(InputError, match="how long its one interval was"):
        sysstat.read_iostat(text, "file", keep_first=True)
    (sample,) = sysstat.read_iostat(text, "file", 60.0, keep_first=True)[formats.DEVICE].samples
    assert (sample.seconds, sample.ops_per_s) == (60, 4050)


def test_a_load_in_the_first_report_alone_is_not_sized_unasked() -> None:
    text = formats.iostat_12_7([Interval(0, 0, 0, 0)] * 2, 1, first=PEAK)
    with pytest.raises(InputError) as refused:
        choose(read_iostat(text), [], "file")
    assert "in the first report only (4,050 IOPS" in refused.value.message
    assert "--first-report keep" in refused.value.remedy


def test_each_of_several_runs_in_one_file_has_a_first_report() -> None:
    """``iostat ... >> FILE``: an average since boot in the middle of a file is no interval either, nor is the pause before."""
    iostat_12_7, other = formats.iostat_12_7(LOAD, 1), formats.iostat_12_7(LOAD[::-1], 1).replace("T23:58", "T23:59")
    chosen = choose(read_iostat(iostat_12_7 + other), [], "file")
    assert [(sample.seconds, sample.ops_per_s) for sample in chosen.samples] == [
        (1, 1200),
        (1, 2400),
        (1, 2400),
        (1, 1200),
    ]
    cut = iostat_12_7.rstrip()[:-30] + "\n\n" + other
    assert len(choose(read_iostat(cut), [], "file").samples) == 3


def spoilt(text: str, value: str) -> str:
    """A file of sysstat with another figure of the second interval's bytes read, 16,000 KiB."""
    for old in ("16000.00", "16000", "32000.00", "32000"):
        if old in text:
            return text.replace(old, value, 1)
    raise AssertionError(text)


SYSSTAT = {
    "iostat 10.2": (formats.iostat_10, read_iostat, "line"),
    "iostat 12.7": (formats.iostat_12_7, read_iostat, "line"),
    "iostat JSON": (formats.iostat_json, read_iostat, "report 3, nvme1n1"),
    "sar 12": (formats.sar_12, read_sar, "line"),
    "sadf -j": (formats.sadf_json, read_sar, "nvme1n1"),
    "sadf -d": (formats.sadf_database, read_sar, "line"),
}


@pytest.mark.parametrize("value", ["-60000", "NaN", "1e30", "Infinity", "99999999999999999999", "null"])
@pytest.mark.parametrize("name", SYSSTAT)
def test_what_no_disk_does_is_refused_with_its_place(name: str, value: str) -> None:
    write, read, place = SYSSTAT[name]
    with pytest.raises(InputError) as refused:
        read(spoilt(write([*LOAD, LOAD[0]], 10), value))
    message = refused.value.message
    assert message.startswith("file, ") and place in message and ("rd_sec" in message or "rkB" in message), message


def test_a_row_that_is_damaged_in_the_middle_is_not_an_idle_disk() -> None:
    lines = formats.iostat_12_7([*LOAD, LOAD[0]], 1).splitlines()
    row = [place for place, line in enumerate(lines) if line.startswith(formats.DEVICE)][1]
    lines[row] = lines[row][:60]
    with pytest.raises(InputError, match=rf"file, line {row + 1}: \d+ cells below 23 columns"):
        read_iostat("\n".join(lines))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            lambda item: item["Values"].__setitem__(0, -60_000.0),
            "VolumeReadOps at 2026-11-21T23:59:00+00:00 is negative",
        ),
        (lambda item: item["Values"].__setitem__(0, float("nan")), "which is not a number"),
        (lambda item: item["Values"].__setitem__(0, float("inf")), "which is not a number"),
        (lambda item: item["Values"].__setitem__(0, 1e30), "VolumeReadOps of vol-0a1b2c3d at 2026-11-21T23:59:00Z"),
        (lambda item: item["Values"].__setitem__(0, 10**400), "is inf, which is not a number"),
        (lambda item: item["Values"].__setitem__(0, None), "is null, which is not a number"),
        (lambda item: item["Values"].__setitem__(0, "12"), 'is "12", which is not a number'),
        (lambda item: item["Values"].pop(), "has 2 Timestamps and 1 Values"),
        (lambda item: item.__setitem__("Values", None), "has no lists of Timestamps and Values"),
        (lambda item: item["Timestamps"].__setitem__(0, "yesterday"), '"yesterday", which is not a time'),
        (lambda item: item["Timestamps"].__setitem__(0, 1e30), "which is not a time"),
        (lambda item: item["Timestamps"].__setitem__(0, item["Timestamps"][1]), "has two values"),
    ],
)
def test_what_cloudwatch_never_answers_is_refused_with_its_place(
    spoil: Callable[[dict[str, Any]], None], said: str
) -> None:
    document = json.loads(formats.cloudwatch(LOAD, 60))
    spoil(document["MetricDataResults"][0])
    with pytest.raises(InputError) as refused:
        read_cloudwatch(json.dumps(document))
    assert said in refused.value.message and "VolumeReadOps" in refused.value.message
    assert not re.search("Error|argument", refused.value.message)


@pytest.mark.parametrize("end", ["newest", "oldest"])
def test_periods_that_one_metric_lacks_at_an_end_are_said(end: str) -> None:
    document = json.loads(formats.cloudwatch(LOAD * 10, 60))
    first = document["MetricDataResults"][0]
    for key in ("Timestamps", "Values"):
        first[key] = first[key][7:] if end == "newest" else first[key][:-7]
    (measured,) = read_cloudwatch(json.dumps(document)).values()
    assert len(measured.samples) == 13
    assert any("7 of 20 periods are left out: VolumeReadOps" in note for note in measured.notes)


def test_a_sum_over_another_period_is_not_divided_by_the_wrong_one() -> None:
    document = json.loads(formats.cloudwatch(LOAD * 10, 60))
    coarse = json.loads(formats.cloudwatch(LOAD * 2, 300))
    document["MetricDataResults"][0] = coarse["MetricDataResults"][0]
    with pytest.raises(InputError, match="VolumeReadOps has a period of 300 s, and other metrics one of 60 s"):
        read_cloudwatch(json.dumps(document))
    with pytest.raises(InputError, match="are 60 s apart, and --interval says 300 s"):
        cloudwatch.read(formats.cloudwatch(LOAD * 10, 60), "file", 300.0)
