"""The same load as each program writes it: what the readers must all read alike.

The lines follow the formats that are named in :mod:`pgdyno.advise.size.reading.columns`; figures have two decimals, as there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

BEGIN = datetime(2026, 11, 21, 23, 58, 0, tzinfo=UTC)
"""Two minutes before midnight, so that files go on into the next day."""


@dataclass(frozen=True)
class Interval:
    """Requests and KiB of each kind per second."""

    reads: int
    writes: int
    read_kib: int
    write_kib: int

    @property
    def ops(self) -> int:
        return self.reads + self.writes

    @property
    def read_size(self) -> float:
        """KiB of a read."""
        return self.read_kib / self.reads if self.reads else 0.0

    @property
    def write_size(self) -> float:
        """KiB of a write."""
        return self.write_kib / self.writes if self.writes else 0.0

    @property
    def size(self) -> float:
        """KiB of a request."""
        return (self.read_kib + self.write_kib) / self.ops if self.ops else 0.0

    @property
    def queue(self) -> float:
        """Requests in the queue, by Little's law, as it is printed."""
        return round(self.ops * LATENCY_MS / 1000, 2)

    @property
    def busy(self) -> float:
        """Per cent of the time, of which ``svctm`` is the part of one request."""
        return min(100.0, self.ops * 0.1)

    @property
    def service_ms(self) -> float:
        """What sysstat printed until 12.0."""
        return self.busy * 10 / self.ops if self.ops else 0.0


SINCE_BOOT = Interval(3, 9, 40, 80)
SINCE_BOOT_S = 300_000
DEVICE = "nvme1n1"
LATENCY_MS = 1.25


def stamps(count: int, seconds: int) -> list[datetime]:
    """The end of each interval, the first one being the report since boot."""
    return [BEGIN + timedelta(seconds=seconds * place) for place in range(count)]


def _reports(
    head: str, stamp: str, load: list[Interval], seconds: int, report: Callable[[Interval], list[str]], first: Interval
) -> str:
    """The frame of every text of iostat: who speaks, then each report below its time, the one since boot first."""
    lines = [f"Linux {head} \t_x86_64_\t(8 CPU)", ""]
    for at, interval in zip(stamps(len(load) + 1, seconds), [first, *load], strict=True):
        lines += [format(at, stamp), *report(interval), ""]
    return "\n".join(lines) + "\n"


def iostat_10(load: list[Interval], seconds: int, first: Interval = SINCE_BOOT) -> str:
    """sysstat 10.2: merges first, sizes in sectors, a colon after the device, American time."""

    def report(interval: Interval) -> list[str]:
        return [
            "Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   await r_await w_await  svctm  %util",
            (
                f"{DEVICE}           0.00     5.00 {interval.reads:7.2f} {interval.writes:7.2f} {interval.read_kib:8.2f} {interval.write_kib:8.2f} {2 * interval.size:8.2f}"
                f" {interval.queue:8.2f} {LATENCY_MS:7.2f} {LATENCY_MS:7.2f} {LATENCY_MS:7.2f} {interval.service_ms:6.2f} {interval.busy:6.2f}"
            ),
        ]

    return _reports("3.10.0-1160.el7.x86_64 (db1) \t11/21/2026", "%m/%d/%Y %I:%M:%S %p", load, seconds, report, first)


