"""Tables of a run, from the output of pgdyno's own driver.

It says each second how many transactions ended and their histograms; a second that begins with the measure phase is a
whole one, so nothing is divided here. A transaction belongs to the phase in which it ended, as with pgbench.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pgdyno.workload import histogram
from pgdyno.workload.outcome import Outcome

from ..results.record import Account, Check, ClockRecord, DriverRecord, Lateness, RunPhase
from ..results.tables import SubjectClock
from .clients import Clients

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

SECOND_NS = 1_000_000_000
Line = dict[str, Any]
"""A ``second`` or the ``summary``, as the driver wrote it."""


@dataclass(frozen=True)
class ClientPhases:
    """When the clients went to work, and the measure phase; CLOCK_MONOTONIC of the host."""

    bench_ns: int
    begin_ns: int
    end_ns: int


@dataclass
class DriverOutput:
    """Output of the driver so far."""

    ready: Line
    seconds: list[Line] = field(default_factory=list)
    summary: Line | None = None
    clock: ClockRecord | None = None
    """The driver's clock, where it was asked for; all instants here are of this process's."""


def outcome(spec: Clients, output: DriverOutput, span: ClientPhases, clock: SubjectClock) -> Outcome:
    """The run; ``said`` has its summary."""
    summary = output.summary
    assert summary is not None
    begin_ns, end_ns = clock.instant_ns(span.begin_ns), clock.instant_ns(span.end_ns)
    measured = [line for line in output.seconds if span.begin_ns <= line["begin_ns"] and line["end_ns"] <= span.end_ns]
    warmup = warmup_of(output)
    bins = _Bins(output.seconds, span, clock)
    names = [name for name, _ in spec.mix]
    latency = bins.latency(names, "response_us")
    total = account_total(output)
    return Outcome(
        phases=(
            RunPhase(name="warmup", begin_ns=clock.instant_ns(span.bench_ns), end_ns=begin_ns),
            RunPhase(name="measure", begin_ns=begin_ns, end_ns=end_ns),
        ),
        account=_account(measured),
        account_total=total,
        writes_total=sum(
            script["succeeded"]
            for line in (*warmup, summary)
            for script in line["scripts"]
            if script["name"] in spec.history_writers
        ),
        uncounted_max=sum(line["connections_lost"] for line in (*warmup, summary)),
        latency=latency,
        throughput=bins.throughput(names),
        service=None if spec.closed else bins.latency(names, "service_us"),
        statement=_statements(measured, begin_ns, end_ns, clock),
        histograms=histogram.document(latency, begin_ns, end_ns),
        checks=(_nothing_is_missing(output, total), _clients_lasted(output), _time_was_whole(measured, span)),
        driver=driver_record(spec, output, clock),
        queries=_queries(spec, measured),
        succeeded_by_type=_by_type(spec, measured),
        succeeded_by_type_total=_by_type(spec, [*warmup, summary]),
        inputs=summary["inputs"],
    )


def warmup_of(output: DriverOutput) -> list[Line]:
    """The seconds before the measure phase."""
    return [line for line in output.seconds if line["warmup"]]


def account_total(output: DriverOutput) -> Account:
    """Every transaction since the driver began; ``said`` has its summary."""
    assert output.summary is not None
    return _account([*warmup_of(output), output.summary])


def ending(output: DriverOutput) -> dict[str, Any] | None:
    """Error that ended the driver early: ``message`` and ``remedy``, and the statement that the server refused."""
    assert output.summary is not None
    document: dict[str, Any] | None = output.summary["ended_by"]
    return document


class _Bins:
    """The driver's seconds in bins of a second of the subject, the measure phase made of whole ones."""

    def __init__(self, seconds: Iterable[Line], span: ClientPhases, clock: SubjectClock) -> None:
        import numpy as np

        self._clock = clock
        self._lines = [line for line in seconds if line["end_ns"] <= span.end_ns]
        width_ns = clock.dilation * SECOND_NS
        # The lines of the warm-up are aligned to its end, and only the first may be shorter than a second.
        places = [(line["begin_ns"] - span.begin_ns) // width_ns for line in self._lines]
        first, last = min(places, default=0), -((span.begin_ns - span.end_ns) // width_ns)
        self._places = [place - first for place in places]
        edges = span.begin_ns + np.arange(first, last + 1, dtype=np.int64) * width_ns
        self._edges = clock.instant_ns(np.clip(edges, span.bench_ns, span.end_ns))

    def latency(self, names: list[str], which: str) -> pa.Table:
        """``workload/latency`` (of ``response_us``) or ``workload/service``."""
        import numpy as np
        import pyarrow as pa

        parts: list[tuple[int, int, np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
        for place, line in zip(self._places, self._lines, strict=True):
            for number, script in enumerate(line["scripts"]):
                if script[which] is not None:
                    parts.append((place, number, *histogram.buckets(script[which])))
        none = [np.zeros(0, dtype=np.int64)]
        values = np.concatenate([*none, *(part[2] for part in parts)])
        times = np.concatenate([*none, *(part[3] for part in parts)])
        lengths = [len(part[2]) for part in parts]
        place_of = np.repeat(np.array([part[0] for part in parts], dtype=np.int64), lengths)
        script_of = np.repeat(np.array([part[1] for part in parts], dtype=np.int64), lengths)
        at, script, bucket, count = histogram.per_second(place_of, script_of, self._clock.durations_us(values), times)
        return pa.table(
            {
                "t_begin_ns": self._edges[at],
                "t_end_ns": self._edges[at + 1],
                "script": pa.array(np.array(names, dtype=object)[script], type=pa.string()),
                "latency_us": bucket,
                "count": count,
            }
        )

    def throughput(self, names: list[str]) -> pa.Table:
        """``workload/throughput``: for every second and script, zeros included."""
        import numpy as np
        import pyarrow as pa

        bins = len(self._edges) - 1
        counted = {kind: np.zeros((bins, len(names)), dtype=np.int64) for kind in ("transactions", "failed", "skipped")}
        for place, line in zip(self._places, self._lines, strict=True):
            for number, script in enumerate(line["scripts"]):
                counted["transactions"][place, number] += script["succeeded"]
                counted["failed"][place, number] += script["failed"]
                counted["skipped"][place, number] += script["skipped_late"] + script["skipped_ended"]
        return pa.table(
            {
                "t_begin_ns": np.repeat(self._edges[:-1], len(names)),
                "t_end_ns": np.repeat(self._edges[1:], len(names)),
                "script": pa.array(names * bins, type=pa.string()),
                **{kind: values.reshape(-1) for kind, values in counted.items()},
            }
        )


def _statements(measured: list[Line], begin_ns: int, end_ns: int, clock: SubjectClock) -> pa.Table:
    """``workload/statement``: of the whole measure phase."""
    import numpy as np
    import pyarrow as pa

    rows: dict[str, list[Any]] = {name: [] for name in ("number", "statement", "latency_us", "count")}
    names = [statement["name"] for statement in measured[0]["statements"]] if measured else []
    for number, name in enumerate(names):
        texts = [line["statements"][number]["service_us"] for line in measured]
        results = [histogram.buckets(text) for text in texts if text is not None]
        if not results:
            continue
        values = clock.durations_us(np.concatenate([value for value, _ in results]))
        unique, where = np.unique(histogram.bucket_us(values), return_inverse=True)
        count = np.bincount(where, weights=np.concatenate([times for _, times in results])).astype(np.int64)
        rows["number"] += [number] * len(unique)
        rows["statement"] += [name] * len(unique)
        rows["latency_us"] += unique.tolist()
        rows["count"] += count.tolist()
    instants = {"t_begin_ns": [begin_ns] * len(rows["number"]), "t_end_ns": [end_ns] * len(rows["number"])}
    types = {"statement": pa.string()}
    return pa.table({name: pa.array(cells, types.get(name, pa.int64())) for name, cells in (instants | rows).items()})


def _queries(spec: Clients, lines: Iterable[Line]) -> int | None:
    """Statements of all classes, as sysbench adds them up."""
    if not spec.counts_queries:
        return None
    return sum(int(count) for line in lines for count in line["queries"].values())


def _by_type(spec: Clients, lines: Iterable[Line]) -> dict[str, int]:
    """Succeeded transactions of each type, where a workload is judged by one of them."""
    if not spec.counts_types:
        return {}
    counted = {name: 0 for name, _ in spec.mix}
    for line in lines:
        for script in line["scripts"]:
            counted[script["name"]] += script["succeeded"]
    return counted


def _account(lines: Iterable[Mapping[str, Any]]) -> Account:
    succeeded = rolled_back = failed = skipped = 0
    for line in lines:
        succeeded += line["succeeded"]
        rolled_back += line["rolled_back"]
        failed += line["failed"]
        skipped += line["skipped_late"] + line["skipped_ended"]
    return Account(
        scheduled=succeeded + rolled_back + failed + skipped,
        skipped=skipped,
        succeeded=succeeded,
        rolled_back=rolled_back,
        failed=failed,
    )


def _nothing_is_missing(output: DriverOutput, total: Account) -> Check:
    """The driver's own account, and the seconds against the whole."""
    summary = output.summary
    assert summary is not None
    scheduled = summary["scheduled_with_warmup"]
    return Check(
        name="nothing_is_missing",
        ok=scheduled == total.scheduled,
        detail=f"{scheduled:,} were scheduled; {total.succeeded:,} succeeded, {_on_purpose(total)}{total.failed:,} failed"
        f" and {total.skipped:,} were skipped",
    )


def _on_purpose(total: Account) -> str:
    """Most workloads have no such transactions."""
    return f"{total.rolled_back:,} were rolled back on purpose, " if total.rolled_back else ""


def _clients_lasted(output: DriverOutput) -> Check:
    summary = output.summary
    assert summary is not None
    warmup, refused = warmup_of(output), ending(output)
    lost = sum(line["connections_lost"] for line in (*warmup, summary))
    down_s = sum(line["down_ns"] for line in (*warmup, summary)) / SECOND_NS
    detail = "every client kept its connection"
    if lost:
        detail = f"{lost} connections were lost; clients waited for {down_s:.3f} s, added up"
    if refused is not None:
        return Check(name="clients_lasted", ok=False, detail=f"the driver ended early: {refused['message']}")
    return Check(name="clients_lasted", ok=lost == 0, detail=detail)


def _time_was_whole(measured: list[Line], span: ClientPhases) -> Check:
    """The load lasted through the measured phase: every second of it was reported."""
    told_s = sum(line["end_ns"] - line["begin_ns"] for line in measured) / SECOND_NS
    planned_s = (span.end_ns - span.begin_ns) / SECOND_NS
    return Check(
        name="measured_under_load",
        ok=abs(told_s - planned_s) < 1e-3,
        detail=f"measured {told_s:.3f} s of {planned_s:g} s",
    )


def driver_record(spec: Clients, output: DriverOutput, clock: SubjectClock) -> DriverRecord:
    """Record of the driver, from the summary of its output."""
    summary = output.summary
    assert summary is not None
    return DriverRecord(
        engine="native",
        threads=spec.threads,
        connect_ms=output.ready["connect_ns"] / 1e6 / clock.dilation,
        cpu_ns=summary["cpu_ns"],
        begin_late_ms=summary["begin_late_ns"] / 1e6 / clock.dilation,
        clock=output.clock,
        elapsed_ns=(summary["end_ns"] - summary["begin_ns"]) // clock.dilation,
        transactions=summary["succeeded"],
        wake=_lateness(summary["wake_us"], clock.dilation),
        lag=_lateness(summary["lag_us"], clock.dilation),
        retries=summary["retries"],
        errors=summary["errors"],
        connections_lost=summary["connections_lost"],
        down_ms=summary["down_ns"] / 1e6 / clock.dilation,
        backlog=summary["skipped_ended"],
    )


def _lateness(figures: Mapping[str, Any], dilation: int) -> Lateness | None:
    """The driver's figures in the subject's time; none of what never happened."""
    if not figures["count"]:
        return None
    document = {f"{name}_us": figures[name] / dilation for name in ("mean", "p50", "p99", "max")}
    return Lateness(count=figures["count"], **document)
