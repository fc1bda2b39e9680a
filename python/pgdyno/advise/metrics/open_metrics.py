"""OpenMetrics text of attached volumes (openmetrics spec 1.0), and the loopback server that gives it to Prometheus.

The last word of a name is its unit, in the base units that the format asks for: seconds, bytes, ratios.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate
from typing import Any

from ...base.errors import HostError, InputError, PgdynoError
from ...machine.volume import AttachedVolume, find, list_volumes

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PREFIX = "pgdyno_volume_"

Reading = Mapping[str, Any]
"""What a volume's daemon says (``counters``, ``histograms``), with its ``spec``."""
Sample = tuple[str, dict[str, str], float]
"""What stands after the family's name (``_total``), further labels, value."""


@dataclass(frozen=True)
class VolumeScrape:
    """One volume at a scrape."""

    name: str
    spec: Mapping[str, Any]
    said: Reading | None
    """None when its daemon did not answer, or when it is gone; then nothing may be known of its ``spec`` either."""


@dataclass(frozen=True)
class MetricFamily:
    """A family of metrics: its name without prefix, type, unit, meaning, and the samples of one subject: here, of a volume."""

    name: str
    kind: str
    unit: str
    meaning: str
    samples: Callable[[Any], Iterator[Sample]]
    prefix: str = PREFIX


def _counters(volume: VolumeScrape) -> Mapping[str, Any]:
    return volume.said["counters"] if volume.said is not None else {}


def _by(label: str, counters: Mapping[str, str], unit: float = 1.0, suffix: str = "_total") -> Any:
    """Samples that a label tells apart: value of the label -> counter. Counters that the volume lacks are left out."""

    def samples(volume: VolumeScrape) -> Iterator[Sample]:
        known = _counters(volume)
        for value, counter in counters.items():
            if known.get(counter) is not None:
                yield suffix, {label: value} if label else {}, known[counter] / unit

    return samples


def _limit(key: str, unit: float = 1.0) -> Any:
    def samples(volume: VolumeScrape) -> Iterator[Sample]:
        limit = volume.spec.get("limits", {}).get(key)
        if limit is not None:
            yield "", {}, limit * unit

    return samples


def _info(volume: VolumeScrape) -> Iterator[Sample]:
    if volume.spec:
        yield "_info", {"type": str(volume.spec.get("type", "")), "spec": str(volume.spec.get("spec", ""))}, 1


def _dilation(volume: VolumeScrape) -> Iterator[Sample]:
    if volume.said is not None:
        yield "", {}, volume.said["dilation"]


def _up(volume: VolumeScrape) -> Iterator[Sample]:
    yield "", {}, int(volume.said is not None)


def _latency(volume: VolumeScrape) -> Iterator[Sample]:
    """A histogram by powers of two of microseconds: exact counts, as many as operations completed."""
    if volume.said is None:
        return
    for operation in ("read", "write"):
        below = list(accumulate(volume.said["histograms"][f"{operation}_latency_us_log2"]))
        labels = {"operation": operation}
        for place, count in enumerate(below[:-1]):
            yield "_bucket", {**labels, "le": repr(2**place / 1e6)}, count
        yield "_bucket", {**labels, "le": "+Inf"}, below[-1]
        yield "_count", labels, below[-1]
        yield "_sum", labels, _counters(volume)[f"{operation}_time_ns"] / 1e9


_READ_WRITE = ("read", "write")

