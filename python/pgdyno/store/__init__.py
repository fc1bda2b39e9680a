"""Run directories: written once, read by everything that comes after the run."""

from __future__ import annotations

from pgdyno.store.names import experiment_id, identity_hash, results_root, run_name
from pgdyno.store.reader import Experiment, Run, list_experiments, open_experiment, open_run
from pgdyno.store.writer import RunWriter, write_experiment

__all__ = [
    "Experiment",
    "Run",
    "RunWriter",
    "experiment_id",
    "identity_hash",
    "list_experiments",
    "open_experiment",
    "open_run",
    "results_root",
    "run_name",
    "write_experiment",
]
