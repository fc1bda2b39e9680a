"""``pgdyno runs``, ``report`` and ``query``: the recorded experiments and runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pgdyno.analysis.compare import Comparison

    from ..results.query import QueryResult
    from ..results.reader import StoredExperiment


@click.command()
@click.option("--results", type=click.Path(path_type=Path), help="Results folder [./results, $PGDYNO_RESULTS].")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def runs(results: Path | None, as_json: bool) -> None:
    """List the recorded experiments and runs.

    Prints each experiment's id, its start, how many of its runs are finished and valid, its arms (or its factors with their
    levels), and its runs. Interrupted runs are not listed. An invalid run is listed with the reason, as in the report.

    With --json, an experiment is `valid` if all planned runs are finished and valid; otherwise `why_invalid` counts the others.

    \b
    Example:
      pgdyno runs
      pgdyno runs --json | jq -r '.experiments[].path'
    """
    from ..results.names import results_root
    from ..results.reader import list_experiments

    root = results_root(results)
    unreadable: dict[Path, str] = {}
    experiments = list_experiments(root, unreadable)
    for experiment in experiments:
        unreadable |= experiment.unreadable
    if as_json:
        _print_json(root, experiments, unreadable)
        return
    for experiment in experiments:
        _print_experiment(experiment)
    for path, why in unreadable.items():
        click.echo(f"cannot be read: {path}: {why}", err=True)
    if not experiments:
        click.echo(f"no experiments in {root}; `pgdyno compare` runs one", err=True)


def _print_json(root: Path, experiments: list[StoredExperiment], unreadable: dict[Path, str]) -> None:
    import json

    document = {
        "results": str(root),
        "experiments": [_document(experiment) for experiment in experiments],
        "unreadable": [{"path": str(path), "why": why} for path, why in unreadable.items()],
    }
    click.echo(json.dumps(document, indent=1))


def _document(experiment: StoredExperiment) -> dict[str, Any]:
    from pgdyno.analysis.run import headline_of

    record = experiment.record
    verdicts = _verdicts(experiment)
    defects = _defects(experiment, verdicts)
    return {
        "experiment_id": record.experiment_id,
        "kind": record.kind,
        "created_at": _when(record.created_unix_ns),
        "arms": list(record.arms),
        "factors": {name: list(levels) for name, levels in record.factors.items()},
        "replicates": record.replicates,
        "runs_wanted": len(record.arms) * record.replicates,
        "runs_finished": len(experiment.runs),
        "runs_valid": _valid(verdicts),
        "valid": not defects,
        "why_invalid": defects,
        "path": str(experiment.path),
        "runs": [
            {
                "run_id": run.record.run_id,
                "arm": run.record.arm,
                "factors": run.record.factors,
                "block": run.record.block,
                "metric": (metric := headline_of(run.record)).name,
                "value": metric.of(run.record),
                "tps": metric.of(run.record) if metric.name == "tps" else None,
                "valid": not verdicts[run.path],
                "why_invalid": list(verdicts[run.path]),
                "path": str(run.path),
            }
            for run in experiment.runs
        ],
    }


def _print_experiment(experiment: StoredExperiment) -> None:
    from pgdyno.analysis.run import headline_of

    record = experiment.record
    wanted = len(experiment.runs) + _missing(experiment)
    verdicts = _verdicts(experiment)
    click.echo(
        f"{record.experiment_id}  {_when(record.created_unix_ns)}  {len(experiment.runs)} of {wanted} runs finished,"
        f" {_valid(verdicts)} valid"
    )
    if len(record.factors) > 1:
        for name, levels in record.factors.items():
            click.echo(f"  {name}: {', '.join(levels)}")
    else:
        click.echo(f"  {', '.join(record.arms)}, {record.replicates} replicate{'s' * (record.replicates != 1)}")
    width = max((len(run.record.run_id) for run in experiment.runs), default=0)
    for run in experiment.runs:
        reasons = "; ".join(verdicts[run.path])
        state = f"invalid: {reasons}" if reasons else "valid"
        metric = headline_of(run.record)
        click.echo(f"  {run.record.run_id:<{width}} {metric.of(run.record):>10,.1f} {metric.short.lower()}  {state}")


def _missing(experiment: StoredExperiment) -> int:
    """How many of the planned runs are not there. A budget may have brought more runs than were planned."""
    wanted = len(experiment.record.arms) * experiment.record.replicates
    return len(set(range(wanted)) - {run.record.position for run in experiment.runs})


def _valid(verdicts: Mapping[Path, tuple[str, ...]]) -> int:
    """How many runs are valid."""
    return sum(not reasons for reasons in verdicts.values())


def _defects(experiment: StoredExperiment, verdicts: Mapping[Path, tuple[str, ...]]) -> list[str]:
    """Why an experiment as a whole is not valid, in words; nothing for one that is."""
    missing, invalid = _missing(experiment), len(verdicts) - _valid(verdicts)
    defects = []
    if missing:
        defects.append(f"{missing} of {len(verdicts) + missing} runs {'is' if missing == 1 else 'are'} missing")
    if invalid:
        defects.append(f"{invalid} of {len(verdicts)} finished runs {'is' if invalid == 1 else 'are'} invalid")
    return defects


def _verdicts(experiment: StoredExperiment) -> dict[Path, tuple[str, ...]]:
    """Path of a run -> why its numbers must not be used; nothing for a valid one."""
    from pgdyno.analysis.validity import judge

    return {run.path: judge(run) for run in experiment.runs}


def _when(unix_ns: int) -> str:
    import datetime as dt

    return dt.datetime.fromtimestamp(unix_ns // 1_000_000_000, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


class _CommandWithViews(click.Command):
    """Lists the views at the end of the help, from where they are defined."""

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from ..results.query import describe_views

        with formatter.section("Views"):
            formatter.write_text("Every view begins with experiment_id, run_id, arm, block.")
            formatter.write_dl(list(describe_views().items()))


@click.command(cls=_CommandWithViews)
@click.argument("sql")
@click.option("--results", type=click.Path(path_type=Path), help="Results folder [./results, $PGDYNO_RESULTS].")
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV with a header.")
def query(sql: str, results: Path | None, as_json: bool, as_csv: bool) -> None:
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
        _print_result_json(result)
    elif as_csv:
        _print_csv(result)
    else:
        _print_table(result)


def _print_result_json(result: QueryResult) -> None:
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


@click.command()
@click.argument("results", metavar="RESULT...", nargs=-1, required=True, shell_complete=parameters.experiments)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; for pictures a folder.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["html", "md", "csv", "json", "png", "svg"]),
    default="html",
    show_default=True,
    help="HTML page, Markdown, CSV with a row per run, the JSON document, or every figure as a picture.",
)
@click.option(
    "--against",
    metavar="RESULT",
    shell_complete=parameters.experiments,
    help="Compare with another result: their differences, and the results of their common arms.",
)
@click.option(
    "--results",
    "root",
    type=click.Path(file_okay=False, path_type=Path),
    help="Results folder [./results, $PGDYNO_RESULTS].",
)
@parameters.goal
@click.option("--summary", is_flag=True, help="Summarise different experiments with the same arms in a table.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON instead of a table.")
def report(
    results: tuple[str, ...],
    output: Path | None,
    kind: str,
    against: str | None,
    root: Path | None,
    goal: str | None,
    summary: bool,
    as_json: bool,
) -> None:
    """Write the report of an experiment again.

    RESULT is the directory of an experiment, or its name in the results folder. Several results are pooled if they are
    repetitions of one experiment; with --summary they may be any with the same arms. The page is written to report.html
    in the experiment's directory, with its main figure as a PNG. Markdown, CSV and JSON go to standard output unless there
    is an --output; pictures go to the folder figures/ beside the page.

    \b
    Example:
      pgdyno report results/20261121T124500Z-compare-5c0ffe
      pgdyno report 20261121T124500Z-compare-5c0ffe --json --output gp3-io2bx.html
      pgdyno report 20261121T124500Z-compare-5c0ffe --goal "tps>=2000, p99<=20ms"
      pgdyno report 20261121T124500Z-compare-5c0ffe --format csv --output runs.csv
      pgdyno report results/*-hammerdb-oltp-* results/*-hammerdb-olap-* --summary
    """
    import sys

    from pgdyno.analysis.compare import summarise
    from pgdyno.cli.streams import drawn
    from pgdyno.report import document, print_table, write_report

    from ..base.errors import InputError
    from ..base.goal import parse_goal

    directories = [_directory(result, root) for result in results]
    if summary:
        if against is not None or kind != "html" or as_json or output is not None or goal is not None:
            raise InputError("--summary prints a table", remedy="omit --against, --goal, --format, --json and --output")
        _sum_up(directories)
        return
    if against is not None and (kind != "html" or as_json or goal is not None):
        raise InputError("--against writes an HTML page only", remedy="omit --format, --goal and --json")
    if as_json and kind not in ("html", "json"):
        raise InputError(
            f"--json and --format {kind} are two documents", remedy="omit one of them, or run the command twice"
        )
    comparison = summarise(*directories, goal=None if goal is None else parse_goal(goal, "--goal"))
    if against is not None:
        _against(comparison, summarise(_directory(against, root)), output or directories[0] / "against.html")
    elif kind != "html":
        _export(comparison, kind, output, directories[0])
    else:
        written = write_report(comparison, output or directories[0] / "report.html")
        if as_json:
            click.echo(document(comparison, written.page).model_dump_json(indent=2))
        else:
            print_table(comparison, written.page, drawn(sys.stdout))


def _sum_up(directories: list[Path]) -> None:
    """Print the summary of different experiments with the same arms."""
    from pgdyno.analysis.compare import several, summarise

    from ..report.terminal import several_lines

    for line in several_lines(several([summarise(directory) for directory in directories])):
        click.echo(line)


def _against(comparison: Comparison, other: Comparison, output: Path) -> None:
    """Write the page of two results, and say what it found."""
    from pgdyno.analysis.compare import against
    from pgdyno.report.against import verdict, write_against

    result = against(comparison, other)
    click.echo(verdict(result))
    click.echo(f"report: {write_against(result, output)}")


def _export(comparison: Comparison, kind: str, output: Path | None, directory: Path) -> None:
    """Write or print the report as something else than a page."""
    import sys

    from pgdyno.cli.streams import exact
    from pgdyno.report import document, export
    from pgdyno.report.render import write_whole

    if kind in ("png", "svg"):
        for path in export.pictures(comparison, output or directory / "figures", kind):
            click.echo(path)
        return
    text = {
        "md": lambda: export.markdown(comparison),
        "csv": lambda: export.runs_csv(comparison),
        "json": lambda: document(comparison).model_dump_json(indent=2) + "\n",
    }[kind]()
    if output is None:
        click.echo(text, file=exact(sys.stdout), nl=False)
    else:
        write_whole(output, text.encode())
        click.echo(f"report: {output}")


def _directory(result: str, root: Path | None) -> Path:
    """The directory of an experiment from its path or its name; refused with what it is instead."""
    import shlex

    from ..base import installation
    from ..base.errors import InputError
    from ..results import results_root

    for candidate in (Path(result), results_root(root) / result):
        try:
            is_experiment, is_run = ((candidate / name).is_file() for name in ("experiment.json", "run.json"))
        except OSError as error:
            raise InputError(
                f"{candidate} cannot be read: {error.strerror}",
                remedy=f"{installation.how_to_run_as_root()}; `pgdyno runs` lists the ones you can read",
            ) from error
        if is_experiment:
            return candidate
        if is_run:
            raise InputError(
                f"{candidate} is one run; a report needs the experiment",
                remedy=f"pgdyno report {shlex.quote(str(candidate.resolve().parents[1]))}",
            )
    raise InputError(f"{result} is not an experiment", remedy="`pgdyno runs` lists the experiments")
