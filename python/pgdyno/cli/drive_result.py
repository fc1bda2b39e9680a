"""What ``pgdyno drive`` prints: a table of scripts, one of statements, what failed, and how the driver itself did."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from pgdyno.analysis import reading

from ..base.text import number
from .terminal import print_json, print_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pgdyno.analysis.finding import CheckResult, Level
    from pgdyno.workload.native_record import DriverOutput

    from ..results.record import DriverRecord
    from ..workload.clients import Clients

PERCENTILES = (50, 95, 99)
_DRIVER = "lower the load, or give the driver its own core"
REMEDIES = {
    "incomplete": "correct the statement, or count errors with --continue-on-error",
    "transactions": "see the failures above and the server's log",
    "connections": "check that the server runs, and its log",
    "driver": _DRIVER,
    "failed": "restore the database of the time when the capture began, with its roles and settings",
    "keys": "draw from a longer part of the capture, or begin with a restored copy",
    "capture": reading.ACCEPT,
    "mixture": reading.ACCEPT,
    "schedule": _DRIVER,
    "backlog": _DRIVER,
}
"""What to do, by the finding that makes the figures invalid."""
Percentiles = dict[str, float | None]
"""``p50``, ``p95`` and ``p99`` in milliseconds; None where nothing succeeded."""


@dataclass(frozen=True)
class ScriptPart:
    """One script, or all of them."""

    name: str
    weight: int | None
    """None of all together."""
    succeeded: int
    rolled_back: int
    """On purpose."""
    failed: int
    skipped: int
    tps: float
    response_ms: Percentiles
    service_ms: Percentiles

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class DriveResult:
    """Everything that a run came to after its warm-up."""

    spec: Clients
    seconds: float
    whole: ScriptPart
    scripts: tuple[ScriptPart, ...]
    statements: tuple[dict[str, Any], ...]
    """``statement``, ``count`` and ``service_ms``, those that were sent."""
    driver: DriverRecord
    server_version: str | None
    findings: tuple[CheckResult, ...]
    interrupted: bool
    ended_by: dict[str, Any] | None
    """What ended it before its time: ``message``, ``remedy``, ``code`` and ``data``; of a statement that the server refused
    also ``script``, ``line``, ``statement`` and ``sqlstate``."""
    reconnects_failed: dict[str, int]
    """Attempts to open a lost connection again that failed: by SQLSTATE, code of this machine's lack, or ``unreachable``."""
    reconnect_error: str | None
    """What the last of them met."""

    @property
    def invalid(self) -> CheckResult | None:
        """The first reason why the figures must not be used."""
        return next((finding for finding in self.findings if finding.level == "invalid"), None)

    @property
    def valid(self) -> bool:
        """Whether the figures may be used."""
        return self.invalid is None


def of(spec: Clients, output: DriverOutput, *, interrupted: bool = False) -> DriveResult:
    """The result of what the driver said."""
    from pgdyno.analysis import instrument
    from pgdyno.workload.native_record import SECOND_NS, driver_record, ending

    from ..results.tables import SubjectClock

    summary = output.summary
    assert summary is not None
    seconds = max(0, summary["end_ns"] - summary["begin_ns"]) / SECOND_NS
    driver = driver_record(spec, output, SubjectClock())
    scripts = summary["scripts"]
    whole = _part({"name": "all", **summary, **_joined(scripts)}, None, seconds)
    threads = instrument.cores_of(spec.threads, None, len(os.sched_getaffinity(0)))
    busy = instrument.busy(driver, threads)
    settled = whole.succeeded + whole.rolled_back + whole.failed + whole.skipped - (driver.backlog or 0)
    return DriveResult(
        spec=spec,
        seconds=seconds,
        whole=whole,
        scripts=tuple(_part(script, weight, seconds) for script, (_, weight) in zip(scripts, spec.mix, strict=True)),
        statements=tuple(
            {
                "statement": statement["name"],
                "count": statement["count"],
                "service_ms": _percentiles([statement["service_us"]]),
            }
            for statement in summary["statements"]
            if statement["count"]
        ),
        driver=driver,
        server_version=output.ready.get("server_version"),
        findings=(
            *_outcome(whole, spec.clients, output),
            *_of_capture(spec, output, whole),
            *([busy] if busy is not None else []),
            *instrument.on_schedule(driver, whole.service_ms["p50"] or 0.0),
            *instrument.backlog(driver, settled),
        ),
        interrupted=interrupted,
        ended_by=ending(output),
        reconnects_failed=summary["reconnects_failed"],
        reconnect_error=summary["reconnect_error"],
    )


