"""``pgdyno report``: the page, the table and the JSON of recorded experiments, made again from their run directories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.cli import complete, shared

if TYPE_CHECKING:
    from pgdyno.analysis.compare import Comparison


@click.command(name="report")
@click.argument("results", metavar="RESULT...", nargs=-1, required=True, shell_complete=complete.experiments)
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
    shell_complete=complete.experiments,
    help="Compare with another result: their differences, and the results of their common arms.",
)
@click.option(
    "--results",
    "root",
    type=click.Path(file_okay=False, path_type=Path),
    help="Results folder [./results, $PGDYNO_RESULTS].",
)
@shared.goal
@click.option("--summary", is_flag=True, help="Sum up different experiments with the same arms, in a table.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON instead of a table.")
def command(
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
    """Print what different experiments say of the same arms."""
    from pgdyno.analysis.compare import summarise
    from pgdyno.analysis.several import several

    from ..report.terminal import several_lines

    for line in several_lines(several([summarise(directory) for directory in directories])):
        click.echo(line)


def _against(comparison: Comparison, other: Comparison, output: Path) -> None:
    """Write the page of two results, and say what it found."""
    from pgdyno.analysis.against import against
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
