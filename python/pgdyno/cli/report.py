"""``pgdyno report``: the page, the table and the JSON of recorded experiments, made again from their run directories."""

from __future__ import annotations

from pathlib import Path

import click

from pgdyno.cli import complete


@click.command(name="report")
@click.argument("results", metavar="RESULT...", nargs=-1, required=True, shell_complete=complete.experiments)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The page to write.")
@click.option("--results", "root", type=click.Path(file_okay=False, path_type=Path), help="Where experiments lie.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON instead of a table.")
def command(results: tuple[str, ...], output: Path | None, root: Path | None, as_json: bool) -> None:
    """Make the report of an experiment again.

    RESULT is the directory of an experiment, or its name in the results folder. Several are pooled when they are
    repetitions of one experiment. The page is written to report.html in the experiment's directory, its main figure
    as a PNG beside it.

    \b
    Example:
      pgdyno report results/20261121T124500Z-compare-5c0ffe
      pgdyno report 20261121T124500Z-compare-5c0ffe --json --output gp3-io2bx.html
    """
    from pgdyno.analysis.compare import summarise
    from pgdyno.report import document, print_table, write_report

    directories = [_directory(result, root) for result in results]
    comparison = summarise(*directories)
    written = write_report(comparison, output or directories[0] / "report.html")
    if as_json:
        click.echo(document(comparison, written.page).model_dump_json(indent=2))
    else:
        print_table(comparison, written.page)


def _directory(result: str, root: Path | None) -> Path:
    """The directory of an experiment from its path or its name; refused with what it is instead."""
    from pgdyno.errors import InputError
    from pgdyno.store import results_root

    for candidate in (Path(result), results_root(root) / result):
        if (candidate / "experiment.json").is_file():
            return candidate
        if (candidate / "run.json").is_file():
            raise InputError(
                f"{candidate} is one run; a report is made of its experiment",
                remedy=f"pgdyno report {candidate.resolve().parents[1]}",
            )
    raise InputError(f"{result} is not an experiment", remedy="`pgdyno runs` lists what there is")
