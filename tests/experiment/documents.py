"""Experiment documents for tests, small and sound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pgdyno.experiment import Experiment, read_experiment

if TYPE_CHECKING:
    from pathlib import Path

_MEMORY = '[instance]\nmemory = "128MiB"\n'
_VOLUMES = '\n[factors]\n"world.volume" = ["gp3", "io2bx"]\n'


def _file(replicates: int, where: str, duration: str, driver: str = "") -> str:
    """Four clients on tables of scale 2, after the tables that say where."""
    load = f'{driver}scale = 2\nclients = 4\nwarmup = "1s"\nduration = "{duration}"\n'
    return f"schema_version = 1\nreplicates = {replicates}\n\n{where}\n[workload]\n{load}"


FILE = _file(2, _MEMORY, "2s") + _VOLUMES
FAKE = _file(2, '[world]\nkind = "fake"\n', "5s") + _VOLUMES
"""Needs neither root nor PostgreSQL, and takes milliseconds."""
ONE_ARM = _file(
    1, '[world]\nkind = "{kind}"\nvolume = "gp3:size=10GiB"\n\n' + _MEMORY, "{seconds}s", 'engine = "native"\n'
)
"""One run in either world; what a test is about follows."""


def experiment(**tables: Any) -> Experiment:
    """An experiment on one gp3, with the tables that matter to a test."""
    return Experiment.of({"schema_version": 1, "world": {"volume": "gp3"}} | tables)


def written(folder: Path, text: str = FILE, *assignments: str) -> Experiment:
    """The experiment of a file with that text."""
    path = folder / "trial.toml"
    path.write_text(text)
    return read_experiment(path, assignments)