def _outcome(whole: ScriptPart, clients: int, output: DriverOutput) -> Iterator[CheckResult]:
    """Whether there was something to measure until the end."""
    from pgdyno.analysis.finding import CheckResult
    from pgdyno.workload.native_record import ending

    assert output.summary is not None
    refused, disconnected = ending(output), output.summary["clients_disconnected"]
    if refused is not None:
        yield CheckResult("incomplete", "invalid", f"ended by {refused['message']}")
    if whole.succeeded == 0:
        yield CheckResult("transactions", "invalid", f"none of {whole.failed + whole.skipped:,} transactions succeeded")
    if disconnected:
        level: Level = "invalid" if disconnected == clients else "warn"
        why = output.summary["reconnect_error"]
        last = f"; the last attempt: {why}" if why else ""
        yield CheckResult(
            "connections", level, f"{disconnected:,} of {clients:,} clients had no connection at the end{last}"
        )


def _of_capture(spec: Clients, output: DriverOutput, whole: ScriptPart) -> Iterator[CheckResult]:
    """Whether transactions of a capture did what they had done in production: as for an experiment of kind `sample`."""
    from pgdyno.analysis.finding import CheckResult, graded
    from pgdyno.analysis.validity import FAILED_SHARE_INVALID
    from pgdyno.workload.native_record import account_total

    from ..base.text import percent
    from ..kinds.sample import SampleKind, keys_given

    if not isinstance(spec, SampleKind):
        return
    assert output.summary is not None
    tried = whole.succeeded + whole.rolled_back + whole.failed
    if tried and whole.failed:
        share = whole.failed / tried
        figure = f"{whole.failed:,} of {tried:,} transactions failed otherwise than in production ({percent(share)})"
        yield CheckResult("failed", graded(share, 0.0, FAILED_SHARE_INVALID), figure)
    total, inputs = account_total(output), output.summary["inputs"]
    keys = keys_given(inputs, total.succeeded + total.rolled_back + total.failed)
    if not keys.ok:
        yield CheckResult("keys", "invalid", keys.detail)
    yield from reading.sample_findings(spec.drawn_from(inputs))


def show(result: DriveResult, as_json: bool) -> None:
    """Print it."""
    if as_json:
        print_json(document(result))
        return
    for header, rows in _tables(result):
        print_rows(header, rows, right=header[1:])
        click.echo()
    for line in _remarks(result):
        click.echo(line)


def document(result: DriveResult) -> dict[str, Any]:
    """The result as JSON: of the scripts their names, not their texts."""
    workload = {name: value for name, value in result.spec.record().items() if name != "files"}
    return {
        "workload": workload,
        "server_version": result.server_version,
        "seconds": result.seconds,
        "interrupted": result.interrupted,
        "ended_by": result.ended_by,
        "reconnects_failed": result.reconnects_failed,
        "reconnect_error": result.reconnect_error,
        "valid": result.valid,
        **{name: value for name, value in result.whole.document().items() if name not in ("name", "weight")},
        **({} if (new_orders := new_orders_per_minute(result)) is None else {"nopm": new_orders}),
        "scripts": [part.document() for part in result.scripts],
        "statements": list(result.statements),
        "driver": result.driver.model_dump(mode="json"),
        "findings": [finding.__dict__ for finding in result.findings],
    }


def _tables(result: DriveResult) -> Iterator[tuple[list[str], list[list[str]]]]:
    response = [f"{word}p{percent}" for word in ("RESPONSE ms ", "SERVICE ms ") for percent in PERCENTILES]
    header = ["SCRIPT", "TPS", "SUCCEEDED", "FAILED", "SKIPPED", *(_short(title) for title in response)]
    parts = [*result.scripts, *([result.whole] if len(result.scripts) > 1 else [])]
    yield header, [_row(part) for part in parts]
    if result.statements:
        from ..report.response import one_line

        yield (
            ["STATEMENT", "COUNT", *(f"p{percent} ms" for percent in PERCENTILES)],
            [
                [one_line(statement["statement"], 60), f"{statement['count']:,}", *_cells(statement["service_ms"])]
                for statement in result.statements
            ],
        )


