"""``pgdyno metrics``: volumes as CloudWatch metrics, as the NVMe log page and as OpenMetrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import parameters

from .terminal import print_json, print_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..advise.metrics.cloudwatch import Period
    from ..advise.metrics.samples import CounterHistory

_STATISTICS = ("Sum", "Average", "Minimum", "Maximum", "SampleCount")
_LISTEN = "127.0.0.1:9273"


@click.group()
def command() -> None:
    """Show volumes as CloudWatch metrics, and serve them to Prometheus.

    Every figure is a difference of counters that a run recorded, or that the daemon of an attached volume keeps for a
    day.

    \b
    Example:
      pgdyno metrics cloudwatch results/20261121T124500Z-compare-5c0ffe/runs/00-gp3-r1
      sudo pgdyno metrics nvme gp3-1 --json
      sudo pgdyno metrics serve
    """


@command.command()
@click.argument("source", shell_complete=parameters.attached_volumes)
@click.option("--volume", metavar="ROLE", help="Only this volume of a run: data, wal, ... [all].")
@click.option("--metric", "names", multiple=True, metavar="NAME", help="Only this metric; repeatable [all].")
@click.option("--period", "period_s", type=int, default=60, show_default=True, help="Seconds, a multiple of 60.")
@click.option("--stat", type=click.Choice(_STATISTICS), help="Statistic over a period's minutes [each metric's own].")
@click.option("--measured", is_flag=True, help="Only the run's measured phase, in minutes from its start.")
@click.option(
    "--scan-by",
    type=click.Choice(["TimestampDescending", "TimestampAscending"]),
    default="TimestampDescending",
    show_default=True,
    help="Order of the document's datapoints.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the document of `aws cloudwatch get-metric-data`.")
def cloudwatch(
    source: str,
    volume: str | None,
    names: tuple[str, ...],
    period_s: int,
    stat: str | None,
    measured: bool,
    scan_by: Any,
    as_json: bool,
) -> None:
    """Print CloudWatch metrics per minute of a run or an attached volume.

    SOURCE is the directory of a run, or the name of an attached volume. Minutes are those of the wall clock, as in CloudWatch; the first and the last may be incomplete. Without --json and
    --metric the command prints a table with the usual formulas.

    \b
    Example:
      pgdyno metrics cloudwatch results/20261121T124500Z-compare-5c0ffe/runs/00-gp3-r1 --measured
      sudo pgdyno metrics cloudwatch gp2-1 --metric BurstBalance --period 300 --json
    """
    from ..advise.metrics import cloudwatch

    cloudwatch.require_period(period_s)
    wanted = cloudwatch.find_metrics(names)
    results = _samples(source, volume, measured)
    if not (as_json or names or stat or period_s != cloudwatch.MINUTE_S):
        for samples, minutes in results:
            _print_minutes(samples, minutes, titled=len(results) > 1)
        return
    series = [
        cloudwatch.series(
            samples,
            minutes,
            metric,
            period_s=period_s,
            statistic=stat or "",
            origin_s=minutes[0].unix_s if measured and minutes else 0,
        )
        for samples, minutes in results
        for metric in wanted
    ]
    if as_json:
        print_json(cloudwatch.document(series, scan_by))
        return
    header = ["VOLUME", "METRIC", "STATISTIC", "UNIT", "PERIOD (UTC)", "VALUE"]
    print_rows(
        header,
        [
            [
                other.volume,
                other.metric.name,
                other.statistic,
                other.metric.unit,
                _when(point.unix_s, point.whole),
                _value(point.value),
            ]
            for other in series
            for point in other.points
        ],
        right=["VALUE"],
    )


@command.command()
@click.argument("name", shell_complete=parameters.attached_volumes)
@click.option("--json", "as_json", is_flag=True, help="Print the document of `ebsnvme stats --json`.")
def nvme(name: str, as_json: bool) -> None:
    """Print the detailed performance statistics of the attached volume NAME.

    They are those of the NVMe log page of an EBS volume on a Nitro instance: counters since attach, times in microseconds,
    and histograms of the time of operations.

    \b
    Example:
      sudo pgdyno metrics nvme gp3-1 --json | jq .ebs_volume_performance_exceeded_iops
    """
    from ..advise.metrics.samples import statistics
    from ..machine import preflight, volume

    result = volume.find(name)
    preflight.require_root("reading a volume's counters")
    page = statistics(result.stats())
    if as_json:
        print_json(page)
        return
    rows = [[key, f"{value:,}"] for key, value in page.items() if isinstance(value, int)]
    print_rows(["STATISTIC", "VALUE"], rows)
    for operation in ("read", "write"):
        bins = [other for other in page[f"{operation}_io_latency_histogram"]["bins"] if other["count"]]
        click.echo()
        counts = [[f"{other['lower']:,} to {other['upper']:,}", f"{other['count']:,}"] for other in bins]
        print_rows([f"{operation.upper()} LATENCY us", "COUNT"], counts)


@command.command()
@click.argument("names", nargs=-1, shell_complete=parameters.attached_volumes)
@click.option("--listen", default=_LISTEN, show_default=True, metavar="HOST:PORT", help="Address, on loopback.")
@click.option(
    "--diagnose", "watches", multiple=True, type=parameters.PathParameter(), metavar="DIR",
    help="Serve the verdict of the newest watch in DIR, the --keep of `pgdyno diagnose`; repeatable.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Print the metrics once instead of serving them.")
def serve(names: tuple[str, ...], listen: str, watches: tuple[Path, ...], once: bool) -> None:
    """Serve the counters of attached volumes to Prometheus.

    The counters of the volumes NAMES, or of all, are served as OpenMetrics until Ctrl-C.     With --diagnose and without NAMES only verdicts are served, and root is not needed. The page is /metrics.
    `pgdyno show dashboards` lists a dashboard for Grafana and alerts for Prometheus.

    \b
    Example:
      sudo pgdyno metrics serve
      sudo pgdyno metrics serve gp3-1 --once
      pgdyno metrics serve --diagnose watches
    """
    from ..advise.metrics import open_metrics as server
    from ..machine import preflight

    if names or not watches:
        preflight.require_root("reading the counters of volumes")
    if once:
        click.echo(_exposition(names, watches), nl=False)
        return
    address = server.parse_listen(listen)
    _exposition(names, watches)  # an unknown name is refused now, not at the first scrape
    with server.MetricsServer(address, lambda: _exposition(names, watches, known=True)) as serving:
        click.echo(f"serving {serving.url} until Ctrl-C", err=True)
        serving.serve_forever()


def _exposition(names: tuple[str, ...], watches: tuple[Path, ...], *, known: bool = False) -> str:
    """Volumes, verdicts, or both."""
    from ..advise.diagnose import calendar
    from ..advise.metrics import open_metrics
    from ..advise.metrics import open_metrics as server

    volumes = server.lines(names, known=known) if names or not watches else []
    return open_metrics.exposition([*volumes, *calendar.lines(watches)])


@command.command(name="names")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def names_command(as_json: bool) -> None:
    """List the CloudWatch metrics with their units and meaning.

    \b
    Example:
      pgdyno metrics names
    """
    from ..advise.metrics.cloudwatch import METRICS

    if as_json:
        keys = ("namespace", "name", "unit", "statistic", "meaning")
        print_json({"metrics": [{key: getattr(item, key) for key in keys} for item in METRICS]})
        return
    print_rows(["METRIC", "UNIT", "STATISTIC", "MEANING"], [[m.name, m.unit, m.statistic, m.meaning] for m in METRICS])


def _samples(source: str, volume: str | None, measured: bool) -> list[tuple[CounterHistory, list[Period]]]:
    """The volumes of a run or of the machine, each with its minutes."""
    from ..advise.metrics import cloudwatch, samples
    from ..base.errors import InputError
    from ..machine import preflight
    from ..machine.volume import find, list_volumes
    from ..results import open_run

    path = Path(source)
    # A directory beside which a volume has the same name, as `data`, is not meant unless it is a run's.
    is_volume = not (path / "run.json").is_file() and any(list_volume.name == source for list_volume in list_volumes())
    if path.is_dir() and not is_volume:
        if (path / "experiment.json").is_file():
            raise InputError(
                f"{source} is an experiment", remedy=f"name one of its runs: {source.rstrip('/')}/runs/NAME"
            )
        run = open_run(path)
        measure = run.record.measure
        span = {"begin_ns": measure.begin_ns, "end_ns": measure.end_ns} if measured else {}
        return [(item, cloudwatch.minutes(item, **span)) for item in samples.of_run(run, volume)]
    if volume is not None or measured:
        raise InputError("--volume and --measured apply to runs", remedy="name the directory of a run, or omit them")
    attached = find(source)
    preflight.require_root("reading a volume's counters")
    live = samples.of_volume(attached)
    return [(live, cloudwatch.minutes(live))]


def _print_minutes(samples: CounterHistory, minutes: Sequence[Period], *, titled: bool) -> None:
    from ..advise.metrics import table

    if titled:
        click.echo(f"{samples.volume}:")
    results = [table.figures(samples, minute) for minute in minutes]
    print_rows(table.HEADER, table.rows(results), right=table.HEADER[1:-1])
    for remark in table.remarks(samples, results):
        click.echo(f"  {remark}")


def _when(unix_s: int, whole: bool) -> str:
    from ..advise.metrics.cloudwatch import timestamp

    return timestamp(unix_s).removesuffix("+00:00") + ("" if whole else "*")


def _value(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.3f}"
