"""``pgdyno query``: SQL over the recorded runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..results.query import QueryResult


class _CommandWithViews(click.Command):
    """Lists the views at the end of the help, from where they are defined."""

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from ..results.query import describe_views

        with formatter.section("Views"):
            formatter.write_text("Every view begins with experiment_id, run_id, arm, block.")
            formatter.write_dl(list(describe_views().items()))


@click.command(cls=_CommandWithViews, short_help="Query the recorded runs with SQL.")
@click.argument("sql")
@click.option("--results", type=click.Path(path_type=Path), help="Results folder [./results, $PGDYNO_RESULTS].")
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV with a header.")
def command(sql: str, results: Path | None, as_json: bool, as_csv: bool) -> None:
    """Query the recorded runs with SQL.

    SQL is one SELECT in DuckDB's dialect; `DESCRIBE` and a view's name list its columns. Times (`t_ns`) are CLOCK_MONOTONIC
    nanoseconds, counters are cumulative. `valid` and `why_invalid` are the report's verdict.

    \b
    Example:
      pgdyno query "SELECT arm, avg(tps) FROM runs WHERE valid GROUP BY arm"
      pgdyno query "DESCRIBE throughput"
    """
    from pgdyno.analysis.validity import judge

    from ..base.errors import InputError
    from ..results.names import results_root
    from ..results.query import query

    if as_json and as_csv:
        raise InputError("--json and --csv exclude each other", remedy="use one of them")
    unreadable: dict[Path, str] = {}
    result = query(results_root(results), sql, judge, unreadable)
    for path, why in unreadable.items():
        click.echo(f"omitted: {path}: {why}", err=True)
    if as_json:
        _print_json(result)
    elif as_csv:
        _print_csv(result)
    else:
        _print_table(result)


def _print_json(result: QueryResult) -> None:
    import json

    click.echo(json.dumps(_plain(result.dictionaries()), default=str, indent=1, allow_nan=False))


def _plain(value: Any) -> Any:
    """The value in JSON: a decimal as a number, null for NaN and infinity."""
    from decimal import Decimal
    from math import isfinite

    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return None if isinstance(value, float) and not isfinite(value) else value


def _print_csv(result: QueryResult) -> None:
    import csv
    import sys

    from pgdyno.cli.streams import exact

    writer = csv.writer(exact(sys.stdout), lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows(result.rows)


def _print_table(result: QueryResult) -> None:
    """Columns side by side, numbers to the right; the number of rows on standard error."""
    from pgdyno.cli.terminal import columns

    from ..base.text import fitted

    texts = [[_text(value) for value in row] for row in result.rows]
    numeric = [
        all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in column)
        for column in zip(*result.rows, strict=True)
    ] or [False] * len(result.columns)
    widths = [max(map(len, column)) for column in zip(result.columns, *texts, strict=True)]
    within = columns()
    ruled = within is None or sum(widths) + 2 * (len(widths) - 1) <= within
    rule = [["-" * width for width in widths]] if ruled else []
    left = [place for place, number in enumerate(numeric) if not number]
    for line in fitted([result.columns, *rule, *texts], within, left):
        click.echo(line)
    click.echo(f"({len(result.rows)} row{'s' * (len(result.rows) != 1)})", err=True)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"
    return str(value)
