"""``pgdyno size``: table, JSON, page, a device that is watched, and what is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from pgdyno.advise.size.reading import counters
from pgdyno.base.errors import HostError, InputError
from pgdyno.report import render
from tests.size import formats
from tests.size.formats import Interval
from tests.support.commands import pgdyno

LOAD = [Interval(2000 + 10 * place, 1000, 16000 + 80 * place, 8000) for place in range(100)]
"""Up to 2,990 reads and 1,000 writes of 8 KiB."""


@pytest.fixture
def iostat_file(tmp_path: Path) -> str:
    path = tmp_path / "load.txt"
    path.write_text(formats.iostat_12_7(LOAD, 1))
    return str(path)


def test_the_table_says_what_was_measured_what_to_buy_and_what_to_mind(iostat_file: str) -> None:
    code, out, _, _ = pgdyno(
        "size", "--iostat", iostat_file, "--size", "100GiB", "--type", "gp3", "--instance", "r6g.large"
    )
    assert code == 0
    for words in (
        "nvme1n1, iostat: 100 intervals",
        "p99 3,980, max 3,990",
        "4,776 IOPS and 37.3 MiB/s",
        "2xgp3:size=50GiB,iops=3000,throughput=125,chunk=256KiB  $8 ",
        "2xgp3:size=50GiB,iops=3000,throughput=125,chunk=256KiB carries it too for $8 a month",
        "gp3:size=100GiB,iops=4776,throughput=125",
        "16.88",
        "r6g.large carries it on credits alone",
        "is lost with any one of its volumes",
        "is taken for an average since boot and dropped",
    ):
        assert words in out, words


def test_a_class_of_rds_is_judged_by_its_type_and_said_to_be(iostat_file: str) -> None:
    common = ("size", "--iostat", iostat_file, "--size", "100GiB", "--type", "rds-*")
    result, ec2 = (
        json.loads(pgdyno(*common, "--instance", name, "--json", code=0).out)["instance"]
        for name in ("db.r6g.large", "r6g.large")
    )
    assert (result["instance"], result["usd_per_month"]) == ("db.r6g.large", None)
    assert (result["iops"], result["carries"]) == (ec2["iops"], ec2["carries"])
    out = pgdyno(*common, "--instance", "db.r6g.large", code=0).out
    assert "db.r6g.large (limits of EC2's r6g.large" in out
    assert "INSTANCE" not in out, "types of EC2 at EC2's prices are not what a database of RDS runs on"
    error = pgdyno(*common, "--instance", "db.r6g.3xlarge", code=2).error
    assert error is not None and "db.r6g.2xlarge" in error.remedy


def test_a_recording_at_the_limit_of_what_was_bought_begins_with_it(tmp_path: Path) -> None:
    path, page = tmp_path / "load.txt", tmp_path / "size.html"
    path.write_text(formats.iostat_12_7([Interval(375, 375, 3000, 3000)] * 30, 1).replace("   0.94", "2048.00"))
    path.write_text(path.read_text().replace("   1.25 ", "2731.00 "))
    common = ("size", "--iostat", str(path), "--bought", "gp2:size=250GiB", "--type", "gp3", "--arrays", "1")
    first, *_ = pgdyno(*common, code=0).out.splitlines()
    assert "at least 900 IOPS" in first and "204,800 IOPS" in first
    document = json.loads(pgdyno(*common, "--json", "--html", str(page), code=0).out)
    assert document["demand"]["size_bytes"] == 250 << 30, "that of the volume that was bought"
    capped = document["demand"]["capped"]
    assert capped["first"] in first[0].lower() + first[1:]
    assert [step["times"] for step in capped["steps"]] == [1, 4, 8]
    assert "at least 900 IOPS" in page.read_text()


def test_a_database_of_rds_is_offered_rds_storage(tmp_path: Path) -> None:
    path = tmp_path / "rds.json"
    path.write_text(formats.rds([Interval(2000, 1000, 16000, 8000)] * 5, 60))
    document = json.loads(pgdyno("size", "--cloudwatch", str(path), "--size", "100GiB", "--json", code=0).out)
    assert {volume["type"].split("-")[0] for volume in document["volumes"]} == {"rds"}


def test_json_has_what_the_table_has(iostat_file: str) -> None:
    code, out, _, _ = pgdyno(
        "size", "--iostat", iostat_file, "--size", "100GiB", "--type", "gp3", "--json", "--headroom", "50%"
    )
    document = json.loads(out)
    assert code == 0
    assert document["demand"]["needed_iops"] == pytest.approx(3980 * 1.5)
    assert document["demand"]["iops"]["maximum"] == pytest.approx(3990)
    best, array = document["volumes"]
    assert best["members"] == 1 and best["carries"] and best["iops"]["sustained"] == 5970
    assert best["size_bytes"] == 100 << 30 and best["price_region"] == "us-east-1"
    assert array["members"] == 2 and array["usd_per_month"] < best["usd_per_month"]
    assert document["instances"][0]["carries"] and document["instance"] is None


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("--sar", formats.sar_12(LOAD, 1)),
        ("--sar", formats.sadf_json(LOAD, 1)),
        ("--cloudwatch", formats.cloudwatch(LOAD, 60)),
        ("--iostat", formats.iostat_json(LOAD, 1)),
    ],
)
def test_the_same_load_from_another_program_buys_the_same(
    tmp_path: Path, iostat_file: str, flag: str, text: str
) -> None:
    path = tmp_path / "other"
    path.write_text(text)
    common = ("--size", "100GiB", "--type", "gp3", "--json")
    expected = json.loads(pgdyno("size", "--iostat", iostat_file, *common)[1])["volumes"]
    assert json.loads(pgdyno("size", flag, str(path), *common)[1])["volumes"] == expected


@pytest.mark.parametrize("place", ["file", "standard input"])
def test_a_mark_of_byte_order_and_ends_of_lines_of_windows_are_read_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    content = b"\xef\xbb\xbf" + formats.cloudwatch(LOAD, 60).replace("\n", "\r\n").encode()
    path = tmp_path / "answer.json"
    path.write_bytes(content)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
    name = str(path) if place == "file" else "-"
    code, out, err, _ = pgdyno("size", "--cloudwatch", name, "--size", "100GiB", "--type", "gp3", "--json")
    assert code == 0, err
    assert json.loads(out)["measured"]["intervals"] == 100


@pytest.mark.parametrize("place", ["file", "standard input"])
def test_sars_own_binary_file_is_refused_with_how_to_make_a_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    path = tmp_path / "sa21"
    path.write_bytes(b"\x96\xd5\x75\x21\xff\xfe\x00sa")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes()), encoding="utf-8"))
    code, _, err, _ = pgdyno("size", "--sar", str(path) if place == "file" else "-")
    assert code == 2 and "no disks of sar" in err and "sar -d" in err


def test_the_page_stands_alone(iostat_file: str, tmp_path: Path) -> None:
    page = tmp_path / "size.html"
    code, _, err, _ = pgdyno("size", "--iostat", iostat_file, "--size", "100GiB", "--type", "gp3", "--html", str(page))
    text = page.read_text()
    assert code == 0 and str(page) in err
    assert (
        "gp3, 100 GiB, 4,776 IOPS, 125 MiB/s carries it for $16.88 a month" in text
        and "gp3:size=100GiB,iops=4776,throughput=125" in text
    )
    assert (
        text.count("<svg") == len(render.WIDTHS_PX)
        and "<script" not in text
        and "http" not in text.replace("http://www.w3.org", "")
    )
    code, _, err, _ = pgdyno("size", "--iostat", iostat_file, "--html", str(tmp_path / "no" / "where.html"))
    assert code == 3 and "cannot be written" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name one measured load"),
        (("--iostat", "FILE", "--live", "sda"), "not several"),
        (("--iostat", "FILE", "--headroom", "much"), "is not a percentage"),
        (("--iostat", "FILE", "--headroom", "-3%"), "is not a percentage"),
        (("--iostat", "FILE", "--percentile", "10"), "in the range 50 to 100"),
        (("--iostat", "FILE", "--size", "100GB"), "write 100GiB"),
        (("--iostat", "FILE", "--size", "1.5T"), "write 1.5TiB"),
        (("--iostat", "FILE", "--size", "100"), "write 100GiB"),
        (("--iostat", "FILE", "--size", "0GiB"), "`0GiB` is less than a byte"),
        (("--iostat", "FILE", "--size", "9" * 400 + "GiB"), "is not understood"),
        (("--iostat", "FILE", "--percentile", "nan"), "--percentile"),
        (("--sar", "FILE", "--first-report", "keep"), "--first-report is for --iostat"),
        (("--iostat", "FILE", "--interval", "0s"), "--interval"),
        (("--iostat", "FILE", "--type", "gp33"), "no volume type"),
        (("--iostat", "FILE", "--instance", "r6g.huge"), "r6g"),
        (("--iostat", "FILE", "--device", "sdz"), "no device `sdz`"),
        (("--sar", "/no/such/file"), "cannot be read: No such file"),
        (("--live", "no-such-device"), "no block device"),
        (("--live", "sda", "--device", "sda"), "--device is for files"),
        (("--live", "sda", "--interval", "10s"), "--interval is for files"),
        (("--iostat", "FILE", "--for", "10s"), "--for is for --live"),
        (("--sar", "FILE", "--interval", "10s"), "--interval is not for --sar"),
    ],
)
def test_what_is_illegal_is_refused_with_a_remedy(iostat_file: str, arguments: tuple[str, ...], said: str) -> None:
    code, out, err, _ = pgdyno("size", *(iostat_file if word == "FILE" else word for word in arguments))
    assert (code, out) == (2, "") and said in err and "remedy:" in err


class Disk:
    """A device in a made-up ``/sys/class/block``, whose counters grow with a made-up clock."""

    def __init__(self, root: Path) -> None:
        self.node = root / "sdx"
        self.node.mkdir()
        (self.node / "size").write_text("2097152\n")  # sectors: 1 GiB
        self.now = 100.0
        self.write()

    def write(self) -> None:
        """1,000 reads of 8 KiB a second of 0.5 ms, 500 writes of 16 KiB of 2 ms; a queue of 1.5."""
        seconds = round(self.now - 100)
        fields = [1000, 3, 16_000, 500, 500, 7, 16_000, 1000, 2, 900, 1500]
        (self.node / "stat").write_text(" ".join(str(field * seconds) for field in fields))

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.write()


def test_a_device_is_watched_by_its_counters(tmp_path: Path) -> None:
    disk, result = Disk(tmp_path), list[float]()
    stopwatch = counters.watch(
        "/dev/sdx", 5, sysfs=tmp_path, clock=lambda: disk.now, wait=disk.wait, tell=result.append
    )
    assert (stopwatch.device, stopwatch.size_bytes, len(stopwatch.samples)) == ("sdx", 1 << 30, 5)
    sample = stopwatch.samples[0]
    assert (sample.seconds, sample.read_ops_per_s, sample.write_ops_per_s) == (1, 1000, 500)
    assert (sample.read_bytes_per_s, sample.write_bytes_per_s) == (8192 * 1000, 16384 * 500)
    assert (sample.queue_length, sample.latency_ms) == (1.5, 1.0)
    assert result == [5, 4, 3, 2, 1]


class LongBusyDisk(Disk):
    """One whose times are two seconds before the end of the kernel's 32 bits."""

    def write(self) -> None:
        super().write()
        fields = [int(field) for field in (self.node / "stat").read_text().split()]
        for place in (3, 10):
            fields[place] = (fields[place] - 2000) % counters.MS_END
        (self.node / "stat").write_text(" ".join(map(str, fields)))


