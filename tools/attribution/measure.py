"""Runs a scenario and asks which limit bound."""

from __future__ import annotations

import copy
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.binding.verdict import bind_run, total
from pgdyno.analysis.compare import summarise
from pgdyno.base.errors import PgdynoError
from pgdyno.experiment import Experiment
from pgdyno.flow.run import run_experiment
from tools.attribution.record import Result
from tools.attribution.truth import refuted

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.binding.verdict import BindingVerdict
    from tools.attribution.scenarios import Scenario

WAL_SIZE = "max_wal_size"


@dataclass(frozen=True)
class _Asked:
    scenario: Scenario
    experiment: Experiment

    def result(self, refuted: str | None, verdict: BindingVerdict | None, tps: float) -> Result:
        """What came of it; of a run that broke there is no verdict."""
        return Result(
            key=self.scenario.key,
            truth=self.scenario.truth,
            refuted=refuted,
            limit=None if verdict is None else verdict.limit,
            confidence="unknown" if verdict is None else verdict.confidence,
            shares={} if verdict is None else dict(verdict.shares),
            volume=", ".join(f"{role} {spec}" for role, spec in self.experiment.arms[0].world.placement.items()),
            workload=_workload(self.scenario.document["workload"]),
            tps=tps,
        )


def measure(scenario: Scenario, root: Path) -> Result:
    """The verdict on one run, and whether its truth is what was meant; the run's directory is removed."""
    experiment = Experiment.of(document(scenario))
    result = _Asked(scenario, experiment)
    try:
        directory = run_experiment(experiment, root=root, command=("make", "bench", "ONLY=attribution"))
    except PgdynoError as error:
        return result.result(refuted=f"the run ended: {error.message}", verdict=None, tps=0.0)
    try:
        comparison = summarise(directory)
        arm = comparison.arms[0]
        # The rules are asked of invalid runs too: whether such a run counts is the scenario's decision.
        verdict = total([bind_run(replicate.figures).seconds for replicate in arm.replicates])
        return result.result(refuted(scenario, comparison.arms), verdict, arm.headline.mean)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def document(scenario: Scenario) -> dict[str, Any]:
    """The experiment's document; with the control as a second arm where there is one."""
    made = copy.deepcopy(scenario.document)
    if scenario.control is not None:
        size = made["postgres"]["parameters"].pop(WAL_SIZE)
        made["factors"] = {f"postgres.parameters.{WAL_SIZE}": [size, scenario.control]}
    return made


def _workload(document: dict[str, Any]) -> str:
    """What was asked, in few words."""
    script = document.get("script") or ",".join(file["name"] for file in document["files"])
    pace = "".join(
        f", {document[key]:g} {word}"
        for key, word in (("rate_per_s", "a second"), ("think_ms", "ms of thought"))
        if key in document
    )
    return f"{script}, scale {document['scale']}, {document['clients']} clients{pace}"