FAMILIES: tuple[MetricFamily, ...] = (
    MetricFamily("up", "gauge", "", "Whether the volume's daemon answered.", _up),
    MetricFamily("", "info", "", "The volume's type and specification.", _info),
    MetricFamily(
        "dilation",
        "gauge",
        "",
        "Real seconds in a second of the volume, in whose time it counts: rates are to be multiplied by it.",
        _dilation,
    ),
    MetricFamily(
        "operations",
        "counter",
        "",
        "Operations that completed.",
        _by("operation", {text: f"{text}_ops" for text in _READ_WRITE}),
    ),
    MetricFamily(
        "transferred_bytes",
        "counter",
        "bytes",
        "Bytes of the operations that completed.",
        _by("operation", {text: f"{text}_bytes" for text in _READ_WRITE}),
    ),
    MetricFamily("latency_seconds", "histogram", "seconds", "Latency of the operations that completed.", _latency),
    MetricFamily("flushes", "counter", "", "Flushes that were answered.", _by("", {"": "flush_ops"})),
    MetricFamily(
        "io_units", "counter", "", "I/O units charged, after splitting and merging.", _by("", {"": "io_units"})
    ),
    MetricFamily(
        "queue_length",
        "gauge",
        "",
        "Operations that wait to be completed now.",
        _by("", {"": "queue_length"}, suffix=""),
    ),
    MetricFamily(
        "queue_seconds",
        "counter",
        "seconds",
        "Integral of the queue's length over time: its rate is the mean VolumeQueueLength.",
        _by("", {"": "queue_time_ns"}, 1e9),
    ),
    MetricFamily(
        "busy_seconds",
        "counter",
        "seconds",
        "Time with an operation in the volume: VolumeIdleTime is the rest.",
        _by("", {"": "busy_ns"}, 1e9),
    ),
    MetricFamily(
        "exceeded_seconds",
        "counter",
        "seconds",
        "Time in which operations waited for a limit: of the volume, or of its instance.",
        _by(
            "limit",
            {
                "iops": "exceeded_iops_ns",
                "throughput": "exceeded_throughput_ns",
                "instance_iops": "instance_exceeded_iops_ns",
                "instance_throughput": "instance_exceeded_throughput_ns",
            },
            1e9,
        ),
    ),
    MetricFamily(
        "burst_balance_ratio",
        "gauge",
        "ratio",
        "Credits left of the most that are kept: BurstBalance.",
        _by("", {"": "burst_balance_ppm"}, 1e6, suffix=""),
    ),
    MetricFamily(
        "initialized_ratio",
        "gauge",
        "ratio",
        "How much of its snapshot a restored volume has.",
        _by("", {"": "initialized_ppm"}, 1e6, suffix=""),
    ),
    MetricFamily(
        "first_touch_seconds",
        "counter",
        "seconds",
        "Time for which requests waited for blocks of the volume's snapshot.",
        _by("", {"": "first_touch_ns"}, 1e9),
    ),
    MetricFamily(
        "degraded_seconds",
        "counter",
        "seconds",
        "Time in which a volume with `degraded=` had only a part of its limits.",
        _by("", {"": "degraded_ns"}, 1e9),
    ),
    MetricFamily(
        "instance_balance_ratio",
        "gauge",
        "ratio",
        "What is left of the instance's reserve above its baseline: EBSIOBalance% and EBSByteBalance%.",
        _by(
            "limit",
            {"iops": "instance_iops_balance_ppm", "throughput": "instance_throughput_balance_ppm"},
            1e6,
            suffix="",
        ),
    ),
    MetricFamily("provisioned_iops", "gauge", "", "The volume's IOPS limit.", _limit("iops")),
    MetricFamily(
        "provisioned_bytes_per_second",
        "gauge",
        "bytes_per_second",
        "The volume's throughput limit.",
        _limit("throughput_mib_per_s", 2**20),
    ),
    MetricFamily(
        "late_operations",
        "counter",
        "",
        "Operations answered later than the model said by more than a twentieth of what it said.",
        _by("operation", {text: f"late_{text}_ops" for text in _READ_WRITE}),
    ),
    MetricFamily(
        "overrun_operations",
        "counter",
        "",
        "Operations for which the machine's store was slower than the model.",
        _by("", {"": "overrun_ops"}),
    ),
    MetricFamily(
        "refused_operations",
        "counter",
        "",
        "Requests that were refused: not of whole blocks, or past the end of the volume.",
        _by("", {"": "refused_ops"}),
    ),
    MetricFamily(
        "failed_operations",
        "counter",
        "",
        "Operations answered with an I/O error, because the store is full or its disk is broken.",
        _by("", {"": "failed_ops"}),
    ),
    MetricFamily(
        "daemon_cpu_seconds",
        "counter",
        "seconds",
        "CPU time of the volume's daemon.",
        _by("", {"": "daemon_cpu_ns"}, 1e9),
    ),
)
"""Every family, in the order of the text."""


def text(volumes: Sequence[VolumeScrape]) -> str:
    """The exposition of all volumes, to its end mark."""
    return exposition(lines_of(FAMILIES, [({"volume": volume.name}, volume) for volume in volumes]))


def lines_of(families: Sequence[MetricFamily], subjects: Sequence[tuple[Mapping[str, str], Any]]) -> list[str]:
    """The families of several subjects, each with the labels that tell it apart. A family without a sample is left out."""
    lines: list[str] = []
    for family in families:
        samples = [
            line(full_name(family) + suffix, {**own, **labels}, value)
            for own, subject in subjects
            for suffix, labels, value in family.samples(subject)
        ]
        if samples:
            lines += [*_head(family), *samples]
    return lines