def new_orders_per_minute(result: DriveResult) -> float | None:
    """Where a workload is judged by them."""
    if not result.spec.counts_types:
        return None
    return sum(60 * part.tps for part in result.scripts if part.name == "new_order")


def _short(title: str) -> str:
    """``RESPONSE ms p50`` is said once; the further columns have their percentile only."""
    return title if title.endswith("p50") else title.rpartition(" ")[2]


def _row(part: ScriptPart) -> list[str]:
    counts = [f"{count:,}" for count in (part.succeeded, part.failed, part.skipped)]
    return [part.name, number(part.tps), *counts, *_cells(part.response_ms), *_cells(part.service_ms)]


def _cells(percentiles: Percentiles) -> list[str]:
    return [number(percentiles[f"p{percent}"]) for percent in PERCENTILES]


def _remarks(result: DriveResult) -> Iterator[str]:
    driver, clients = result.driver, result.spec.clients
    loop = "closed loop" if result.spec.closed else "open loop"
    server = f", PostgreSQL {result.server_version}" if result.server_version else ""
    connected = "" if driver.connect_ms is None or not server else f", connected in {driver.connect_ms:.1f} ms"
    yield f"{clients} clients in a {loop} for {result.seconds:.1f} s{server}{connected}"
    if result.whole.rolled_back:
        yield f"rolled back on purpose: {result.whole.rolled_back:,}"
    if (new_orders := new_orders_per_minute(result)) is not None:
        from ..kinds.tpcc.audit import tpm_per_nopm

        tpm, by_mix = 60 * result.whole.tps, tpm_per_nopm(result.spec.record()["profile"])
        yield (
            f"derived from TPC-C: {number(new_orders)} New-Orders per minute (NOPM), {number(tpm)} transactions per minute (TPM);"
            f" TPM/NOPM {tpm / new_orders if new_orders else 0:.3f}, by the mix {by_mix:.3f}"
        )
    if driver.errors:
        yield "failed: " + ", ".join(f"{name} {count:,}" for name, count in driver.errors.items())
    if driver.retries:
        yield f"retries: {driver.retries:,}"
    if driver.connections_lost:
        yield f"connections lost: {driver.connections_lost:,}; clients waited {(driver.down_ms or 0) / 1e3:.3f} s in total for new ones"
    if result.reconnects_failed:
        counts = ", ".join(f"{why} {count:,}" for why, count in result.reconnects_failed.items())
        yield f"attempts to connect again that failed: {counts}; the last: {result.reconnect_error}"
    for finding in result.findings:
        word = {"invalid": "invalid: ", "warn": "warning: "}.get(finding.level, "")
        yield f"{word}{finding.check}: {finding.figure}"


def _part(counted: Mapping[str, Any], weight: int | None, seconds: float) -> ScriptPart:
    return ScriptPart(
        name=counted["name"],
        weight=weight,
        succeeded=counted["succeeded"],
        rolled_back=counted["rolled_back"],
        failed=counted["failed"],
        skipped=counted["skipped_late"] + counted["skipped_ended"],
        tps=counted["succeeded"] / seconds if seconds else 0.0,
        response_ms=_percentiles(_list(counted["response_us"])),
        service_ms=_percentiles(_list(counted["service_us"])),
    )


def _joined(scripts: list[Mapping[str, Any]]) -> dict[str, Any]:
    """The histograms of all scripts, to be added."""
    return {name: [script[name] for script in scripts] for name in ("response_us", "service_us")}


def _list(encoded: Any) -> list[str | None]:
    return encoded if isinstance(encoded, list) else [encoded]


def _percentiles(encoded: list[str | None]) -> Percentiles:
    """Of one or several encoded histograms of microseconds."""
    from pgdyno.analysis.distribution import ValueCounts
    from pgdyno.workload import histogram

    results = [histogram.buckets(text) for text in encoded if text is not None]
    pairs = [pair for value, count in results for pair in zip(value.tolist(), count.tolist(), strict=True)]
    distribution = ValueCounts.of(pairs).scaled(1e-3)
    return {f"p{percent}": distribution.percentile(percent) for percent in PERCENTILES}
