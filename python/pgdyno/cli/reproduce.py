"""``pgdyno reproduce``: published comparisons made again, with a verdict on each."""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pgdyno.flow.cell import Listener
    from pgdyno.flow.plan import ExperimentPlan
    from pgdyno.published import PublishedDocument

    from ..published.experiments import ExperimentResult
    from ..published.jobs import ReproduceJob
    from ..published.judge import DocumentResult
    from ..published.library import DocumentLibrary


def _names(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from ..base import installation

    names = sorted(path.stem for path in installation.data_folder("catalog/published").glob("*.toml"))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command()
@click.argument("document", required=False, shell_complete=_names)
@click.option("--list", "only_list", is_flag=True, help="List documents, comparisons and the time that each takes.")
@click.option(
    "--quick/--full",
    default=True,
    help="Only the arms that comparisons rest on, without those that take longest; or all [--quick].",
)
@click.option("--budget", metavar="TIME", help="Run only the experiments that fit into this time, for example 1h.")
@click.option(
    "--from",
    "recorded",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Run nothing: take recorded results from this folder.",
)
@click.option("--results", type=click.Path(file_okay=False, path_type=Path), help="Results folder [./results].")
@click.option("--html", metavar="FILE", type=click.Path(path_type=Path), help="Also write an HTML page.")
@click.option("--keep-invalid", is_flag=True, help="Exit with 0 even if runs are unreliable.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(document: str | None, only_list: bool, as_json: bool, **options: Any) -> None:
    """Repeat published benchmarks and compare the results.

    Runs the experiment files of DOCUMENT, or of all documents, as `pgdyno run` does. Prints each published comparison:
    the published and the measured figures, their ratios with the interval, whether the direction matches, how far the ratio
    moves with settings the document leaves out, and a verdict with its reason. Nothing is fitted to a published figure.

    Run the same command again to resume after an interruption: finished runs are reused. Without root nothing is run, and
    only the comparisons that need no run are printed.

    \b
    Example:
      pgdyno reproduce --list
      sudo pgdyno reproduce bulk-load --html bulk-load.html
      sudo pgdyno reproduce --full --budget 2h
      pgdyno reproduce io2 --from results --json
    """
    from ..published.library import library

    document_library = library()
    chosen = document_library.chosen(document)
    if only_list:
        _print_list(document_library, chosen, as_json)
    else:
        _reproduce(document_library, chosen, as_json, **options)


def _reproduce(
    library: DocumentLibrary,
    chosen: Sequence[PublishedDocument],
    as_json: bool,
    *,
    quick: bool,
    budget: str | None,
    recorded: Path | None,
    results: Path | None,
    html: Path | None,
    keep_invalid: bool,
) -> None:
    from ..base.errors import EXIT_INVALID, InputError, RunInvalid

    if recorded is not None and (budget is not None or results is not None):
        raise InputError("--from runs nothing", remedy="omit --budget and --results")
    jobs = [] if recorded is not None else _made(library, chosen, budget, results, full=not quick)
    known = _recorded(library, chosen, recorded) if recorded is not None else {job.name: job.result for job in jobs}
    output = _judge(chosen, known)
    _print(output, as_json)
    if html is not None:
        from ..published.page import write_page

        write_page(output, html)
        click.echo(f"page: {html}", err=as_json)
    _require_all(jobs)
    if not keep_invalid and any(comparison.invalid for document in output for comparison in document.comparisons):
        raise RunInvalid(
            "some runs are unreliable; the comparisons based on them give the reasons",
            remedy="fix the cause and run again; --keep-invalid accepts the results as they are",
            exit_code=EXIT_INVALID,
        )


def _made(
    library: DocumentLibrary,
    chosen: Sequence[PublishedDocument],
    budget: str | None,
    results: Path | None,
    *,
    full: bool,
) -> list[ReproduceJob]:
    """The experiment files with the runs that were there or are made now."""
    from ..base.quantity import duration_words, parse_seconds
    from ..published.jobs import carry_out, fitting, jobs_of
    from ..results import results_root

    budget_s = math.inf if budget is None else parse_seconds(budget, "--budget")
    root = results_root(results).absolute()
    jobs = jobs_of(library, chosen, root, full=full, to_run=True)
    kept, left_out = fitting(jobs, budget_s)
    for job in jobs:
        if job.error is not None:
            _say(f"{job.name} is not run: {job.error.message}")
        for arm, why in job.refused:
            _say(f"{arm.label} of {job.name} is not run: {why}")
    for job in left_out:
        lost = ", ".join(_resting_on(chosen, job.name))
        _say(f"the budget leaves out {job.name}, about {duration_words(job.seconds)}; without it: {lost}")
    work_s = sum(job.seconds for job in kept)
    if work_s:
        _say(f"about {duration_words(work_s)} in total")
    done = carry_out(kept, root, ("pgdyno", *sys.argv[1:]), budget_s, _watched, _say)
    return [*done, *left_out]


def _resting_on(chosen: Sequence[PublishedDocument], experiment: str) -> list[str]:
    """The comparisons that an experiment answers, or whose sensitivity it varies."""
    return [
        comparison.name
        for document in chosen
        for comparison in document.comparison
        if comparison.answer
        and experiment in {comparison.answer.experiment, *(each.experiment for each in comparison.answer.varied)}
    ]


@contextmanager
def _watched(planned: ExperimentPlan, left_s: float) -> Iterator[Listener]:
    from ..flow.cell import Listener
    from .terminal import Display

    _say(f"{planned.experiment.name}: {planned.experiment.file.title}")
    with Display(planned, left_s) as display:
        yield Listener(display.step, display.finished, display.say)


def _recorded(
    library: DocumentLibrary, chosen: Sequence[PublishedDocument], folder: Path
) -> dict[str, ExperimentResult]:
    from ..published.experiments import find_results

    return find_results(folder, [library.experiment(run) for document in chosen for run in document.run])


def _judge(chosen: Sequence[PublishedDocument], known: dict[str, ExperimentResult]) -> list[DocumentResult]:
    from ..base.catalog import Catalog
    from ..base.errors import EngineMissing
    from ..published.judge import judge_document

    try:
        with Catalog() as catalog:
            return [judge_document(document, known, catalog.resolve) for document in chosen]
    except EngineMissing:
        return [judge_document(document, known, None) for document in chosen]


def _print(results: Sequence[DocumentResult], as_json: bool) -> None:
    from ..published import words

    if as_json:
        from ..published.reproduce_document import reproduce_document

        click.echo(reproduce_document(results).model_dump_json(indent=2))
        return
    for line in words.lines(results):
        click.echo(line)
    click.echo(words.headline(results))
    click.echo(f"{words.NOT_FITTED} {words.INTERVAL}")


def _require_all(jobs: Sequence[ReproduceJob]) -> None:
    """Whether every experiment was run that should have been; what could be done without them is printed."""
    failed = [job for job in jobs if job.error is not None]
    if not failed:
        return
    first = failed[0].error
    assert first is not None
    others = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    first.message = f"not run: {failed[0].name}{others}: {first.message}"
    raise first


def _print_list(library: DocumentLibrary, chosen: Sequence[PublishedDocument], as_json: bool) -> None:
    from ..published.jobs import jobs_of
    from .terminal import print_json

    documents: list[dict[str, Any]] = []
    for document in chosen:
        quick = {job.name: job for job in jobs_of(library, [document], None, full=False, to_run=False)}
        experiments = [
            {
                "name": job.name,
                "seconds": _seconds(job),
                "quick_seconds": _seconds(quick[job.name]) if job.name in quick else None,
                "full_only": job.name not in quick,
                "why_not": "" if job.error is None else job.error.message,
            }
            for job in jobs_of(library, [document], None, full=True, to_run=False)
        ]
        comparisons = [
            {
                "name": comparison.name,
                "ratio": float(document.ratio(comparison)[0]),
                "experiment": comparison.answer.experiment if comparison.answer else None,
            }
            for comparison in document.comparison
        ]
        documents.append(
            {"name": document.name, "title": document.title, "experiments": experiments, "comparisons": comparisons}
        )
    if as_json:
        print_json({"documents": documents})
        return
    _print_listed(documents)


def _print_listed(documents: Sequence[dict[str, Any]]) -> None:
    from ..base.text import times

    totals = {False: 0.0, True: 0.0}
    for document in documents:
        takes = {
            full: sum(each["seconds" if full else "quick_seconds"] or 0.0 for each in document["experiments"])
            for full in (False, True)
        }
        click.echo(f"{document['name']}: {document['title']}; {_times(takes)}")
        for each in document["experiments"]:
            click.echo(f"  runs {each['name']}: {each['why_not'] or _takes(each)}")
        for each in document["comparisons"]:
            by = f"by {each['experiment']}" if each["experiment"] else "without a run"
            click.echo(f"  {each['name']}: {times(each['ratio'])} there; {by}")
        totals = {full: totals[full] + takes[full] for full in totals}
    if len(documents) > 1:
        click.echo(f"all: {_times(totals)}")


def _seconds(job: ReproduceJob) -> float | None:
    return None if job.planned is None else round(job.seconds, 1)


def _takes(document: dict[str, Any]) -> str:
    """What an experiment takes, and what with ``--full``."""
    from ..base.quantity import duration_words

    full = f"about {duration_words(document['seconds'])}"
    if document["full_only"]:
        return f"{full}, with --full"
    quick = f"about {duration_words(document['quick_seconds'])}"
    return full if quick == full else f"{quick}, with --full {full}"


def _times(takes: dict[bool, float]) -> str:
    """What ``--quick`` and ``--full`` take."""
    from ..base.quantity import duration_words

    quick, full = (f"about {duration_words(takes[each])}" if takes[each] else "no runs" for each in (False, True))
    return f"--quick {quick}, --full {full}"


def _say(text: str) -> None:
    click.echo(text, err=True)