def exposition(lines: Sequence[str]) -> str:
    """Families' lines to the format's end mark."""
    return "\n".join([*lines, "# EOF"]) + "\n"


def full_name(family: MetricFamily) -> str:
    """The family's name with its prefix."""
    return (family.prefix + family.name).rstrip("_")


def line(name: str, labels: Mapping[str, str], value: float) -> str:
    """One sample."""
    inside = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {number(value)}"


def escaped(label: str) -> str:
    """A label's value as the format wants it."""
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number(value: float) -> str:
    """A value without loss; whole numbers without a fraction."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _head(family: MetricFamily) -> Iterator[str]:
    name = full_name(family)
    yield f"# TYPE {name} {family.kind}"
    if family.unit:
        yield f"# UNIT {name} {family.unit}"
    yield f"# HELP {name} {family.meaning}"


DEFAULT_LISTEN = "127.0.0.1:9273"
PATH = "/metrics"
REQUEST_TIMEOUT_S = 10.0
"""A client that sends no request is disconnected after this time: a scrape of Prometheus ends after ten seconds, too."""
_ASKED_AT_ONCE = 8


class MetricsServer(ThreadingHTTPServer):
    """Answers ``GET`` and ``HEAD /metrics`` with what ``exposition`` gives."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], exposition: Callable[[], str]) -> None:
        self.exposition = exposition
        try:
            super().__init__(address, _Handler)
        except OSError as error:
            raise HostError(
                f"cannot listen on {address[0]}:{address[1]}: {error.strerror}",
                remedy="choose another port with --listen; port 0 takes any that is free",
            ) from error

    @property
    def url(self) -> str:
        """Where the text is."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}{PATH}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that disconnected before the response, as a scrape does when its time is over."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: MetricsServer
    timeout = REQUEST_TIMEOUT_S

    def do_GET(self) -> None:
        """The text, or where it is."""
        self._respond(with_body=True)

    def do_HEAD(self) -> None:
        """The headers of the same."""
        self._respond(with_body=False)

    def _respond(self, *, with_body: bool) -> None:
        if self.path.partition("?")[0] != PATH:
            answer = HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", f"ask for {PATH}\n"
        else:
            try:
                answer = HTTPStatus.OK, CONTENT_TYPE, self.server.exposition()
            except PgdynoError as error:
                answer = HTTPStatus.SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", f"{error.message}\n"
        self._answer(*answer, with_body=with_body)

    def _answer(self, status: HTTPStatus, kind: str, body: str, *, with_body: bool) -> None:
        content = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Log nothing: a line for each scrape is not useful."""


def parse_listen(listen: str) -> tuple[str, int]:
    """``127.0.0.1:9273`` as host and port. :class:`InputError` if it is not on loopback: there is no authentication."""
    host, _, port = listen.rpartition(":")
    try:
        address, number = ipaddress.IPv4Address("127.0.0.1" if host == "localhost" else host), int(port)
    except ValueError:
        raise InputError(f"`{listen}` is not an address to listen on", remedy=f"write {DEFAULT_LISTEN}") from None
    if not address.is_loopback or not 0 <= number <= 65535:
        raise InputError(
            f"metrics are served on loopback only, not on {listen}",
            remedy=f"listen on {DEFAULT_LISTEN}, and reach it from elsewhere through `ssh -L`",
        )
    return str(address), number


def attached_exposition(names: Sequence[str], *, known: bool = False) -> str:
    """The text of the volumes of those names, or of all that are attached now."""
    return exposition(lines(names, known=known))


def lines(names: Sequence[str], *, known: bool = False) -> list[str]:
    """The same without its end mark. :class:`InputError` for an unknown name.

    Names that were ``known`` before may be of volumes that were detached since: those are down, and hide no other.
    """
    attached = {list_volume.name: list_volume for list_volume in list_volumes()}
    if not known:
        attached |= {name: find(name) for name in names if name not in attached}
    wanted = names or tuple(attached)
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as executor:
        results = list(executor.map(_read, [attached[name] for name in wanted if name in attached]))
    volumes = [*results, *(VolumeScrape(name, {}, None) for name in wanted if name not in attached)]
    return lines_of(FAMILIES, [({"volume": volume.name}, volume) for volume in volumes])


def _read(attached: AttachedVolume) -> VolumeScrape:
    """A volume that does not answer is one that is down: the others must not be missing for it."""
    try:
        return VolumeScrape(attached.name, attached.spec, attached.stats())
    except PgdynoError:
        return VolumeScrape(attached.name, attached.spec, None)