def iostat_12_0(load: list[Interval], seconds: int, first: Interval = SINCE_BOOT) -> str:
    """sysstat 12.0 with ``-m`` and a German locale: rates before merges, decimal commas, a CPU report between."""

    def report(interval: Interval) -> list[str]:
        row = (
            f"{DEVICE} {interval.reads:.2f} {interval.writes:.2f} {interval.read_kib / 1024:.6f} {interval.write_kib / 1024:.6f} 0.00 1.00 0.00 2.00"
            f" {LATENCY_MS} {LATENCY_MS} {interval.queue:.2f} {interval.read_size:.2f} {interval.write_size:.2f} {interval.service_ms:.2f} {interval.busy:.2f}"
        )
        return [
            "avg-cpu:  %user   %nice %system %iowait  %steal   %idle",
            "           1,49   39,91    1,67    0,94    0,00   56,00",
            "",
            (
                "Device            r/s     w/s     rMB/s     wMB/s   rrqm/s   wrqm/s  %rrqm  %wrqm r_await w_await aqu-sz rareq-sz"
                " wareq-sz  svctm  %util"
            ),
            row.replace(".", ","),
        ]

    return _reports("4.19.0-27-amd64 (db1) \t21.11.2026", "%d.%m.%Y %H:%M:%S", load, seconds, report, first)


def iostat_12_7(load: list[Interval], seconds: int, first: Interval = SINCE_BOOT) -> str:
    """sysstat 12.7: reads, writes, discards and flushes, ISO time."""

    def report(interval: Interval) -> list[str]:
        return [
            (
                "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz"
                "     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     f/s f_await  aqu-sz  %util"
            ),
            (
                f"{DEVICE} {interval.reads:9.2f} {interval.read_kib:9.2f}     0.00   0.00 {LATENCY_MS:7.2f} {interval.read_size:8.2f} {interval.writes:7.2f} {interval.write_kib:9.2f}"
                f"     0.00   0.00 {LATENCY_MS:7.2f} {interval.write_size:8.2f}    7.00    900.00     0.00   0.00    0.50   128.57   12.00    0.80"
                f" {interval.queue:7.2f}  40.00"
            ),
        ]

    return _reports("6.1.0-18-cloud-amd64 (db1) \t2026-11-21", "%Y-%m-%dT%H:%M:%S+0000", load, seconds, report, first)


def iostat_human(load: list[Interval], seconds: int, first: Interval = SINCE_BOOT) -> str:
    """``iostat -dxth`` of sysstat 12.7: one report in four tables, units behind the figures, the device last."""

    def report(interval: Interval) -> list[str]:
        return [
            "     r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz Device",
            f"{interval.reads:8.2f} {interval.read_kib:8.1f}k     0.00   0.0% {LATENCY_MS:7.2f} {interval.read_size:8.1f}k {DEVICE}",
            "",
            "     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz Device",
            f"{interval.writes:8.2f} {interval.write_kib / 1024:8.6f}M     0.00   0.0% {LATENCY_MS:7.2f} {interval.write_size:8.1f}k {DEVICE}",
            "",
            "     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz Device",
            f"    7.00    900.0k     0.00   0.0%    0.50   128.0k {DEVICE}",
            "",
            "     f/s f_await  aqu-sz  %util Device",
            f"   12.00    0.80 {interval.queue:7.2f}  40.0% {DEVICE}",
        ]

    return _reports("6.1.0-18-cloud-amd64 (db1) \t11/21/26", "%m/%d/%y %H:%M:%S", load, seconds, report, first)


def iostat_basic(load: list[Interval], seconds: int, first: Interval = SINCE_BOOT, first_s: int = SINCE_BOOT_S) -> str:
    """``iostat -dt`` of sysstat 12.7, without ``-x``: operations together, and totals of bytes beside their rates."""
    lengths_s = iter([first_s] + [seconds] * len(load))

    def report(interval: Interval) -> list[str]:
        length_s = next(lengths_s)
        return [
            "Device             tps    kB_read/s    kB_wrtn/s    kB_dscd/s    kB_read    kB_wrtn    kB_dscd",
            (
                f"{DEVICE} {interval.ops:13.2f} {interval.read_kib:12.2f} {interval.write_kib:12.2f}         0.00"
                f" {interval.read_kib * length_s:10d} {interval.write_kib * length_s:10d}          0"
            ),
        ]

    return _reports("6.1.0-18-cloud-amd64 (db1) \t11/21/26", "%m/%d/%y %H:%M:%S", load, seconds, report, first)


