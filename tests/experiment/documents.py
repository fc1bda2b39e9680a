"""Experiment documents for tests, small and sound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pgdyno.experiment import Experiment, read_experiment

if TYPE_CHECKING:
    from pathlib import Path

FILE = """\
schema_version = 1
replicates = 2

[instance]
memory = "128MiB"

[workload]
scale = 2
clients = 4
warmup = "1s"
duration = "2s"

[factors]
"world.volume" = ["gp3", "io2bx"]
"""

FAKE = """\
schema_version = 1
replicates = 2

[world]
kind = "fake"

[workload]
scale = 2
clients = 4
warmup = "1s"
duration = "5s"

[factors]
"world.volume" = ["gp3", "io2bx"]
"""
"""Needs neither root nor PostgreSQL, and takes milliseconds."""

ONE_ARM = """\
schema_version = 1
replicates = 1

[world]
kind = "{kind}"
volume = "gp3:size=10GiB"

[instance]
memory = "128MiB"

[workload]
engine = "native"
scale = 2
clients = 4
warmup = "1s"
duration = "{seconds}s"

"""
"""One run in either world; what a test is about follows."""


def experiment(**tables: Any) -> Experiment:
    """An experiment on one gp3, with the tables that matter to a test."""
    return Experiment.of({"schema_version": 1, "world": {"volume": "gp3"}} | tables)


def written(folder: Path, text: str = FILE, *assignments: str) -> Experiment:
    """The experiment of a file with that text."""
    path = folder / "trial.toml"
    path.write_text(text)
    return read_experiment(path, assignments)
