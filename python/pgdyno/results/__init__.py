"""Run directories: written once, read by everything that comes after the run.

What stands here is imported when it is first used: records are pydantic models, and help and completion need none.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .names import experiment_id, identity_hash, results_root, run_name
    from .reader import StoredExperiment, StoredLoad, StoredRun, list_experiments, open_experiment, open_loads, open_run
    from .writer import RunWriter, write_experiment

__all__ = [
    "RunWriter",
    "StoredExperiment",
    "StoredLoad",
    "StoredRun",
    "experiment_id",
    "identity_hash",
    "list_experiments",
    "open_experiment",
    "open_loads",
    "open_run",
    "results_root",
    "run_name",
    "write_experiment",
]

_MODULES = {
    "names": ("experiment_id", "identity_hash", "results_root", "run_name"),
    "reader": (
        "StoredExperiment",
        "StoredLoad",
        "StoredRun",
        "list_experiments",
        "open_experiment",
        "open_loads",
        "open_run",
    ),
    "writer": ("RunWriter", "write_experiment"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """The name, from its module."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
