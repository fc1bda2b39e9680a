"""``pgdyno runs``: what has been recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..results.reader import StoredExperiment


@click.command(short_help="List the recorded experiments and runs.")
@click.option("--results", type=click.Path(path_type=Path), help="Results folder [./results, $PGDYNO_RESULTS].")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(results: Path | None, as_json: bool) -> None:
    """List the recorded experiments and runs.

    For each experiment: its id, when it began, how many of its runs are finished and valid, its arms (or its factors
    with their levels); then its runs. Interrupted runs are not listed. Whether a run is valid is the report's verdict; the
    reason is beside it.

    With --json, `valid` of a run is that verdict. `valid` of an experiment says that all planned runs are there and all of
    its runs are valid; its `why_invalid` says how many are not.

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
    from ..analysis.run import headline_of

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
    from ..analysis.run import headline_of

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
