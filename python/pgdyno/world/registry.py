"""The worlds by name. A new one is its file, its rules in :mod:`pgdyno.experiment.tables`, and a line here."""

from __future__ import annotations

from importlib import import_module

from pgdyno.experiment import Experiment
from pgdyno.world.base import World

WORLDS = {
    "emulated": "pgdyno.world.emulated:EmulatedWorld",
    "real": "pgdyno.world.existing:Real",
    "fake": "pgdyno.world.fake:Fake",
}
"""Name -> where its class is; imported when it is used, as each brings its own libraries."""


def world_of(experiment: Experiment) -> type[World]:
    """The world that an experiment asks for; all its arms are in one."""
    module, _, name = WORLDS[experiment.world_kind].partition(":")
    world: type[World] = getattr(import_module(module), name)
    return world