def iostat_json(load: list[Interval], seconds: int, first: Interval = SINCE_BOOT) -> str:
    """``iostat -dxt -o JSON``."""
    statistics = [
        {
            "timestamp": f"{at:%m/%d/%y %H:%M:%S}",
            "disk": [
                {
                    "disk_device": DEVICE, "r/s": interval.reads, "w/s": interval.writes, "d/s": 7.0, "f/s": 12.0,
                    "rkB/s": interval.read_kib, "wkB/s": interval.write_kib, "dkB/s": 900.0, "rrqm/s": 0.0, "wrqm/s": 0.0,
                    "rrqm": 0.0, "wrqm": 0.0, "r_await": LATENCY_MS, "w_await": LATENCY_MS, "f_await": 0.8,
                    "rareq-sz": round(interval.read_size, 2), "wareq-sz": round(interval.write_size, 2), "aqu-sz": interval.queue, "util": 40.0,
                }
            ],
        }
        for at, interval in zip(stamps(len(load) + 1, seconds), [first, *load], strict=True)
    ]  # fmt: skip
    host = {"nodename": "db1", "sysname": "Linux", "release": "6.1.0", "machine": "x86_64", "number-of-cpus": 8,
            "date": "11/21/26", "statistics": statistics}  # fmt: skip
    return json.dumps({"sysstat": {"hosts": [host]}}, indent=1)


def sar_10(load: list[Interval], seconds: int) -> str:
    """sysstat 10: sectors, AM and PM, devices by number, an average at the end."""
    times = stamps(len(load) + 1, seconds)
    header = "       DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await     svctm     %util"
    lines = [
        "Linux 3.10.0-1160.el7.x86_64 (db1) \t11/21/2026 \t_x86_64_\t(8 CPU)",
        "",
        f"{times[0]:%I:%M:%S %p}{header}",
    ]
    for at, interval in zip(times[1:], load, strict=True):
        lines.append(
            f"{at:%I:%M:%S %p}  {DEVICE} {interval.ops:9.2f} {2 * interval.read_kib:9.2f} {2 * interval.write_kib:9.2f} {2 * interval.size:9.2f} {interval.queue:9.2f}"
            f" {LATENCY_MS:9.2f} {interval.service_ms:9.2f} {interval.busy:9.2f}"
        )
    return "\n".join(
        [
            *lines,
            f"Average:      {DEVICE}    100.00   100.00   100.00     16.00      0.10      1.00      0.10     40.00\n",
        ]
    )


def sar_12(load: list[Interval], seconds: int) -> str:
    """sysstat 12: KiB, discards, 24 hours; another activity before it and a header again in the middle."""
    times = stamps(len(load) + 1, seconds)
    header = "          DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util"
    lines = ["Linux 6.1.0 (db1) \t11/21/26 \t_x86_64_\t(8 CPU)", "", f"{times[0]:%H:%M:%S}        CPU     %user     %idle",
             f"{times[1]:%H:%M:%S}        all      2.15     97.00", "", f"{times[0]:%H:%M:%S}{header}"]  # fmt: skip
    for place, (at, item) in enumerate(zip(times[1:], load, strict=True)):
        if place == len(load) // 2 and place:
            lines += ["", f"{times[place]:%H:%M:%S}{header}"]
        lines.append(
            f"{at:%H:%M:%S}  {DEVICE} {item.ops:9.2f} {item.read_kib:9.2f} {item.write_kib:9.2f}      0.00 {item.size:9.2f} {item.queue:9.2f}"
            f" {LATENCY_MS:9.2f}     40.00"
        )
    return "\n".join(
        [
            *lines,
            f"Average:      {DEVICE}    100.00   100.00   100.00      0.00     8.00      0.10      1.00     40.00\n",
        ]
    )


