"""Every format of every program reads alike; and what would give wrong numbers is refused."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.advise.size.choice import choose
from pgdyno.advise.size.measured import DeviceSamples
from pgdyno.advise.size.reading import cloudwatch, sysstat
from pgdyno.base.errors import InputError
from tests.size import formats
from tests.size.formats import Interval

Read = Callable[[str], dict[str, DeviceSamples]]


def read_iostat(text: str) -> dict[str, DeviceSamples]:
    return sysstat.read_iostat(text, "file")


def read_sar(text: str) -> dict[str, DeviceSamples]:
    return sysstat.read_sar(text, "file")


def read_cloudwatch(text: str) -> dict[str, DeviceSamples]:
    return cloudwatch.read(text, "file")


SPLIT = {
    "iostat 10.2": (formats.iostat_10, read_iostat),
    "iostat 12.0 -m": (formats.iostat_12_0, read_iostat),
    "iostat 12.7": (formats.iostat_12_7, read_iostat),
    "iostat -h": (formats.iostat_human, read_iostat),
    "iostat JSON": (formats.iostat_json, read_iostat),
    "CloudWatch": (formats.cloudwatch, read_cloudwatch),
    "RDS": (formats.rds, read_cloudwatch),
}
TOGETHER = {
    "iostat without -x": (formats.iostat_basic, read_iostat),
    "sar 10": (formats.sar_10, read_sar),
    "sar 12": (formats.sar_12, read_sar),
    "sadf -j": (formats.sadf_json, read_sar),
    "sadf -d": (formats.sadf_database, read_sar),
}
LOADS = st.lists(
    st.builds(
        Interval, st.integers(0, 60_000), st.integers(0, 60_000), st.integers(0, 900_000), st.integers(0, 900_000)
    ).map(
        lambda item: replace(
            item, read_kib=item.read_kib * bool(item.reads), write_kib=item.write_kib * bool(item.writes)
        )
    ),
    min_size=2,
    max_size=8,
)


@pytest.mark.parametrize("name", [*SPLIT, *TOGETHER])
@given(load=LOADS, seconds=st.sampled_from([1, 10, 60, 600]))
def test_each_format_tells_the_same_load(name: str, load: list[Interval], seconds: int) -> None:
    write, read = {**SPLIT, **TOGETHER}[name]
    (result,) = read(write(load, seconds)).values()
    assert len(result.samples) == len(load)
    for sample, interval in zip(result.samples, load, strict=True):
        assert sample.seconds == seconds
        assert sample.ops_per_s == pytest.approx(interval.ops, abs=0.01)  # two decimals are printed
        # MiB with six decimals: a byte at most
        assert sample.read_bytes_per_s == pytest.approx(interval.read_kib * 1024, abs=1)
        assert sample.write_bytes_per_s == pytest.approx(interval.write_kib * 1024, abs=1)
        assert sample.queue_length == (None if name == "iostat without -x" else interval.queue)
        if name in SPLIT:
            assert sample.read_ops_per_s == pytest.approx(interval.reads, abs=0.01)
        if interval.ops and name not in ("RDS", "iostat without -x"):
            assert sample.latency_ms == pytest.approx(formats.LATENCY_MS)
    assert result.split_known is (name in SPLIT)


LOAD = [Interval(900, 300, 8000, 4000), Interval(1800, 600, 16000, 8000)]


def test_operations_that_were_counted_together_are_shared_out_by_bytes() -> None:
    sample = read_sar(formats.sar_12(LOAD, 10))[formats.DEVICE].samples[0]
    assert (sample.read_ops_per_s, sample.write_ops_per_s) == pytest.approx((800, 400))  # 8,000 and 4,000 KiB of 1,200


def test_an_iostat_without_times_is_refused_until_its_interval_is_said() -> None:
    text = "\n".join(line for line in formats.iostat_12_7(LOAD, 5).splitlines() if "T23:" not in line)
    with pytest.raises(InputError) as refused:
        read_iostat(text)
    assert "no timestamps" in refused.value.message and "--interval" in refused.value.remedy
    samples = sysstat.read_iostat(text, "file", interval_s=5.0)[formats.DEVICE].samples
    assert [sample.seconds for sample in samples] == [5.0, 5.0]


def test_one_report_is_the_time_since_boot_and_no_load() -> None:
    with pytest.raises(InputError, match="since boot"):
        read_iostat(formats.iostat_12_7([], 1))


def test_a_device_that_was_left_out_because_it_was_idle_counts_as_idle() -> None:
    """``iostat -z`` leaves it out."""
    lines = formats.iostat_12_7([*LOAD, LOAD[0]], 1).splitlines()
    rows = [place for place, line in enumerate(lines) if line.startswith(formats.DEVICE)]
    lines[rows[2]] = lines[rows[2]].replace(formats.DEVICE, "sdb")
    samples = read_iostat("\n".join(lines))[formats.DEVICE].samples
    assert [sample.ops_per_s for sample in samples] == [1200, 0, 1200]


@pytest.mark.parametrize("write", [formats.sar_12, formats.sadf_json, formats.sadf_database])
def test_devices_that_sar_leaves_out_by_turns_can_be_added_up(write: Callable[[list[Interval], int], str]) -> None:
    """``sar -z``: each is idle in another interval."""
    names = iter(["sda", "sdb"])
    text = re.sub(formats.DEVICE, lambda _: next(names, "sda"), write([*LOAD, *LOAD], 10))
    samples = read_sar(text)
    assert [sample.ops_per_s for sample in samples["sda"].samples] == [1200, 0, 1200, 2400]
    assert [sample.ops_per_s for sample in choose(samples, ["sdb", "sda"], "file").samples] == [1200, 2400, 1200, 2400]


def test_an_interval_in_which_no_device_did_anything_is_one_too() -> None:
    """``iostat -z`` then writes the names of the columns alone."""
    lines = formats.iostat_12_7([*LOAD, LOAD[0]], 1).splitlines()
    rows = [place for place, line in enumerate(lines) if line.startswith(formats.DEVICE)]
    del lines[rows[2]]
    untimed = [line for line in lines if "T23:" not in line]
    for other in (read_iostat("\n".join(lines)), sysstat.read_iostat("\n".join(untimed), "file", interval_s=1.0)):
        samples = other[formats.DEVICE].samples
        assert [(sample.seconds, sample.ops_per_s) for sample in samples] == [(1, 1200), (1, 0), (1, 1200)]


def test_a_clock_that_was_set_back_makes_no_interval_of_a_day() -> None:
    """The end of summer time, or a clock that is set right: that interval would be heavier than all others."""
    iostat_text = formats.iostat_12_7([*LOAD, *LOAD], 1)
    sar_text = formats.sar_12([*LOAD, *LOAD], 600)
    for was, then in (("23:58:03", "23:57:50"), ("23:58:04", "23:57:51")):
        iostat_text = iostat_text.replace(was, then)
    for was, then in (("00:28:00", "23:28:00"), ("00:38:00", "23:38:00")):
        sar_text = sar_text.replace(was, then)
    for (item,), seconds in ((read_iostat(iostat_text).values(), 1), (read_sar(sar_text).values(), 600)):
        assert [sample.seconds for sample in item.samples] == [seconds] * 4
        assert any("set back" in note for note in item.notes)
    (samples,) = read_iostat(formats.iostat_12_7(LOAD, 50_000)).values()
    assert [sample.seconds for sample in samples.samples] == [50_000, 50_000]
    assert not any("set back" in note for note in samples.notes)


def test_a_line_that_was_cut_off_is_left_out() -> None:
    text = formats.iostat_12_7(LOAD, 1).rstrip()
    assert len(read_iostat(text[:-30])[formats.DEVICE].samples) == 1
    text = formats.sar_12(LOAD, 1).partition("Average:")[0]
    assert len(read_sar(f"{text}23:58:03")[formats.DEVICE].samples) == 2


@pytest.mark.parametrize(
    ("reader", "text", "remedy"),
    [
        (read_iostat, "vmstat\n 1 2 3\n", "iostat -dxt"),
        (read_iostat, '{"sysstat": {"hosts": [', "by a count"),
        (read_sar, "12:00:01 CPU %user\n12:00:02 all 3.00\n", "sar -d"),
        (read_sar, '{"a": 1}', "sadf -j"),
        (read_sar, formats.iostat_json([Interval(900, 300, 8000, 4000)], 1), "sadf -j"),
        (read_iostat, formats.sadf_json([Interval(900, 300, 8000, 4000)] * 2, 1), "write it with `LC_ALL=C iostat"),
        (read_cloudwatch, "<html>", "get-metric-data"),
        (read_cloudwatch, '{"MetricDataResults": []}', "VolumeReadOps"),
        (read_cloudwatch, '["vol-0a1b2c3d"]', "--query"),
        (read_cloudwatch, '{"MetricDataResults": [{"Label": "VolumeReadOps"}]}', "--query"),
        (
            read_cloudwatch,
            '{"Label": "VolumeReadOps", "Datapoints": [{"Timestamp": "today", "Sum": 1}]}',
            "get-metric-data",
        ),
    ],
)
def test_what_is_no_such_file_is_refused_with_how_to_make_one(reader: Read, text: str, remedy: str) -> None:
    with pytest.raises(InputError) as refused:
        reader(text)
    assert remedy in refused.value.remedy


def test_an_average_of_operations_is_no_rate() -> None:
    document = json.loads(formats.cloudwatch(LOAD, 60))
    document["MetricDataResults"][0]["Values"][0] += 0.25
    with pytest.raises(InputError, match="VolumeReadOps is an average"):
        read_cloudwatch(json.dumps(document))


def test_minutes_that_are_missing_are_no_zeros() -> None:
    document = json.loads(formats.cloudwatch([*LOAD, *LOAD, *LOAD], 60))
    for result in document["MetricDataResults"]:
        del result["Timestamps"][2:4], result["Values"][2:4]
    (samples,) = read_cloudwatch(json.dumps(document)).values()
    assert len(samples.samples) == 4 and min(sample.ops_per_s for sample in samples.samples) == 1200
    assert any("2 of 6 periods are left out" in note for note in samples.notes)


def test_pages_of_an_answer_are_put_together_and_its_state_is_told() -> None:
    first, second = (json.loads(formats.cloudwatch(LOAD, 60)) for _ in range(2))
    first["NextToken"] = "abc"
    second["NextToken"] = "def"
    for result in second["MetricDataResults"]:
        result["Timestamps"] = [at.replace("23:5", "23:4") for at in result["Timestamps"]]
        result["StatusCode"] = "PartialData"
    (samples,) = read_cloudwatch(json.dumps(first) + "\n" + json.dumps(second)).values()
    assert len(samples.samples) == 4
    assert any("NextToken" in note for note in samples.notes)
    del second["NextToken"]
    (device_samples,) = read_cloudwatch(json.dumps(first) + "\n" + json.dumps(second)).values()
    assert any("PartialData" in note for note in device_samples.notes)
    assert not any("NextToken" in note for note in device_samples.notes), "the next page is there"
    second["MetricDataResults"][0]["StatusCode"] = "InternalError"
    with pytest.raises(InputError, match="InternalError"):
        read_cloudwatch(json.dumps(second))


def test_statistics_of_the_older_call_are_read_by_their_names() -> None:
    def answer(metric: str, statistic: str, value: float) -> dict[str, object]:
        points = [
            {"Timestamp": f"2026-11-21T10:0{minute}:00Z", statistic: value, "Unit": "Count"} for minute in (3, 1, 2)
        ]
        return {"Label": metric, "Datapoints": points}

    figures = {
        "VolumeReadOps": 6000.0,
        "VolumeWriteOps": 600.0,
        "VolumeReadBytes": 49152000.0,
        "VolumeWriteBytes": 4915200.0,
    }
    documents = [answer(metric, "Sum", value) for metric, value in figures.items()]
    (samples,) = read_cloudwatch(json.dumps(documents)).values()
    assert len(samples.samples) == 3
    sample = samples.samples[0]
    assert (sample.seconds, sample.read_ops_per_s, sample.write_bytes_per_s) == (60, 100, 81920)
    with pytest.raises(InputError, match="is an average"):
        read_cloudwatch(json.dumps([answer("VolumeReadOps", "Average", 2.0), *documents[1:]]))


def test_of_two_statistics_the_one_that_fits_is_read_and_a_sum_of_rates_is_refused() -> None:
    """``--statistics Sum Average``: of a rate the sum is as many times too much as a period has samples."""

    def answer(metric: str, **statistics: float) -> dict[str, object]:
        times = [f"2026-11-21T10:{minute:02d}:00Z" for minute in (0, 5, 10)]
        points: list[dict[str, object]] = [{"Timestamp": at, **statistics} for at in times]
        return {"Label": metric, "Datapoints": points}

    volume = [answer(metric, Sum=3000.0, Average=0.5) for metric in ("VolumeReadOps", "VolumeWriteOps")]
    volume += [answer(metric, Sum=2457600.0, Average=8192.5) for metric in ("VolumeReadBytes", "VolumeWriteBytes")]
    volume.append(answer("VolumeQueueLength", Sum=12.5, Average=2.5))
    (sample, *_) = read_cloudwatch(json.dumps(volume))["volume"].samples
    assert (sample.seconds, sample.read_ops_per_s, sample.queue_length) == (300, 10, 2.5)
    rates = ("ReadIOPS", "WriteIOPS", "ReadThroughput", "WriteThroughput")
    database = [answer(metric, Sum=500.0, Average=100.0) for metric in rates]
    assert read_cloudwatch(json.dumps(database))["volume"].samples[0].read_ops_per_s == 100
    with pytest.raises(InputError, match="ReadIOPS is a sum") as refused:
        read_cloudwatch(json.dumps([answer("ReadIOPS", Sum=500.0), *database[1:]]))
    assert "Average" in refused.value.remedy


def test_two_volumes_under_one_label_do_not_take_each_others_place() -> None:
    """The older call's label is the metric's name, whatever volume it was asked for."""
    result, other = (json.loads(formats.cloudwatch(load, 60, "")) for load in (LOAD, LOAD[::-1]))
    with pytest.raises(InputError, match="two values of VolumeReadOps of volume for the same time") as refused:
        read_cloudwatch(json.dumps([result, other]))
    assert "Label" in refused.value.remedy
    (samples,) = read_cloudwatch(json.dumps([result, result])).values()
    assert samples == read_cloudwatch(json.dumps(result))["volume"]


def test_a_volume_that_was_never_attached_is_left_out() -> None:
    """CloudWatch answers with its metrics, and no value of any."""
    documents = [json.loads(formats.cloudwatch(LOAD, 60, volume)) for volume in ("vol-a", "vol-b")]
    for result in documents[1]["MetricDataResults"]:
        result["Timestamps"], result["Values"] = [], []
    assert list(read_cloudwatch(json.dumps(documents))) == ["vol-a"]
    with pytest.raises(InputError, match="metrics without a value") as refused:
        read_cloudwatch(json.dumps(documents[1]))
    assert "attached" in refused.value.remedy


def test_metrics_without_a_time_in_common_are_said() -> None:
    """Not that the volume did nothing."""
    document = json.loads(formats.cloudwatch(LOAD, 60))
    for result in document["MetricDataResults"][:2]:
        result["Timestamps"] = [at.replace(":00+", ":30+") for at in result["Timestamps"]]
    with pytest.raises(InputError, match="have no time in common"):
        read_cloudwatch(json.dumps(document))


def test_a_metric_is_known_by_its_label_or_by_its_querys_name() -> None:
    document = json.loads(formats.rds(LOAD, 60))
    for result in document["MetricDataResults"]:
        result["Label"] = f"orders {result['Label']}"
    assert list(read_cloudwatch(json.dumps(document))) == ["orders"]
    for result in document["MetricDataResults"]:
        result["Label"] = "the orders database"
    (samples,) = read_cloudwatch(json.dumps(document)).values()
    assert samples.device == "volume" and samples.samples[0].read_ops_per_s == 900
    document["MetricDataResults"].append(
        document["MetricDataResults"][0] | {"Label": "ReadIOPSLocalStorage", "Id": "x"}
    )
    assert list(read_cloudwatch(json.dumps(document))) == ["volume"]


def test_checks_of_the_provider_are_kept() -> None:
    document = json.loads(formats.cloudwatch(LOAD, 60))
    times = document["MetricDataResults"][0]["Timestamps"]
    document["MetricDataResults"].append(
        {"Id": "x", "Label": "vol-0a1b2c3d VolumeIOPSExceededCheck", "Timestamps": times, "Values": [1.0, 0.0]}
    )
    (samples,) = read_cloudwatch(json.dumps(document)).values()
    assert [sample.limited for sample in samples.samples] == [False, True]


def test_what_the_volume_and_its_instance_count_is_not_added_up() -> None:
    document = json.loads(formats.cloudwatch(LOAD, 60, ""))
    results = document["MetricDataResults"]
    instance = [result | {"Label": result["Label"].replace("Volume", "EBS")} for result in results[:4]]
    results += instance
    with pytest.raises(InputError, match="EBSReadOps and VolumeReadOps of volume count the same requests"):
        read_cloudwatch(json.dumps(document))
    for item in instance:
        item["Label"] = f"i-0a1b {item['Label']}"
    assert set(read_cloudwatch(json.dumps(document))) == {"volume", "i-0a1b"}


def test_several_devices_must_be_named_and_are_added_up() -> None:
    samples = read_iostat(formats.iostat_12_7(LOAD, 1))
    both = {"nvme1n1": samples[formats.DEVICE], "dm-0": samples[formats.DEVICE]}
    with pytest.raises(InputError) as refused:
        choose(both, [], "file")
    assert "nvme1n1 (up to 2,400 IOPS)" in refused.value.message and "--device" in refused.value.remedy
    added = choose(both, ["nvme1n1", "dm-0"], "file")
    assert [sample.ops_per_s for sample in added.samples] == [2400, 4800]
    assert added.samples[0].latency_ms == pytest.approx(formats.LATENCY_MS)
    with pytest.raises(InputError, match="no device `sdz`"):
        choose(both, ["sdz"], "file")


def test_the_only_device_that_did_something_is_taken() -> None:
    samples = read_iostat(formats.iostat_12_7(LOAD, 1))
    idle = read_iostat(formats.iostat_12_7([Interval(0, 0, 0, 0)] * 2, 1))
    assert choose({"sda": idle[formats.DEVICE], **samples}, [], "file").device == formats.DEVICE


def test_what_another_volume_lacks_does_not_matter_to_the_one_that_is_named() -> None:
    other = json.loads(formats.cloudwatch(LOAD, 60, "vol-b"))
    other["MetricDataResults"] = [
        MetricDataResult
        for MetricDataResult in other["MetricDataResults"]
        if "VolumeReadBytes" not in MetricDataResult["Label"]
    ]
    text = formats.cloudwatch(LOAD, 60, "vol-a") + json.dumps(other)
    with pytest.raises(InputError, match="lacks metrics of vol-b"):
        read_cloudwatch(text)
    assert set(cloudwatch.read(text, "file", None, ["vol-a"])) == {"vol-a"}
    with pytest.raises(InputError, match="lacks metrics of vol-b"):
        cloudwatch.read(text, "file", None, ["vol-a", "vol-b"])


def test_volumes_that_were_not_attached_at_the_same_time_are_not_added_up() -> None:
    """Each lacks a minute, and not the same one: as many samples, of other minutes."""
    documents = []
    for volume, missing in (("vol-a", 1), ("vol-b", 2), ("vol-c", 2)):
        document = json.loads(formats.cloudwatch([*LOAD, *LOAD, *LOAD], 60, volume))
        for result in document["MetricDataResults"]:
            del result["Timestamps"][missing], result["Values"][missing]
        documents.append(json.dumps(document))
    samples = read_cloudwatch("\n".join(documents))
    with pytest.raises(InputError, match="do not have the same intervals"):
        choose(samples, ["vol-a", "vol-b"], "file")
    assert len(choose(samples, ["vol-b", "vol-c"], "file").samples) == 5


def test_a_device_that_is_named_twice_counts_once() -> None:
    samples = read_iostat(formats.iostat_12_7(LOAD, 1))
    for names in ([formats.DEVICE] * 2, [formats.DEVICE, f"/dev/{formats.DEVICE}"]):
        chosen = choose(samples, names, "file")
        assert chosen.device == formats.DEVICE
        assert [sample.ops_per_s for sample in chosen.samples] == [1200, 2400]
    disk = {formats.DEVICE: samples[formats.DEVICE], f"{formats.DEVICE}p1": samples[formats.DEVICE]}
    with pytest.raises(InputError, match=f"{formats.DEVICE}p1 is a partition of {formats.DEVICE}"):
        choose(disk, list(disk), "file")


@pytest.mark.parametrize("names", [("loop0", "vda", "vda1"), ("dm-0", "nvme0n1", "nvme0n1p2"), ("md0", "sdb", "zram0")])
def test_of_several_devices_a_disk_is_proposed(names: tuple[str, str, str]) -> None:
    """The layers above it show more requests than the disk, and sizing them would be right by chance only."""
    document = {}
    for place, name in enumerate(names):
        load = [Interval(900 - place, 300, 8000, 4000)] * 2
        document |= read_iostat(formats.iostat_12_7(load, 1).replace(formats.DEVICE, name))
    with pytest.raises(InputError) as refused:
        choose(document, [], "file")
    assert refused.value.remedy.endswith(f"--device {names[1]}")


def _stream(count: int) -> str:
    """A metric stream: a document for each value."""
    names = ("VolumeReadOps", "VolumeWriteOps", "VolumeReadBytes", "VolumeWriteBytes")
    return "\n".join(
        json.dumps({"namespace": "AWS/EBS", "metric_name": name, "dimensions": {"VolumeId": "vol-1"},
                    "timestamp": 1_700_000_000_000 + 60_000 * minute, "value": {"sum": 10.0, "count": 1}})
        for minute in range(count) for name in names
    )  # fmt: skip


@pytest.mark.parametrize(
    ("read", "write"),
    [
        (read_iostat, lambda count: formats.iostat_12_7(LOAD[:1] * count, 1)),
        (
            read_iostat,
            lambda count: formats.iostat_json(LOAD[:1] * count, 1).replace('"statistics": [', '"statistics": [,'),
        ),
        (read_sar, lambda count: formats.sadf_json(LOAD[:1] * count, 1).replace(".0,", ",00,")),
        (read_cloudwatch, _stream),
    ],
    ids=["iostat", "JSON with a comma", "decimal commas", "metric stream"],
)
def test_twice_as_many_intervals_take_twice_as_long(read: Read, write: Callable[[int], str]) -> None:
    def cpu_s(text: str) -> float:
        begin = time.process_time()
        read(text)
        return time.process_time() - begin

    result, two = write(1000), write(2000)
    assert min(cpu_s(two) for _ in range(2)) < 3 * min(cpu_s(result) for _ in range(2))
