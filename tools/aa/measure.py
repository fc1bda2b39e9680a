"""Makes an experiment and takes down what its report says."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.compare import summarise
from pgdyno.base.errors import PgdynoError
from pgdyno.experiment import Experiment
from pgdyno.flow.run import run_experiment
from tools.aa.record import Result

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.arm import ArmSummary
    from pgdyno.analysis.compare import Comparison
    from tools.aa.trials import Trial


def measure(trial: Trial, root: Path) -> Result:
    """What an experiment comes to; its directory is removed."""
    experiment = Experiment.of(trial.document)
    try:
        directory = run_experiment(experiment, root=root, command=("make", "bench", "ONLY=aa"))
    except PgdynoError as error:
        return _asked(trial).model_copy(update={"broke": error.message})
    try:
        return told(trial, summarise(directory))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def told(trial: Trial, comparison: Comparison) -> Result:
    """What a report says of the second volume against the first."""
    first, second = comparison.arms
    (ratio,) = comparison.ratios
    estimate = ratio.estimate
    invalid = next((why for arm in (first, second) for why in arm.why_invalid), None)
    update: dict[str, Any] = {
        "tps": _pairs(first, second),
        "distinguishable": ratio.distinguishable,
        "equivalent_within": ratio.equivalent_within,
        "detectable": ratio.detectable,
        "replicates_needed": ratio.replicates_needed,
        "invalid": invalid,
    }
    if estimate is not None:
        update |= {"ratio": estimate.mean, "low": estimate.low, "high": estimate.high}
    return _asked(trial).model_copy(update=update)


def _asked(trial: Trial) -> Result:
    workload = trial.document["workload"]
    return Result(
        key=trial.key,
        kind=trial.kind,
        volumes=trial.volumes,
        change=trial.change,
        workload=f"{workload['script']} by {workload['engine']}, scale {workload['scale']}, {workload['clients']} clients",
    )


def _pairs(first: ArmSummary, second: ArmSummary) -> tuple[tuple[float, float], ...]:
    under = {replicate.figures.record.block: replicate.headline for replicate in first.replicates}
    over = {replicate.figures.record.block: replicate.headline for replicate in second.replicates}
    return tuple((over[block], under[block]) for block in sorted(over.keys() & under.keys()))