def sadf_json(load: list[Interval], seconds: int) -> str:
    """``sadf -j -- -d``: sectors and KiB both, the interval beside the time."""
    statistics = [
        {
            "timestamp": {"date": f"{at:%Y-%m-%d}", "time": f"{at:%H:%M:%S}", "tz": "UTC", "interval": seconds},
            "disk": [
                {
                    "disk-device": DEVICE, "tps": interval.ops, "rd_sec": 2 * interval.read_kib, "wr_sec": 2 * interval.write_kib,
                    "dc_sec": 0.0, "rkB": interval.read_kib, "wkB": interval.write_kib, "dkB": 0.0, "avgrq-sz": round(2 * interval.size, 2),
                    "areq-sz": round(interval.size, 2), "avgqu-sz": interval.queue, "aqu-sz": interval.queue, "await": LATENCY_MS, "util-percent": 40.0,
                }
            ],
        }
        for at, interval in zip(stamps(len(load) + 1, seconds)[1:], load, strict=True)
    ]  # fmt: skip
    host = {"nodename": "db1", "file-date": "2026-11-21", "statistics": statistics}
    return json.dumps({"sysstat": {"hosts": [host]}})


def sadf_database(load: list[Interval], seconds: int) -> str:
    """``sadf -d -- -d``: semicolons."""
    lines = [f"db1;-1;{BEGIN:%Y-%m-%d %H:%M:%S} UTC;LINUX-RESTART\t(8 CPU)",
             "# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util"]  # fmt: skip
    for at, interval in zip(stamps(len(load) + 1, seconds)[1:], load, strict=True):
        lines.append(
            f"db1;{seconds};{at:%Y-%m-%d %H:%M:%S} UTC;{DEVICE};{interval.ops:.2f};{interval.read_kib:.2f};{interval.write_kib:.2f};0.00;{interval.size:.2f};"
            f"{interval.queue};{LATENCY_MS};40.00"
        )
    return "\n".join(lines) + "\n"


def cloudwatch(load: list[Interval], seconds: int, volume: str = "vol-0a1b2c3d") -> str:
    """``aws cloudwatch get-metric-data`` with sums, the newest first."""
    times = [f"{at:%Y-%m-%dT%H:%M:%S}+00:00" for at in stamps(len(load), seconds)][::-1]
    newest = load[::-1]
    metrics = {
        "VolumeReadOps": [interval.reads * seconds for interval in newest],
        "VolumeWriteOps": [interval.writes * seconds for interval in newest],
        "VolumeReadBytes": [interval.read_kib * 1024 * seconds for interval in newest],
        "VolumeWriteBytes": [interval.write_kib * 1024 * seconds for interval in newest],
        "VolumeTotalReadTime": [interval.reads * seconds * LATENCY_MS / 1000 for interval in newest],
        "VolumeTotalWriteTime": [interval.writes * seconds * LATENCY_MS / 1000 for interval in newest],
        "VolumeQueueLength": [interval.queue for interval in newest],
    }
    results = [
        {"Id": f"m{place}", "Label": f"{volume} {name}", "Timestamps": times, "Values": [float(value) for value in values],
         "StatusCode": "Complete"}
        for place, (name, values) in enumerate(metrics.items())
    ]  # fmt: skip
    return json.dumps({"MetricDataResults": results, "Messages": []}, indent=1)


def rds(load: list[Interval], seconds: int) -> str:
    """``get-metric-data`` of a database: per second already."""
    times = [at.timestamp() for at in stamps(len(load), seconds)]
    metrics = {
        "ReadIOPS": [float(interval.reads) for interval in load],
        "WriteIOPS": [float(interval.writes) for interval in load],
        "ReadThroughput": [interval.read_kib * 1024.0 for interval in load],
        "WriteThroughput": [interval.write_kib * 1024.0 for interval in load],
        "DiskQueueDepth": [interval.queue for interval in load],
    }
    results = [
        {"Id": name.lower(), "Label": name, "Timestamps": times, "Values": values, "StatusCode": "Complete"}
        for name, values in metrics.items()
    ]
    return json.dumps({"MetricDataResults": results})