def test_times_that_begin_at_zero_again_give_no_negative_queue(tmp_path: Path) -> None:
    """One negative queue among the others would make these look as if they had waited at a limit."""
    disk = LongBusyDisk(tmp_path)
    stopwatch = counters.watch("sdx", 5, sysfs=tmp_path, clock=lambda: disk.now, wait=disk.wait)
    assert [(sample.queue_length, sample.latency_ms) for sample in stopwatch.samples] == [(1.5, 1.0)] * 5


def test_a_device_that_goes_away_is_said(tmp_path: Path) -> None:
    disk = Disk(tmp_path)

    def unplug(seconds: float) -> None:
        disk.now += seconds
        (disk.node / "stat").unlink()

    with pytest.raises(HostError, match="went away"):
        counters.watch("sdx", 5, sysfs=tmp_path, clock=lambda: disk.now, wait=unplug)


def test_a_machine_that_stood_still_makes_one_long_interval_and_none_without_length(tmp_path: Path) -> None:
    disk, stalls = Disk(tmp_path), iter([0.0, 5.3])
    stopwatch = counters.watch(
        "sdx", 10, sysfs=tmp_path, clock=lambda: disk.now, wait=lambda s: disk.wait(s + next(stalls, 0.0))
    )
    assert [sample.seconds for sample in stopwatch.samples] == pytest.approx([1, 6.3, 0.7, 1, 1])


def test_a_moment_is_too_short_to_see_a_load(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    with pytest.raises(InputError, match="too few"):
        counters.watch("sdx", 1, sysfs=tmp_path, clock=lambda: disk.now, wait=disk.wait)
